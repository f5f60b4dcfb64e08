"""The interpreter's exports: load a plugin's files, then run it as a transform or call it as a tool.

This module is run once, when the component is built; what it leaves in memory is where every sandbox begins. So
everything a plugin may want to import is imported here, and nothing here may depend on a moment or on chance: what does
is done again in `load`.

Modules of the interpreter have names that no author uses: what a plugin brings is looked for under its own names.
"""

from __future__ import annotations

import functools
import gc
import inspect
import os
import random
import sys
from types import ModuleType
from typing import Any, Callable, Optional

import noetl
import wit_world
from noetl.payload import Payload
from noetl.texts import text
from wit_world.imports import tooling

import _noetl_failing as failing
import _noetl_hashing as hashing
import _noetl_library as library
import _noetl_sockets as sockets
import _noetl_values as values
import _noetl_waiting as waiting
import _noetl_web as web
from _noetl_program import Program
from _noetl_values import as_bytes, as_json, parsed


def never_crashes(export: Callable[..., Any]) -> Callable[..., Any]:
    """The last resort: whatever went wrong, the host is told a failure."""

    @functools.wraps(export)
    def guarded_export(*arguments: Any) -> Any:
        try:
            return export(*arguments)
        except BaseException as error:  # noqa: BLE001
            raise failing.of(error, WitWorld._program) from None

    return guarded_export


class WitWorld(wit_world.WitWorld):
    _program: Optional[Program] = None
    _module: Optional[ModuleType] = None

    @never_crashes
    def load(self, entry: str, files: list) -> None:
        # The sandbox's memory was made with the component: without this, all calls would see the same numbers.
        random.seed()
        # What a program is called by is its file; readers of arguments take it for granted that there is one.
        sys.argv[:] = [entry]
        # A line is in the log when it is complete, however the call ends; what is no character is no reason to fail.
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(line_buffering=True, errors="backslashreplace")
        WitWorld._program = Program({file.path: bytes(file.content) for file in files})
        WitWorld._module = guarded(WitWorld._program.start, entry)
        if not any(map(exported, ("call", "main", "run"))):
            # Told now and not by each call: whoever pushes is here to read it.
            raise failing.failed("no_function", f"{entry} has no function `call(input)`, `main(...)` or `run(data)`")

    @never_crashes
    def run(self, input: bytes) -> bytes:
        set_context(noetl.Context())
        if function := exported("run"):
            return as_bytes(guarded(function, bytes(input)))
        return as_json(ask(parsed(input))).encode()

    @never_crashes
    def call(self, request: tooling.Request) -> tooling.Response:
        body = None if request.body is None else Payload(request.body)
        set_context(noetl.Context(request.idempotency_key, request.attempt, body))
        return response(ask(parsed(request.arguments)))

    @never_crashes
    def describe(self) -> Optional[str]:
        said = getattr(WitWorld._module, "describe", None)
        if callable(said):
            said = guarded(said)
        return said if said is None or isinstance(said, str) else as_json(said)


def response(answer: Any) -> tooling.Response:
    if not isinstance(answer, noetl.Response):
        return tooling.Response(as_json(answer), None)
    if not isinstance(answer.body, (Payload, type(None))):
        kind = type(answer.body).__name__
        why = f"the body of a `Response` is a payload and not `{kind}`: make one with `noetl.payload.of(...)`"
        raise failing.failed("invalid_output", why)
    if not isinstance(answer.encoded, (str, type(None))):
        raise failing.failed("invalid_output", "`encoded` of a `Response` is JSON as text")
    output = as_json(answer.output) if answer.encoded is None else text(answer.encoded)
    return tooling.Response(output, None if answer.body is None else answer.body.give())


def ask(input: Any) -> Any:
    """Call what the plugin offers: `call(input)`, or `main` with the input's fields as its arguments."""
    if function := exported("call"):
        return guarded(function, input)
    if function := exported("main"):
        if not isinstance(input, dict):
            raise failing.failed("invalid_input", "`main` takes the fields of a JSON object, and this is none")
        return guarded(function, **input)
    why = "the plugin has only `run(data)`, which is for the world `transform`: a tool has `call(input)` or `main(...)`"
    raise failing.failed("no_function", why)


def exported(name: str) -> Optional[Callable[..., Any]]:
    found = getattr(WitWorld._module, name, None)
    return found if callable(found) else None


def guarded(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Call into the author's code, to the end of what it may leave to wait for; whatever it raises is a failure of the
    plugin."""
    try:
        answer = function(*arguments, **named)
        return waiting.until_done(answer) if inspect.isawaitable(answer) else answer
    except BaseException as error:  # also SystemExit: a plugin cannot end the interpreter
        raise failing.of(error, WitWorld._program) from None
    finally:
        flush()


def flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:  # noqa: BLE001 - the plugin may have closed it, or put something else in its place
            pass


def set_context(context: noetl.Context) -> None:
    noetl.context.__dict__.update(context.__dict__)


library.bring()
values.install()
sockets.install()
web.install()
waiting.install()
hashing.install()
# Of the machine that builds the component; a sandbox has none of its own.
os.environ.clear()
gc.collect()
# What is here now stays: a collection in a sandbox need not look at it, nor copy its pages.
gc.freeze()
