"""What a step says about the code it runs."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, Optional

from ..failure import Failure
from . import source
from .elsewhere import marked

#: Under which code of the step itself is known in tracebacks.
CODE = "code"


@dataclass(frozen=True)
class Library:
    """One import that is made for the code: ``alias`` is a module, or a name of one."""

    alias: str
    module: str
    name: Optional[str] = None

    def bring(self) -> Any:
        try:
            found = importlib.import_module(self.module)
        except ImportError as error:
            raise Failure(
                "missing_module",
                f"`libs` asks for the module `{self.module}`, which cannot be imported: {error}. A step has Python's"
                " standard library; other libraries come with a tool of your own that has them in `vendor/`",
            ) from None
        if self.name is None:
            return found
        try:
            return getattr(found, self.name)
        except AttributeError:
            raise Failure(
                "missing_module", f"`libs` asks for `{self.name}` of the module `{self.module}`, which has none"
            ) from None


@dataclass(frozen=True)
class Options:
    code: str
    #: What the code is called in tracebacks.
    name: str
    input: dict[str, Any]
    libraries: list[Library]
    #: `execution_id`, `step` and `attempt`, and as far as the code may read them `variables` and `results`.
    context: dict[str, Any]

    @classmethod
    def read(cls, arguments: Any) -> Options:
        if not isinstance(arguments, dict):
            raise _wrong("the arguments are one object")
        code, name = _code(arguments)
        given = arguments.get("input")
        if given is None:
            given = arguments.get("args")
        given = marked(_mapping("input", given))
        context = {"execution_id": None, "step": None, **marked(_mapping("context", arguments.get("context")))}
        return cls(code, name, given, _libraries(arguments.get("libs")), context)

    def bring_libraries(self, names: dict[str, Any]) -> None:
        for library in self.libraries:
            names[library.alias] = library.bring()


def _code(arguments: dict[str, Any]) -> tuple[str, str]:
    code, script = arguments.get("code"), arguments.get("script")
    if code is not None and script is not None:
        raise _wrong("write `code` or `script`, not both")
    if script is not None:
        return source.read(source.written(script) if isinstance(script, str) else _mapping("script", script))
    if not isinstance(code, str):
        raise _wrong("`code` is missing: the text to run")
    return code, CODE


def _libraries(libs: Any) -> list[Library]:
    if libs is None:
        return []
    if isinstance(libs, list):
        # As `import a.b` does, the name of the whole is bound.
        whole = [_text("libs", module) for module in libs]
        parts = [Library(module.partition(".")[0], module) for module in whole]
        return [*parts, *(Library(part.alias, part.alias) for part in parts if part.alias != part.module)]
    return [_library(alias, what) for alias, what in _mapping("libs", libs).items()]


def _library(alias: str, what: Any) -> Library:
    if not isinstance(what, dict):
        return Library(alias, _text(f"libs.{alias}", what))
    module = _text(f"libs.{alias}.from", what.get("from"))
    name = what.get("import")
    return Library(alias, module, None if name is None else _text(f"libs.{alias}.import", name))


def _mapping(name: str, value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _wrong(f"`{name}` is an object and not `{value!r:.80}`")
    return value


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise _wrong(f"`{name}` is text and not `{value!r:.80}`")
    return value


def _wrong(message: str) -> Failure:
    return Failure("invalid_input", message)
