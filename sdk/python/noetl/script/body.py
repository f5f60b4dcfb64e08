"""The code of a step, compiled: with `return` where it is written, and with the lines its author knows."""

from __future__ import annotations

import ast
import linecache
from types import CodeType
from typing import Any, Iterator

#: The name of the function that stands for the code; what a traceback says for code of a module.
_FUNCTION = "<module>"

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


class Body:
    """The text, and what it is called."""

    def __init__(self, text: str, name: str) -> None:
        self.text, self.name = text, name
        # Tracebacks show the line itself, and there is no file they could read it from.
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)

    def run(self, names: dict[str, Any]) -> Any:
        """Run it with these globals; what a `return` of its own gave."""
        tree = self._parsed()
        if not any(isinstance(node, ast.Return) for node in _own(tree)):
            exec(self._compiled(tree), names)
            return None
        exec(self._function(tree), names)
        return names.pop(_FUNCTION)()

    def _parsed(self) -> ast.Module:
        """The code, also where all of it is indented, as a block in a document may be."""
        try:
            return ast.parse(self.text, self.name)
        except IndentationError:
            try:
                tree = ast.parse(f"if True:\n{self.text}", self.name)
            except SyntaxError:
                tree = None
            if tree is None or len(tree.body) != 1:
                raise
            module = ast.Module(body=tree.body[0].body, type_ignores=[])
            return ast.increment_lineno(module, -1)

    def _function(self, tree: ast.Module) -> CodeType:
        """The code as a function. Its names stay globals, so that it can change what it was given."""
        outside = [node for node in tree.body if _stays_outside(node)]
        inside = [node for node in tree.body if not _stays_outside(node)]
        plain = self._compiled(_wrapped(outside, inside))
        function = next(code for code in plain.co_consts if isinstance(code, CodeType))
        names = sorted({*function.co_varnames, *function.co_cellvars})
        try:
            return self._compiled(_wrapped(outside, [ast.Global(names=names), *inside])) if names else plain
        except SyntaxError:
            # A name with a type beside it cannot be global.
            return plain

    def _compiled(self, tree: ast.Module) -> CodeType:
        return compile(tree, self.name, "exec", dont_inherit=True)


def _wrapped(outside: list[ast.stmt], inside: list[ast.stmt]) -> ast.Module:
    module = ast.parse("def function(): pass")
    function = module.body[0]
    function.name, function.body = _FUNCTION, inside
    first = next(node for node in inside if hasattr(node, "lineno"))
    ast.copy_location(function, first)
    module.body = [*outside, function]
    return ast.fix_missing_locations(module)


def _own(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node that is not part of a function or class."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, _SCOPES):
            yield node
            yield from _own(node)


def _stays_outside(node: ast.stmt) -> bool:
    """What only a module can say."""
    if not isinstance(node, ast.ImportFrom):
        return False
    return node.module == "__future__" or any(name.name == "*" for name in node.names)
