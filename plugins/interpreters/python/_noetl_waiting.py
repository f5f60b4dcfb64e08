"""`asyncio` where there is nothing to wait for but time: its usual loop would begin with a pair of sockets."""

from __future__ import annotations

import asyncio
import asyncio.events
import time
from typing import Any, NoReturn

import _noetl_sockets as sockets


class _Clock:
    """Stands where the loop expects something that watches sockets."""

    def select(self, timeout):
        if timeout is None:
            raise RuntimeError("the code waits for something that cannot come: no task is left that could bring it")
        if timeout > 0:
            time.sleep(timeout)
        return []


class Loop(asyncio.BaseEventLoop):
    def __init__(self, selector: Any = None) -> None:
        super().__init__()
        self._selector = _Clock()

    def _process_events(self, events) -> None:
        pass

    def _write_to_self(self) -> None:
        # Nobody else can wake it, because there are no other threads.
        pass

    async def create_server(self, *_: Any, **__: Any) -> NoReturn:
        # Of its own it would swallow the errors of sockets one by one and end with another.
        raise sockets.no_socket()

    def run_in_executor(self, executor, function, *arguments):
        """At once: there is no thread that could do it meanwhile."""
        done = self.create_future()
        try:
            done.set_result(function(*arguments))
        except Exception as error:  # noqa: BLE001 - it is for whoever waits
            done.set_exception(error)
        return done


def until_done(value: Any) -> Any:
    """What an awaitable gives in the end."""

    async def wait() -> Any:
        return await value

    return asyncio.run(wait())


def install() -> None:
    asyncio.new_event_loop = asyncio.events.new_event_loop = Loop
    # Names a caller may ask for a loop by; not every version of Python has all of them.
    for name in ("EventLoop", "SelectorEventLoop"):
        if hasattr(asyncio, name):
            setattr(asyncio, name, Loop)
    for name in ("DefaultEventLoopPolicy", "_DefaultEventLoopPolicy"):
        if policy := vars(asyncio).get(name) or vars(asyncio.events).get(name):
            policy._loop_factory = Loop
