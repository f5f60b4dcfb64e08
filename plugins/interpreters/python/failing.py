"""Exceptions of a plugin as failures its author can act on."""

from __future__ import annotations

import traceback

from componentize_py_types import Err
from noetl import Failure
from wit_world.imports import failures

from program import Program


def failed(code: str, message: str, retryable: bool = False) -> Err:
    return Err(failures.Failure(code, message, retryable))


def of(error: BaseException, program: Program | None) -> Err:
    """The failure an exception is, with the author's own files and lines."""
    if isinstance(error, Failure):
        return failed(error.code, error.message, error.retryable)
    return failed("exception", _described(error, program))


def _described(error: BaseException, program: Program | None) -> str:
    shown = traceback.TracebackException.from_exception(error)
    _cut_all(shown, program)
    return "".join(shown.format()).rstrip()


def _cut_all(shown, program: Program | None) -> None:
    seen = []
    while shown is not None and shown not in seen:
        seen.append(shown)
        _cut(shown, program)
        shown = shown.__cause__ or shown.__context__


def _cut(shown, program: Program | None) -> None:
    """Leave out the frames of the interpreter itself, which come before the author's first."""
    for at, frame in enumerate(shown.stack):
        if program is not None and program.has(frame.filename):
            del shown.stack[:at]
            return
    shown.stack.clear()
