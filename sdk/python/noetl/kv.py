"""Small durable values of this plugin and tenant, for plugins that hold ``kv``.

Writes are staged: the rest of the call sees them, and they become true only when it succeeds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Iterator, Optional

from wit_world.imports import kv as _kv

from .host import ask


@dataclass(frozen=True)
class Entry:
    """A value with the version it was written at. Versions only grow."""

    value: bytes
    version: int

    def json(self) -> Any:
        return json.loads(self.value)


def entry(key: str) -> Optional[Entry]:
    """The value with its version; ``None`` when there is none."""
    found = ask(_kv.get, key)
    return None if found is None else Entry(bytes(found.value), found.version)


def get(key: str) -> Optional[bytes]:
    """The bytes under a key; ``None`` when there are none."""
    found = entry(key)
    return None if found is None else found.value


def get_json(key: str, default: Any = None) -> Any:
    """The JSON value under a key."""
    found = entry(key)
    return default if found is None else found.json()


def put(key: str, value: bytes | str) -> None:
    """Write a value, whatever was there."""
    ask(_kv.put, key, _encoded(value))


def put_json(key: str, value: Any) -> None:
    ask(_kv.put, key, json.dumps(value).encode())


def delete(key: str) -> None:
    """Remove a value; removing what is not there is no error."""
    ask(_kv.delete, key)


def compare_and_swap(key: str, expected: Optional[int], value: bytes | str) -> bool:
    """Write only if the version is still ``expected`` (``None``: only if the key is absent). ``False`` says that it is
    not; a conflict at the moment of the commit fails the whole call."""
    return ask(_kv.compare_and_swap, key, expected, _encoded(value))


def keys(prefix: str = "") -> Iterator[str]:
    """Keys that start with ``prefix``, in byte order."""
    after: Optional[str] = None
    while page := ask(_kv.list_keys, prefix, after, 1_000):
        yield from page
        after = page[-1]


def _encoded(value: bytes | str) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)
