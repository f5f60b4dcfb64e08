"""Time, for plugins that hold ``clock``. Python's own ``time`` and ``datetime`` work without it."""

from __future__ import annotations

from wit_world.imports import clock as _clock


def now() -> float:
    """Seconds since 1970-01-01T00:00:00Z."""
    return _clock.now() / 1e9


def monotonic() -> float:
    """Seconds since an arbitrary moment of this call; never goes back."""
    return _clock.monotonic() / 1e9
