"""What the code of a step prints: kept for its result, and passed on to the tool's log."""

from __future__ import annotations

import io
import sys

#: Bytes of each stream that are kept.
MOST = 64 << 10


class _Tee(io.RawIOBase):
    """Keeps the beginning of what is written, and passes all of it on."""

    def __init__(self, on: io.TextIOBase) -> None:
        self.kept, self.beyond, self._on = bytearray(), 0, on

    def writable(self) -> bool:
        return True

    def write(self, data) -> int:
        data = bytes(data)
        self.keep(data)
        self._on.write(data.decode(errors="replace"))
        return len(data)

    def keep(self, data: bytes) -> None:
        room = MOST - len(self.kept)
        self.kept += data[:room]
        self.beyond += max(0, len(data) - room)

    def text(self) -> str:
        text = self.kept.decode(errors="replace")
        return f"{text}\n[{self.beyond} more bytes]" if self.beyond else text


class Streams:
    """`sys.stdout` and `sys.stderr`, as long as the code runs."""

    def __init__(self) -> None:
        self._before = (sys.stdout, sys.stderr)
        self._tees = tuple(map(_Tee, self._before))

    def __enter__(self) -> Streams:
        sys.stdout, sys.stderr = (
            io.TextIOWrapper(io.BufferedWriter(tee), "utf-8", "backslashreplace", line_buffering=True)
            for tee in self._tees
        )
        self._own = (sys.stdout, sys.stderr)
        return self

    def __exit__(self, *_) -> None:
        self.flush()
        sys.stdout, sys.stderr = self._before

    def flush(self) -> None:
        for stream in self._own:
            # The code may have closed it, and then everything is written.
            if not stream.closed:
                stream.flush()

    def complain(self, text: str) -> None:
        """More for standard error."""
        self._own[1].write(text) if not self._own[1].closed else self._tees[1].keep(text.encode())

    def texts(self) -> dict[str, str]:
        self.flush()
        return {"stdout": self._tees[0].text(), "stderr": self._tees[1].text()}
