"""An answer with bulk beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

from .payload import Payload


@dataclass
class Response:
    """What a tool returns when its answer has a body. Without one, the plain value is enough."""

    #: Anything that JSON can say.
    output: Any = None
    body: Optional[Payload] = None
    #: The output as JSON, for a plugin that has it as text already; it goes before ``output``.
    encoded: Optional[str] = None
