"""Files of the folder the operator names (``files.folder``), for plugins that hold ``files``."""

from __future__ import annotations

from wit_world.imports import files as _files

from .host import ask


def read(path: str) -> bytes:
    """The content of a file, by its path below the folder: ``scripts/clean.py``."""
    return bytes(ask(_files.read, path))


def text(path: str) -> str:
    return read(path).decode()
