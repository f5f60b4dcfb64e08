"""The standard library, imported while the component is built.

A sandbox has no files, so a module that is not in memory when the component is made cannot be imported later. What
makes no sense in a sandbox (processes, sockets' servers, terminals, packaging) is left out, to keep the memory every
sandbox starts with small.
"""

from __future__ import annotations

import importlib
import sys

LEFT_OUT = {
    "antigravity", "cProfile", "code", "codeop", "compileall", "ctypes", "curses", "dbm", "doctest", "ensurepip",
    "fcntl", "ftplib", "getpass", "grp", "idlelib", "imaplib", "lib2to3", "mailbox", "mmap", "modulefinder",
    "multiprocessing", "nntplib", "nt", "pdb", "poplib", "profile", "pstats", "pty", "pwd", "py_compile", "pyclbr",
    "pydoc", "pydoc_data", "readline", "resource", "rlcompleter", "sched", "site", "smtplib", "socketserver", "sqlite3",
    "ssl", "subprocess", "syslog", "telnetlib", "termios", "test", "this", "tkinter", "trace", "tty", "turtle",
    "turtledemo", "venv", "webbrowser", "winreg", "winsound", "wsgiref", "xmlrpc", "zipapp",
}  # fmt: skip

#: Modules of packages that are used by their full names.
PARTS = (
    "collections.abc", "concurrent.futures", "email.message", "email.mime.multipart", "email.mime.text", "email.parser",
    "email.policy", "encodings.idna", "encodings.latin_1", "encodings.utf_16", "encodings.utf_32", "encodings.cp1252",
    "html.entities", "html.parser", "http.client", "http.cookiejar", "http.cookies", "importlib.resources", "json.tool",
    "logging.handlers", "os.path", "unittest.mock", "urllib.error", "urllib.parse", "urllib.request", "xml.dom.minidom",
    "xml.etree.ElementTree", "xml.sax.saxutils",
)  # fmt: skip


def bring() -> None:
    """Import everything that can be."""
    names = [name for name in sorted(sys.stdlib_module_names) if not name.startswith("_") and name not in LEFT_OUT]
    for name in [*names, *PARTS]:
        try:
            importlib.import_module(name)
        except Exception:  # noqa: BLE001 - not built into this interpreter, which is as good as left out
            continue
