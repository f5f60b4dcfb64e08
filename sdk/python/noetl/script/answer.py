"""What came of the code as JSON: its value, or why it broke.

JSON has less than Python. What it cannot say is said as text: dates in ISO 8601, decimals and everything else as `str`
has them, `NaN` and the infinities by their names, and integers beyond 64 bits as digits, since no number of the engine
is larger. A set is a list.
"""

from __future__ import annotations

import math
import re
import traceback
from datetime import date, time

# By name: code of a step may do with the module what it likes.
from json import dumps
from typing import Any

from ..failure import Failure
from .body import Body
from .streams import Streams

#: Characters of a traceback, from its end, and of a message.
_LONGEST_TRACE = 16 << 10
_LONGEST_MESSAGE = 2 << 10

#: So many digits may be a number that is too large.
_MANY_DIGITS = re.compile(r"\d{19}")


def of(value: Any, body: Body, streams: Streams) -> str:
    if value is None:
        return _json(streams.texts())
    try:
        return _json(value)
    except BaseException as error:  # noqa: BLE001 - `str` of a value is code of the step too
        why = Failure("invalid_output", f"the result is not JSON: {type(error).__name__}: {error}")
        why.__cause__ = error
        return broken(why, body, streams)


def broken(error: BaseException, body: Body, streams: Streams) -> str:
    """The answer of code that raised something, with what it printed before."""
    shown = traceback.TracebackException.from_exception(error)
    line = _cut(shown, body.name)
    trace = "".join(shown.format())[-_LONGEST_TRACE:]
    streams.complain(trace)
    said = list(shown.format_exception_only())[-1].strip()
    place = f" ({body.name}, line {line})" if line else ""
    failure = {"code": "python_error", "message": said[:_LONGEST_MESSAGE] + place, "retryable": False}
    if isinstance(error, Failure):
        failure.update(code=error.code, message=error.message[:_LONGEST_MESSAGE] + place, retryable=error.retryable)
    exception = {"exception": type(error).__name__, "message": str(error)[:_LONGEST_MESSAGE], "line": line}
    return _json({"_failure": failure, "py": {**exception, "traceback": trace}, **streams.texts()})


def _cut(shown: traceback.TracebackException, name: str) -> int | None:
    """Leaves out what comes before the code's own lines, and what the interpreter put in the place of a part of the
    library; gives the last of the code's lines."""
    line, seen, last = None, set(), shown
    while shown is not None and id(shown) not in seen:
        seen.add(id(shown))
        own = [at for at, frame in enumerate(shown.stack) if frame.filename == name]
        if shown is last and own:
            line = shown.stack[own[-1]].lineno
        first = own[0] if own else len(shown.stack)
        shown.stack[:] = [frame for frame in shown.stack[first:] if "/_noetl_" not in frame.filename]
        shown = shown.__cause__ or shown.__context__
    if line is None and getattr(last, "filename", None) == name:
        line = int(last.lineno) if last.lineno else None
    return line


def _json(value: Any) -> str:
    try:
        text = _dumped(value)
        if _MANY_DIGITS.search(text):
            text = _dumped(_plain(value))
    except ValueError:
        text = _dumped(_plain(value))
    try:
        text.encode()
    except UnicodeEncodeError:
        # Half of a pair of surrogates is no character.
        text = text.encode(errors="replace").decode()
    return text


def _dumped(value: Any) -> str:
    return dumps(value, default=_said, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _said(value: Any) -> Any:
    match value:
        case date() | time():
            return value.isoformat()
        case set() | frozenset():
            return list(value)
    return str(value)


def _plain(value: Any) -> Any:
    """The value with text for the numbers that JSON or the engine has not."""
    match value:
        case bool():
            return value
        case int() if not -(1 << 63) <= value < 1 << 64:
            return str(int(value))
        case float() if math.isnan(value):
            return "NaN"
        case float() if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        case dict():
            return {key: _plain(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_plain(item) for item in value]
    return value
