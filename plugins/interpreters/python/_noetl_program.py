"""A plugin's files as modules: they are imported from memory, under the names and lines their author knows."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import linecache
import sys
from types import CodeType, ModuleType
from typing import Optional

import _noetl_resources as resources

#: What is looked for below the plugin's folder, beside what is in it: what `pip install --target vendor` put there.
VENDOR = "vendor/"

#: Endings of modules that are machine code.
_COMPILED = (".so", ".pyd", ".dylib")


#: Modules that are there before any program is, in every Python: a file of the same name is not theirs to be found.
_ALWAYS = {
    "__main__", "_frozen_importlib", "_frozen_importlib_external", "abc", "builtins", "codecs", "encodings", "importlib",
    "io", "os", "posixpath", "sys", "zipimport", "noetl", "wit_world", "componentize_py_runtime",
    "componentize_py_types", "componentize_py_async_support",
}  # fmt: skip


class Program(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader, importlib.abc.ResourceLoader):
    """Finds and loads the modules of one plugin."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self._files = files
        self._folders = {path[:at] for path in files for at, letter in enumerate(path) if letter == "/"}
        self._roots = ("", VENDOR)
        sys.meta_path.insert(0, self)

    def start(self, entry: str) -> ModuleType:
        """Run the entry and give its module."""
        if entry not in self._files:
            raise ImportError(f"the bundle has no file {entry}")
        beside = entry[: entry.rfind("/") + 1]
        # Where Python looks first when it is given a file to run.
        self._roots = tuple(dict.fromkeys((beside, "", VENDOR)))
        self._take_names(entry, beside)
        name = entry.removesuffix(".py").replace("/", ".")
        module = importlib.util.module_from_spec(self._spec(name, entry))
        # Nobody has to import the entry, which may have the name of a module that it imports itself.
        sys.modules.setdefault(name, module)
        self.exec_module(module)
        return module

    def _take_names(self, entry: str, beside: str) -> None:
        """Forgets modules of the library that the plugin has a file for beside its entry: the author's own go first, as
        they do where Python runs from a folder."""
        own = set()
        for root in {beside, ""}:
            inside = {path.removeprefix(root) for path in self._files if path.startswith(root) and path.endswith(".py")}
            own |= {path.removesuffix(".py").removesuffix("/__init__") for path in inside - {entry.removeprefix(root)}}
        own = {name for name in own if "/" not in name} - _ALWAYS
        for name in [name for name in sys.modules if name.partition(".")[0] in own]:
            del sys.modules[name]

    def has(self, path: str) -> bool:
        return path in self._files

    def brings(self, name: str) -> bool:
        """Whether a module of this name, or parts of it, are among the files."""
        return self.find_spec(name) is not None

    def compiled(self, name: str) -> Optional[str]:
        """The file of a module that is machine code, which is there and cannot run."""
        for place in (f"{root}{name.replace('.', '/')}." for root in self._roots):
            for path in self._files:
                if path.startswith(place) and "/" not in path[len(place) :] and path.endswith(_COMPILED):
                    return path
        return None

    # What the import system asks for.

    def find_spec(self, fullname: str, path=None, target=None):
        places = [f"{root}{fullname.replace('.', '/')}" for root in self._roots]
        for place in places:
            if f"{place}/__init__.py" in self._files:
                return self._spec(fullname, f"{place}/__init__.py", [place])
            if f"{place}.py" in self._files:
                return self._spec(fullname, f"{place}.py")
        # A folder alone is a package too, after all that have a file.
        folders = [place for place in places if place in self._folders]
        if not folders:
            return None
        spec = importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        spec.submodule_search_locations = folders
        return spec

    def find_distributions(self, context=importlib.metadata.DistributionFinder.Context()):
        return resources.installed(self._files, self._roots, context.name)

    def get_resource_reader(self, fullname: str) -> Optional[resources.Resources]:
        spec = self.find_spec(fullname)
        if spec is None:
            return None
        inside = spec.submodule_search_locations or [spec.origin.rpartition("/")[0]]
        return resources.Resources(resources.Place(self._files, inside[0]))

    def exec_module(self, module: ModuleType) -> None:
        path = module.__spec__.origin
        if path is None:
            # A folder alone has nothing to run.
            return
        exec(self._compiled(path), module.__dict__)

    def get_data(self, path: str) -> bytes:
        try:
            return self._files[path]
        except KeyError:
            raise FileNotFoundError(f"the bundle has no file {path}") from None

    def get_source(self, fullname: str) -> str:
        return self._text(self._path(fullname))

    def get_code(self, fullname: str) -> CodeType:
        return self._compiled(self._path(fullname))

    def is_package(self, fullname: str) -> bool:
        return self._path(fullname).endswith("/__init__.py")

    def _path(self, fullname: str) -> str:
        spec = self.find_spec(fullname)
        if spec is None or spec.origin is None:
            raise ImportError(f"the bundle has no module {fullname}")
        return spec.origin

    def _spec(self, name: str, path: str, inside: Optional[list[str]] = None) -> importlib.machinery.ModuleSpec:
        spec = importlib.machinery.ModuleSpec(name, self, origin=path, is_package=inside is not None)
        spec.submodule_search_locations = inside
        # So that the module's `__file__` is what its author calls it.
        spec.has_location = True
        return spec

    def _text(self, path: str) -> str:
        try:
            return importlib.util.decode_source(self.get_data(path))
        except (UnicodeDecodeError, SyntaxError) as error:
            how = "save it as UTF-8, or name its encoding in its first line: # -*- coding: latin-1 -*-"
            raise SyntaxError(f"{path} cannot be read as text ({error}): {how}") from None

    def _compiled(self, path: str) -> CodeType:
        text = self._text(path)
        # Tracebacks show the line itself, and there is no file they could read it from.
        linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
        return compile(text, path, "exec", dont_inherit=True)
