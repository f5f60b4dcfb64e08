"""What a plugin can ask of the host.

A plugin is a module with one function::

    import noetl

    def call(input):
        noetl.log.info("greeting", name=input["name"])
        return {"text": f"Hello, {input['name']}!"}

Each capability is a module of its own: ``noetl.log``, ``noetl.metrics``, ``noetl.clock``, ``noetl.random``,
``noetl.kv``, ``noetl.objects``, ``noetl.payload``, ``noetl.http``, ``noetl.secrets`` and ``noetl.files``. A plugin may use those that
its plugin.toml lists under ``capabilities``; using another one ends the call with the fault ``denied``, which no ``except`` sees.

What the host answers with an error is raised as a :class:`Failure` with a code of its own.
"""

from . import clock, files, http, kv, log, metrics, objects, payload, random, secrets
from .context import Context, context
from .failure import Failure
from .payload import Payload
from .response import Response
from . import script

__all__ = [
    "Context",
    "Failure",
    "Payload",
    "Response",
    "clock",
    "context",
    "files",
    "http",
    "kv",
    "log",
    "metrics",
    "objects",
    "payload",
    "random",
    "script",
    "secrets",
]
