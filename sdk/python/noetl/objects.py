"""Named payloads of this plugin and tenant, for plugins that hold ``objects`` and ``payload``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator, Optional

from wit_world.imports import objects as _objects

from .host import ask
from .payload import Payload


@dataclass(frozen=True)
class Info:
    """What is known of an object without opening it."""

    key: str
    size: int
    digest: str
    media_type: str


def open(key: str) -> Optional[Payload]:  # noqa: A001 - named as the host names it
    """The object's content; ``None`` when there is no such key."""
    found = ask(_objects.open, key)
    return None if found is None else Payload(found)


def put(key: str, content: Payload) -> Info:
    """Name a payload. Its bytes do not pass through the plugin."""
    return _info(ask(_objects.put, key, content.handle))


def delete(key: str) -> None:
    """Remove a name; removing what is not there is no error."""
    ask(_objects.delete, key)


def entries(prefix: str = "") -> Iterator[Info]:
    """Objects whose keys start with ``prefix``, in byte order."""
    after: Optional[str] = None
    while page := ask(_objects.list_objects, prefix, after, 1_000):
        yield from map(_info, page)
        after = page[-1].key


def _info(found: _objects.ObjectInfo) -> Info:
    return Info(found.key, found.size, found.digest, found.media_type)
