"""Texts that can be sent to the host, of whatever an author gives."""

from __future__ import annotations

from typing import Any


def text(value: Any) -> str:
    """What ``str`` says of it. Half of a pair of surrogates, which JSON can spell, is no character: it is written as its
    escape."""
    try:
        said = str(value)
    except Exception:  # noqa: BLE001 - `str` of a value is code of the author's
        said = f"<{type(value).__name__} without a text>"
    return said.encode("utf-8", "backslashreplace").decode()
