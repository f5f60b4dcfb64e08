"""Code of a step, run as playbooks expect it: what ``tools/python`` does, for whoever makes a tool of their own.

A tenant that wants libraries in its steps pushes a plugin with them in ``vendor/`` and binds it in the place of
``tools/python``::

    from noetl import script

    def call(input):
        return script.run(input)

It is part of the interpreter, so that no call has to compile it.
"""

from __future__ import annotations

import json
import sys
from types import ModuleType
from typing import Any

from ..response import Response
from . import answer, convention
from .body import Body
from .options import Options
from .streams import Streams


def run(arguments: dict[str, Any]) -> Response:
    """Run the code of a step, as ``arguments`` have it: ``code`` or ``script``, ``input``, ``libs``."""
    options = Options.read(arguments)
    body = Body(options.code, options.name)
    module = ModuleType("__main__")
    module.__dict__.update(_names(options))
    before = sys.modules.get("__main__")
    # Where classes of the code are looked for by their module.
    sys.modules["__main__"] = module
    try:
        with Streams() as streams:
            try:
                options.bring_libraries(module.__dict__)
                value = convention.value_of(body, module.__dict__, options)
            except BaseException as error:  # noqa: BLE001 - whatever it is, it is the step's own
                return Response(encoded=answer.broken(error, body, streams))
            return Response(encoded=answer.of(value, body, streams))
    finally:
        sys.modules["__main__"] = before


def _names(options: Options) -> dict[str, Any]:
    """What the code finds as globals; its input goes before everything.

    ``context`` has what templates have, too: variables of the execution and results of its steps, as far as they came."""
    given = options.input
    told = {"args": given, "variables": {}, **options.context}
    results = told.pop("results", {})
    context = {**_fields(told["variables"]), **_fields(results), **given, **told}
    own = {"sys": sys, "json": json, "context": context, **told, "input_data": dict(given)}
    return {**own, **given}


def _fields(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
