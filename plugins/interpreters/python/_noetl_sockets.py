"""`socket` where there is none: every way to a connection raises an `OSError` at the author's line.

The module itself is there, because half of the world's libraries import it, and so are its constants and what only
computes (`inet_pton`, `htons`). Behind the rest is an import that the host never links, and touching that ends the
call: no `except` of the author's would see it, and no line of theirs would be named. Libraries try sockets out and go
on without them, so the errors here are those a machine without a network raises.
"""

from __future__ import annotations

import _socket
import errno
import socket
from typing import Any, Callable, NoReturn

WHY = "a sandbox has no sockets: use `noetl.http` or `urllib.request`"

#: The name of a machine that is nobody's.
HOST = "localhost"

#: Functions that would open something, and those that would ask for a name or an address.
_OPENING = ("create_connection", "create_server", "dup", "fromfd", "fromshare", "socketpair")
_RESOLVING = ("getaddrinfo", "gethostbyname", "gethostbyname_ex", "getnameinfo")


def install() -> None:
    # The class stays what it is, for those who inherit from it or ask whether something is one; none can be made.
    socket.socket.__init__ = _refused("__init__", no_socket)
    _socket.socket = _socket.SocketType = socket.SocketType = socket.socket
    for name in _OPENING:
        _replace(name, no_socket)
    for name in _RESOLVING:
        _replace(name, _no_address)
    _replace("gethostbyaddr", _no_host)
    for module in (socket, _socket):
        module.gethostname = lambda: HOST
    # An address of the sixth version is no more reached than others; libraries ask before they try.
    socket.has_ipv6 = _socket.has_ipv6 = False


def _replace(name: str, error: Callable[[], OSError]) -> None:
    for module in (socket, _socket):
        if hasattr(module, name):
            setattr(module, name, _refused(name, error))


def _refused(name: str, error: Callable[[], OSError]) -> Callable[..., NoReturn]:
    def refused(*_: Any, **__: Any) -> NoReturn:
        raise error()

    refused.__name__ = refused.__qualname__ = name
    return refused


def no_socket() -> OSError:
    return OSError(errno.EAFNOSUPPORT, WHY)


def _no_address() -> OSError:
    return socket.gaierror(socket.EAI_FAIL, WHY)


def _no_host() -> OSError:
    # Of the errors that a search for a host has: it cannot be mended by trying again.
    return socket.herror(3, WHY)
