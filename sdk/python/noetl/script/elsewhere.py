"""Results whose bulk is in a payload and not in them, as code sees them.

Rows of a large SQL result and large bodies of HTTP are kept beside the result. ``result.get("rows", [])`` would be an empty
list, and the step would go through nothing and succeed. So these names raise, as they do in templates; everything else of
such a result is there.
"""

from __future__ import annotations

from typing import Any, Optional

from ..failure import Failure

#: How far below the input there are results.
_DEEPEST = 4

_ROWS = (
    ("rows",),
    "the rows are too large for a result and are a table in a payload (`_ref` of the result): select fewer of them, hand"
    " `_ref` on, or move them with the tool `transfer`",
)
_BODY = (
    ("data", "body"),
    "the body is not in the result but in a payload (`_ref` of the result): hand `_ref` on as `body_ref` of an `http` step,"
    " or read it with the tool `artifact`",
)


class Elsewhere(dict[str, Any]):
    """A result without its bulk."""

    def __init__(self, fields: dict[str, Any], names: tuple[str, ...], why: str) -> None:
        super().__init__(fields)
        self._names = names
        self._why = why

    def __missing__(self, key: Any) -> Any:
        if key in self._names:
            raise Failure("elsewhere", self._why)
        raise KeyError(key)

    def get(self, key: Any, default: Any = None) -> Any:
        if key in self._names and key not in self:
            raise Failure("elsewhere", self._why)
        return super().get(key, default)


def marked(value: Any, depth: int = 0) -> Any:
    """The value, with results that lack their bulk in the place of such maps."""
    if not isinstance(value, dict) or depth > _DEEPEST:
        return value
    for key, field in value.items():
        if isinstance(field, dict):
            value[key] = marked(field, depth + 1)
    missing = _missing(value)
    return value if missing is None else Elsewhere(value, *missing)


def _missing(fields: dict[str, Any]) -> Optional[tuple[tuple[str, ...], str]]:
    if "affected_rows" in fields and "columns" in fields and _is_number(fields.get("row_count")):
        kind = _ROWS
    elif "_ref" in fields and _is_number(fields.get("status_code")):
        kind = _BODY
    else:
        return None
    is_there = any(name in fields for name in kind[0])
    return None if is_there or "_truncated" in fields or "_omitted" in fields else kind


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
