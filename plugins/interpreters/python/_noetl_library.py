"""The standard library, imported while the component is built.

A sandbox has no files, so a module that is not in memory when the component is made cannot be imported later. What
makes no sense in a sandbox (processes, sockets' servers, terminals, packaging) is left out, to keep the memory every
sandbox starts with small. What is not left out and cannot be imported fails the build: an author must not be the first
who finds it missing.
"""

from __future__ import annotations

import encodings
import importlib
import pkgutil
import sys

import _noetl_zones as zones

LEFT_OUT = {
    "antigravity", "cProfile", "code", "codeop", "compileall", "ctypes", "curses", "dbm", "doctest", "ensurepip",
    "fcntl", "ftplib", "getpass", "grp", "idlelib", "imaplib", "lib2to3", "mailbox", "mmap", "modulefinder",
    "multiprocessing", "nntplib", "nt", "pdb", "poplib", "profile", "pstats", "pty", "pwd", "py_compile", "pyclbr",
    "pydoc", "pydoc_data", "readline", "resource", "rlcompleter", "sched", "site", "smtplib", "socketserver", "sqlite3",
    "ssl", "subprocess", "syslog", "telnetlib", "termios", "test", "this", "tkinter", "trace", "tty", "turtle",
    "turtledemo", "venv", "webbrowser", "winreg", "winsound", "wsgiref", "xmlrpc", "zipapp",
}  # fmt: skip

#: What is used without being imported by name, or by the full name of a part.
MUST_IMPORT = (
    "_strptime", "asyncio", "base64", "bisect", "calendar", "collections", "collections.abc", "concurrent.futures",
    "concurrent.futures.thread", "contextlib", "copy", "csv", "dataclasses", "datetime", "decimal", "difflib",
    "email.message", "email.mime.multipart", "email.mime.text", "email.parser", "email.policy", "enum", "fractions",
    "functools", "glob", "gzip", "hashlib", "heapq", "hmac", "html.entities", "html.parser", "http.client",
    "http.cookiejar", "http.cookies", "importlib.metadata", "importlib.metadata._adapters", "importlib.resources",
    "importlib.resources._adapters", "importlib.resources._functional", "importlib.resources.abc",
    "importlib.resources.readers", "importlib.resources.simple", "inspect", "io", "ipaddress", "itertools", "json",
    "json.tool", "logging", "logging.handlers", "math", "mimetypes", "numbers", "operator", "os.path", "pathlib",
    "pickle", "pprint", "queue", "random", "re", "secrets", "shlex", "statistics", "string", "struct", "tempfile",
    "textwrap", "threading", "time", "tomllib", "traceback", "types", "typing", "unicodedata", "unittest.mock",
    "urllib.error", "urllib.parse", "urllib.request", "uuid", "weakref", "xml.dom.minidom", "xml.etree.ElementTree",
    "xml.sax.saxutils", "zipfile", "zlib", "zoneinfo",
)  # fmt: skip

#: Encodings of other systems.
_FOREIGN = {"mbcs", "oem"}


def bring() -> None:
    """Import everything that can be."""
    for name in sorted(sys.stdlib_module_names):
        if not name.startswith("_") and name not in LEFT_OUT:
            _try(name)
    for found in pkgutil.iter_modules(encodings.__path__, "encodings."):
        if found.name.partition(".")[2] not in _FOREIGN:
            _try(found.name)
    for name in MUST_IMPORT:
        importlib.import_module(name)
    zones.bring()


def _try(name: str) -> None:
    try:
        importlib.import_module(name)
    except Exception:  # noqa: BLE001 - not built into this interpreter, which is as good as left out
        pass
