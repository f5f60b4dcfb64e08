"""`asyncio` where there is nothing to wait for but time: its usual loop would begin with a pair of sockets."""

from __future__ import annotations

import asyncio
import asyncio.events
import time


class _Clock:
    """Stands where the loop expects something that watches sockets."""

    def select(self, timeout):
        if timeout is None:
            raise RuntimeError("the code waits for something that cannot come: no task is left that could bring it")
        if timeout > 0:
            time.sleep(timeout)
        return []


class Loop(asyncio.BaseEventLoop):
    def __init__(self) -> None:
        super().__init__()
        self._selector = _Clock()

    def _process_events(self, events) -> None:
        pass

    def _write_to_self(self) -> None:
        # Nobody else can wake it, because there are no other threads.
        pass


def install() -> None:
    asyncio.new_event_loop = asyncio.events.new_event_loop = Loop
