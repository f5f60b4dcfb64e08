"""JSON in and out. Both sides are strangers' texts: what goes in is the caller's, what comes out is the plugin's."""

from __future__ import annotations

import functools
import json
import re
from typing import Any

from noetl.texts import text as _said

import _noetl_failing as failing

#: Deeper values would need more of the sandbox's stack than it has; no parser or writer of the engine goes as deep.
DEEPEST = 500

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")


def install() -> None:
    """Makes Python's own reader of JSON refuse what is too deep: a plugin reads texts of strangers with it too."""
    read = json.JSONDecoder.raw_decode

    @functools.wraps(read)
    def raw_decode(self, s, idx=0):
        if _is_deep_text(s):
            raise json.JSONDecodeError(f"nested deeper than {DEEPEST} levels", s, idx)
        return read(self, s, idx)

    json.JSONDecoder.raw_decode = raw_decode


def parsed(given: Any) -> Any:
    if not given:
        return None
    try:
        return json.loads(given if isinstance(given, str) else bytes(given).decode())
    except (ValueError, RecursionError) as error:
        raise failing.failed("invalid_input", f"the input is not JSON: {_said(error)}") from None


def as_json(value: Any) -> str:
    try:
        if _is_deep(value):
            why = f"it is nested deeper than {DEEPEST} levels, or contains itself"
            raise failing.failed("invalid_output", f"the answer is not JSON: {why}")
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        if not _can_be_sent(text):
            text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
        return text
    except (TypeError, ValueError, RecursionError) as error:
        raise failing.failed("invalid_output", f"the answer is not JSON: {_said(error)}") from None


def as_bytes(value: Any) -> bytes:
    match value:
        case bytes() | bytearray() | memoryview():
            return bytes(value)
        case str():
            return value.encode(errors="replace")
        case _:
            return as_json(value).encode()


def _can_be_sent(text: str) -> bool:
    """Half of a pair of surrogates, which JSON can spell, is no character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_deep_text(text: str) -> bool:
    if text.count("[") + text.count("{") <= DEEPEST:
        return False
    depth = 0
    for bracket in _BRACKET.finditer(_STRING.sub("", text)):
        depth += 1 if bracket.group() in "[{" else -1
        if depth > DEEPEST:
            return True
    return False


def _is_deep(value: Any) -> bool:
    """Level by level, so that it needs no stack itself and ends for a value that contains itself."""
    level = [value] if isinstance(value, (dict, list, tuple)) else []
    for _ in range(DEEPEST):
        if not level:
            return False
        below = {
            id(item): item
            for holder in level
            for item in (holder.values() if isinstance(holder, dict) else holder)
            if isinstance(item, (dict, list, tuple))
        }
        level = list(below.values())
    return bool(level)
