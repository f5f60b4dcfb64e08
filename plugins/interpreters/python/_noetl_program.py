"""A plugin's files as modules: they are imported from memory, under the names and lines their author knows.

A folder of the bundle is also an entry of a search path, as a folder of a disk is: libraries ask `pkgutil` what is in
their own, and add others to `sys.path`.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import linecache
import posixpath
import sys
from types import CodeType, ModuleType
from typing import Iterator, Optional

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

#: Where Python looked while the interpreter was built. A plugin's folder may have such a name and is not meant.
_OF_THE_BUILD = frozenset(sys.path)


class Program(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader, importlib.abc.ResourceLoader):
    """Finds and loads the modules of one plugin."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self._files = files
        self._folders = {path[:at] for path in files for at, letter in enumerate(path) if letter == "/"}
        self._roots = ("", VENDOR)
        sys.meta_path.insert(0, self)
        sys.path_hooks.insert(0, self._folder)

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

    def how_to_read(self, path: str) -> Optional[str]:
        """The expression that reads what a path names, if the bundle has it."""
        path = _inside(path)
        if path not in self._files and path not in self._folders:
            return None
        root = next(root for root in sorted(self._roots, key=len, reverse=True) if path.startswith(root))
        package, _, rest = path.removeprefix(root).partition("/")
        anchor = f'"{package}"'
        if not package.isidentifier() or (not rest and path in self._files):
            # It is part of no package, and lies beside the module that wants it.
            anchor, rest = "__name__", path.removeprefix(root)
        place = f'.joinpath("{rest}")' if rest else ""
        return f"`importlib.resources.files({anchor}){place}.{'iterdir' if path in self._folders else 'read_text'}()`"

    # What the import system asks for.

    def find_spec(self, fullname: str, path=None, target=None):
        return self._find(fullname, [f"{root}{fullname.replace('.', '/')}" for root in self._roots])

    def iter_modules(self, prefix: str = "") -> Iterator[tuple[str, bool]]:
        """What can be imported by a name without dots, for `pkgutil`."""
        for root in self._roots:
            yield from self._modules(root, prefix)

    def _find(self, fullname: str, places: list[str]) -> Optional[importlib.machinery.ModuleSpec]:
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

    def _folder(self, path: str) -> Folder:
        """The hook that makes an entry of a search path a finder."""
        if path in _OF_THE_BUILD or _inside(path) not in self._folders:
            raise ImportError(f"the bundle has no folder {path}")
        return Folder(self, _inside(path) + "/")

    def _modules(self, folder: str, prefix: str) -> Iterator[tuple[str, bool]]:
        """Modules and packages in a folder, whose path ends with `/` or is empty."""
        inside = sorted(path.removeprefix(folder) for path in self._files if path.startswith(folder))
        for path in inside:
            name, slash, rest = path.partition("/")
            if slash and rest == "__init__.py" and name.isidentifier():
                yield prefix + name, True
            elif not slash and name.endswith(".py") and name != "__init__.py":
                yield prefix + name.removesuffix(".py"), False

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


class Folder:
    """One folder of a program, as an entry of a search path."""

    def __init__(self, program: Program, path: str) -> None:
        self._program, self._path = program, path

    def find_spec(self, fullname: str, target=None) -> Optional[importlib.machinery.ModuleSpec]:
        return self._program._find(fullname, [self._path + fullname.rpartition(".")[2]])

    def iter_modules(self, prefix: str = "") -> Iterator[tuple[str, bool]]:
        return self._program._modules(self._path, prefix)


def _inside(path: str) -> str:
    """A path as the bundle has it: its folder is the root of what a sandbox sees, and where it works."""
    return posixpath.normpath("/" + path).lstrip("/")
