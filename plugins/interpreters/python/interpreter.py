"""The interpreter's exports: load a plugin's files, then run it as a transform or call it as a tool.

This module is run once, when the component is built; what it leaves in memory is where every sandbox begins. So
everything a plugin may want to import is imported here, and nothing here may depend on a moment or on chance: what does
is done again in `load`.
"""

from __future__ import annotations

import gc
import json
import os
import random
import sys
from types import ModuleType
from typing import Any, Callable, Optional

import noetl
import wit_world
from noetl.payload import Payload
from wit_world.imports import tooling

import failing
import library
import waiting
import web
from program import Program


class WitWorld(wit_world.WitWorld):
    _program: Optional[Program] = None
    _module: Optional[ModuleType] = None

    def load(self, entry: str, files: list) -> None:
        # The sandbox's memory was made with the component: without this, all calls would see the same numbers.
        random.seed()
        # A line is in the log when it is complete, however the call ends.
        sys.stdout.reconfigure(line_buffering=True)
        sys.stderr.reconfigure(line_buffering=True)
        WitWorld._program = Program({file.path: bytes(file.content) for file in files})
        WitWorld._module = guarded(WitWorld._program.start, entry)

    def run(self, input: bytes) -> bytes:
        set_context(noetl.Context())
        if function := exported("run"):
            return as_bytes(guarded(function, bytes(input)))
        return as_json(ask(parsed(input))).encode()

    def call(self, request: tooling.Request) -> tooling.Response:
        body = None if request.body is None else Payload(request.body)
        set_context(noetl.Context(request.idempotency_key, request.attempt, body))
        answer = ask(parsed(request.arguments))
        if isinstance(answer, noetl.Response):
            given = None if answer.body is None else answer.body.give()
            output = as_json(answer.output) if answer.encoded is None else answer.encoded
            return tooling.Response(output, given)
        return tooling.Response(as_json(answer), None)


def ask(input: Any) -> Any:
    """Call what the plugin offers: `call(input)`, or `main` with the input's fields as its arguments."""
    if function := exported("call"):
        return guarded(function, input)
    if function := exported("main"):
        if not isinstance(input, dict):
            raise failing.failed("invalid_input", "`main` takes the fields of a JSON object, and this is none")
        return guarded(function, **input)
    raise failing.failed("no_function", "the plugin has no function `call(input)`, `main(...)` or `run(data)`")


def exported(name: str) -> Optional[Callable[..., Any]]:
    found = getattr(WitWorld._module, name, None)
    return found if callable(found) else None


def guarded(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Call into the author's code; whatever it raises is a failure of the plugin."""
    try:
        return function(*arguments, **named)
    except BaseException as error:  # also SystemExit: a plugin cannot end the interpreter
        raise failing.of(error, WitWorld._program) from None
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def set_context(context: noetl.Context) -> None:
    noetl.context.__dict__.update(context.__dict__)


def parsed(text: Any) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError as error:
        raise failing.failed("invalid_input", f"the input is not JSON: {error}") from None


def as_json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise failing.failed("invalid_output", f"the answer is not JSON: {error}") from None


def as_bytes(value: Any) -> bytes:
    match value:
        case bytes() | bytearray() | memoryview():
            return bytes(value)
        case str():
            return value.encode()
        case _:
            return as_json(value).encode()


library.bring()
web.install()
waiting.install()
# Of the machine that builds the component; a sandbox has none of its own.
os.environ.clear()
gc.collect()
# What is here now stays: a collection in a sandbox need not look at it, nor copy its pages.
gc.freeze()
