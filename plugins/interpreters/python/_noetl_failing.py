"""Exceptions of a plugin as failures its author can act on.

What is raised is the author's own: its texts may be anything, and asking for them may raise again. A failure is made of
it whatever it is; a call must not end as if the interpreter had crashed.
"""

from __future__ import annotations

import traceback
from typing import Any

from componentize_py_types import Err
from noetl import Failure
from noetl.texts import text
from wit_world.imports import failures

from _noetl_program import Program


def failed(code: str, message: str, retryable: bool = False) -> Err:
    return Err(failures.Failure(code, message, retryable))


def of(error: BaseException, program: Program | None) -> Err:
    """The failure an exception is, with the author's own files and lines."""
    if isinstance(error, Err) and isinstance(error.value, failures.Failure):
        return error
    if isinstance(error, Failure):
        return failed(text(error.code), text(error.message), _truth(error.retryable))
    return failed("exception", text(_described(error, program)))


def _truth(value: Any) -> bool:
    try:
        return bool(value)
    except BaseException:  # noqa: BLE001 - the same
        return False


def _described(error: BaseException, program: Program | None) -> str:
    try:
        shown = traceback.TracebackException.from_exception(error)
        _cut_all(shown, program)
        return "".join(shown.format()).rstrip() + _advice(error)
    except BaseException:  # noqa: BLE001 - an exception may be one that cannot be shown
        return type(error).__name__


def _advice(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name:
        library = error.name.partition(".")[0]
        return f"\nA plugin brings its libraries: pip install --target vendor {library}"
    return ""


def _cut_all(shown, program: Program | None) -> None:
    seen, open_ = set(), [shown]
    while open_:
        shown = open_.pop()
        if shown is None or id(shown) in seen:
            continue
        seen.add(id(shown))
        _cut(shown, program)
        open_ += [shown.__cause__, shown.__context__, *(shown.exceptions or [])]


def _cut(shown, program: Program | None) -> None:
    """Leave out the frames of the interpreter itself, which come before the author's first."""
    for at, frame in enumerate(shown.stack):
        if program is not None and program.has(frame.filename):
            del shown.stack[:at]
            return
    shown.stack.clear()
