"""What of the standard library is not in a sandbox, by the reason: a module is left out for one of these, and whoever
imports it is told which.

It is for what makes no sense in a sandbox, and keeps the memory that every one starts with small. What this Python is
built without (`bz2`, `lzma`, `ctypes`) needs no list to be missing, only a word why.
"""

from __future__ import annotations

_SOCKETS = "a sandbox has no sockets. `noetl.http` and `urllib.request` reach the outside"
_PROCESSES = "a sandbox has no processes and no signals of others"
_TERMINAL = "a sandbox has no terminal, no screen and nobody who sits at it"
_STORE = "a sandbox has no files that stay. `noetl.kv` and `noetl.objects` keep data"
_MACHINE = "a sandbox has no users, devices and memory of a machine"
_TOOLS = "it is for those who develop, test and package programs, which is done outside"
_COMPILED = "it is machine code at heart, and this Python is built without it"

_NAMES = {
    _SOCKETS: (
        "ftplib", "http.server", "imaplib", "nntplib", "poplib", "smtplib", "socketserver", "ssl", "telnetlib",
        "wsgiref", "xmlrpc",
    ),
    _PROCESSES: (
        "concurrent.futures.interpreter", "concurrent.futures.process", "concurrent.interpreters", "multiprocessing",
        "pty", "subprocess",
    ),
    _TERMINAL: (
        "antigravity", "code", "codeop", "curses", "getpass", "idlelib", "readline", "rlcompleter", "termios", "this",
        "tkinter", "tty", "turtle", "turtledemo", "webbrowser",
    ),
    _STORE: ("dbm", "mailbox", "sqlite3"),
    _MACHINE: (
        "asyncio.proactor_events", "asyncio.windows_events", "asyncio.windows_utils", "encodings.mbcs", "encodings.oem",
        "fcntl", "grp", "mmap", "msvcrt", "nt", "pwd", "resource", "syslog", "winreg", "winsound",
    ),
    _TOOLS: (
        "asyncio.tools", "cProfile", "compileall", "doctest", "ensurepip", "importlib.metadata.diagnose", "lib2to3",
        "modulefinder", "pdb", "profile", "pstats", "py_compile", "pyclbr", "pydoc", "pydoc_data", "site", "test",
        "trace", "venv", "zipapp",
    ),
    _COMPILED: (
        "bz2", "compression.bz2", "compression.lzma", "compression.zstd", "ctypes", "encodings.bz2_codec", "lzma",
    ),
}  # fmt: skip

_WHY = {name: why for why, names in _NAMES.items() for name in names}


def why(module: str) -> str:
    """Why a module of the standard library cannot be imported."""
    while module:
        if reason := _WHY.get(module):
            return reason
        module = module.rpartition(".")[0]
    return "this Python is built without it"


def is_left_out(module: str) -> bool:
    """Whether it is not even tried; a part of what is left out is left out with it."""
    return any(module == name or module.startswith(f"{name}.") for name in _WHY)
