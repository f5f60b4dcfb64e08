"""What the code of a step gives back: a `return` of its own, the global `result`, or what its `main` answers."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any, Callable

from .body import Body
from .options import Options


def value_of(body: Body, names: dict[str, Any], options: Options) -> Any:
    try:
        returned = body.run(names)
        if returned is None:
            returned = names.get("result")
        if returned is None and callable(main := names.get("main")):
            returned = _called(main, names, options)
        return _awaited(returned)
    except SystemExit as end:
        # A script that ends itself well has still given what it gave.
        if end.code in (None, 0):
            return names.get("result")
        raise


def _called(main: Callable[..., Any], names: dict[str, Any], options: Options) -> Any:
    """With the parts of the input that it has parameters for; all of them, if it takes any."""
    offered = {name: names[name] for name in ("args", "context", "input_data") if name in names} | options.input
    parameters = inspect.signature(main).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        taken = {parameter.name for parameter in parameters}
        return main(**{name: value for name, value in offered.items() if name in options.input or name in taken})
    placed = [p.name for p in parameters if p.kind is p.POSITIONAL_ONLY and p.name in offered]
    named = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    return main(*(offered[name] for name in placed), **{name: offered[name] for name in named if name in offered})


def _awaited(value: Any) -> Any:
    if not inspect.isawaitable(value):
        return value
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(_waiting(value))
    finally:
        loop.close()


async def _waiting(value: Any) -> Any:
    return await value
