"""What libraries ask about files they came with: their data (`importlib.resources`), and how they were installed
(`importlib.metadata`). Both look at a disk unless they are told where else, and a sandbox has none: without this a
library that is there would find its own folder empty.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.resources
import importlib.resources.abc
import io
import re
from typing import Iterator, Mapping, Optional


class Place(importlib.resources.abc.Traversable):
    """A file or folder of the bundle; the bundle's own folder has the path ``""``."""

    def __init__(self, files: Mapping[str, bytes], path: str) -> None:
        self._files = files
        self._path = path

    @property
    def name(self) -> str:
        return self._path.rpartition("/")[2]

    def is_file(self) -> bool:
        return self._path in self._files

    def is_dir(self) -> bool:
        return any(path.startswith(self._inside()) for path in self._files)

    def exists(self) -> bool:
        return self.is_file() or self.is_dir()

    def iterdir(self) -> Iterator[Place]:
        if self.is_file():
            raise NotADirectoryError(f"{self._path} is a file of the plugin")
        if not self.is_dir():
            raise FileNotFoundError(f"the plugin has no folder {self._path}")
        before = len(self._inside())
        names = {path[before:].partition("/")[0] for path in self._files if path.startswith(self._inside())}
        return iter([self.joinpath(name) for name in sorted(names)])

    def joinpath(self, *names) -> Place:
        parts = [part for part in self._path.split("/") if part]
        for part in (part for name in names for part in str(name).split("/")):
            if part == "..":
                # Above the bundle's own folder there is nothing, as above the root of a disk.
                parts = parts[:-1]
            elif part not in ("", "."):
                parts.append(part)
        return Place(self._files, "/".join(parts))

    def open(self, mode: str = "r", *arguments, **named):
        if not self.is_file():
            why = IsADirectoryError if self.is_dir() else FileNotFoundError
            raise why(f"the plugin has no file {self._path}")
        content = io.BytesIO(self._files[self._path])
        return content if "b" in mode else io.TextIOWrapper(content, *arguments, **named)

    def read_bytes(self) -> bytes:
        with self.open("rb") as file:
            return file.read()

    def read_text(self, encoding: Optional[str] = None, errors: Optional[str] = None) -> str:
        with self.open("r", encoding=encoding or "utf-8", errors=errors) as file:
            return file.read()

    def __str__(self) -> str:
        return self._path

    def __fspath__(self) -> str:
        # Nothing can be opened by it, but the error then names the file, and advice can be given.
        return self._path

    def __repr__(self) -> str:
        return f"Place({self._path!r})"

    def _inside(self) -> str:
        return f"{self._path}/" if self._path else ""


@importlib.resources.as_file.register(Place)
@contextlib.contextmanager
def _as_file(place: Place) -> Iterator[Place]:
    """As it is: there is no disk to put a copy on, and it is read by the methods that a path has, too."""
    yield place


class Resources(importlib.resources.abc.TraversableResources):
    """The files beside a module."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def files(self) -> Place:
        return self._place


class Installed(importlib.metadata.Distribution):
    """A library by the folder that its installation left beside it."""

    def __init__(self, about: Place, root: Place) -> None:
        self._about = about
        self._root = root

    def read_text(self, filename) -> Optional[str]:
        file = self._about.joinpath(filename)
        return file.read_text() if file.is_file() else None

    def locate_file(self, path) -> Place:
        return self._root.joinpath(path)


def installed(files: Mapping[str, bytes], roots: tuple[str, ...], name: Optional[str]) -> Iterator[Installed]:
    """The libraries below these folders, or those of a name."""
    for root in roots:
        folder = Place(files, root.rstrip("/"))
        if not folder.is_dir():
            continue
        for about in folder.iterdir():
            stem, _, ending = about.name.rpartition(".")
            if ending not in ("dist-info", "egg-info") or not about.is_dir():
                continue
            if name is None or _normal(stem.partition("-")[0]) == _normal(name):
                yield Installed(about, folder)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "_", name).lower()
