"""Cryptographically strong randomness, for plugins that hold ``random``. Python's own ``random`` and ``secrets`` work
without it."""

from __future__ import annotations

from wit_world.imports import random as _random


def bytes(length: int) -> "__builtins__.bytes":  # noqa: A001 - named as the host names it
    """Random bytes, 64 KiB at most."""
    return _random.bytes(length)


def number() -> int:
    """A random number of 64 bits."""
    return _random.number()
