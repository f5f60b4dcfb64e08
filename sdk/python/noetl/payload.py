"""Bulk data by reference, for plugins that hold ``payload``.

A payload that is only passed on never enters the plugin: an HTTP body can go into an object without being read.
"""

from __future__ import annotations

import json
from typing import Any, Iterator, Optional

from wit_world.imports import payload as _payload

from .host import ask

_PIECE = 1 << 20


class Payload:
    """Immutable bytes somewhere in the platform."""

    def __init__(self, handle: _payload.Payload) -> None:
        self._handle: Optional[_payload.Payload] = handle

    @property
    def handle(self) -> _payload.Payload:
        """The host's own object."""
        if self._handle is None:
            raise ValueError("the payload was given away")
        return self._handle

    def give(self) -> _payload.Payload:
        """The host's own object, for somebody who takes it; the payload cannot be used any more."""
        handle, self._handle = self.handle, None
        return handle

    @property
    def size(self) -> int:
        return self.handle.size()

    @property
    def media_type(self) -> str:
        return self.handle.media_type()

    @property
    def digest(self) -> str:
        """The sha256 of the content, as 64 hexadecimal digits."""
        return self.handle.digest()

    def read(self, offset: int = 0, length: Optional[int] = None) -> bytes:
        """A range of it; the whole of it by default."""
        end = self.size if length is None else min(offset + length, self.size)
        return b"".join(self._pieces(offset, end))

    def text(self) -> str:
        return self.read().decode()

    def json(self) -> Any:
        return json.loads(self.read())

    def chunks(self, size: int = _PIECE) -> Iterator[bytes]:
        """The content, piece by piece."""
        yield from self._pieces(0, self.size, size)

    def _pieces(self, offset: int, end: int, size: int = _PIECE) -> Iterator[bytes]:
        while offset < end:
            piece = ask(self.handle.read, offset, min(size, end - offset))
            if not piece:
                return
            offset += len(piece)
            yield piece


class Writer:
    """Collects bytes into a new payload. One that is not finished leaves nothing behind."""

    def __init__(self, media_type: str = "application/octet-stream") -> None:
        self._writer = _payload.Writer(media_type)

    def write(self, data: bytes | str) -> None:
        ask(self._writer.write, data.encode() if isinstance(data, str) else bytes(data))

    def splice(self, source: Payload, offset: int = 0, length: Optional[int] = None) -> None:
        """Append a range of another payload without it entering the plugin."""
        length = source.size - offset if length is None else length
        ask(self._writer.splice, source.handle, offset, length)

    def finish(self) -> Payload:
        return Payload(ask(_payload.Writer.finish, self._writer))


def of(data: bytes | str, media_type: str = "application/octet-stream") -> Payload:
    """A payload with these bytes."""
    writer = Writer(media_type)
    writer.write(data)
    return writer.finish()


def of_json(value: Any) -> Payload:
    return of(json.dumps(value), "application/json")
