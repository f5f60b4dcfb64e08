"""Time zones for `zoneinfo`: the data of the package `tzdata`, read while the component is built.

`zoneinfo` takes it from files of the system or of that package, and a sandbox has none; only where it looks for them
is replaced.
"""

from __future__ import annotations

import io
import os
import zoneinfo
from zoneinfo import _common

_zones: dict[str, bytes] = {}


def bring() -> None:
    import tzdata

    top = os.path.join(os.path.dirname(tzdata.__file__), "zoneinfo")
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                content = file.read()
            # Beside the zones there are lists of them and the files that make packages of the folders.
            if content.startswith(b"TZif"):
                _zones[os.path.relpath(path, top).replace(os.sep, "/")] = content
    zoneinfo.reset_tzpath(())
    _common.load_tzdata = _load
    zoneinfo.available_timezones = lambda: set(_zones)


def _load(key: str) -> io.BytesIO:
    try:
        return io.BytesIO(_zones[key])
    except KeyError:
        raise zoneinfo.ZoneInfoNotFoundError(f"No time zone found with key {key}") from None
