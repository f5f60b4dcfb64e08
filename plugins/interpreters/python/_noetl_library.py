"""The standard library, imported while the component is built.

A sandbox has no files, so a module that is not in memory when the component is made cannot be imported later: neither
by an author, nor by a part of the library that leaves an import of another part until a function needs it. So packages
are walked to their last part, but for what is left out for a reason (`_noetl_absent`). What has to be there and cannot
be imported fails the build: an author must not be the first who finds it missing.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from typing import Iterator

import _noetl_absent as absent
import _noetl_zones as zones

#: What is used without being imported by name, and what an author would be astonished to miss.
MUST_IMPORT = (
    "_ast_unparse", "_pylong", "_strptime", "argparse", "asyncio", "collections.abc", "concurrent.futures.thread",
    "configparser", "csv", "dataclasses", "datetime", "decimal", "email.generator", "email.mime.application",
    "email.mime.image", "email.mime.multipart", "email.mime.text", "email.parser", "email.policy", "fractions", "gzip",
    "hashlib", "hmac", "html.parser", "http.client", "http.cookiejar", "http.cookies", "importlib.metadata._adapters",
    "importlib.resources._adapters", "importlib.resources._functional", "importlib.resources.readers",
    "importlib.resources.simple", "inspect", "ipaddress", "json.tool", "logging.config", "logging.handlers", "math",
    "mimetypes", "os.path", "pathlib", "pickle", "pkgutil", "pprint", "queue", "random", "re", "secrets", "select",
    "selectors", "shlex", "shutil", "socket", "statistics", "string.templatelib", "struct", "tarfile", "tempfile",
    "threading", "tomllib", "traceback", "typing", "unicodedata", "unittest.mock", "urllib.error", "urllib.parse",
    "urllib.request", "urllib.robotparser", "uuid", "weakref", "xml.dom.expatbuilder", "xml.dom.minidom",
    "xml.dom.pulldom", "xml.etree.ElementTree", "xml.sax.expatreader", "xml.sax.saxutils", "zipfile", "zlib",
    "zoneinfo",
)  # fmt: skip


def bring() -> None:
    """Import everything that can be."""
    for name in sorted(sys.stdlib_module_names):
        if not name.startswith("_"):
            _bring(name)
    for name in MUST_IMPORT:
        importlib.import_module(name)
    zones.bring()


def _bring(name: str) -> None:
    """A module and all its parts."""
    if absent.is_left_out(name) or name.endswith(".__main__"):
        return
    try:
        module = importlib.import_module(name)
    except Exception:  # noqa: BLE001 - not built into this interpreter, which is as good as left out
        return
    for part in _parts(module):
        _bring(part)


def _parts(module) -> Iterator[str]:
    for found in pkgutil.iter_modules(getattr(module, "__path__", ())):
        yield f"{module.__name__}.{found.name}"
