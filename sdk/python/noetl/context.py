"""What is known of the call that runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from .payload import Payload


@dataclass
class Context:
    """The call: the same for every attempt at the same work, except for ``attempt``."""

    #: The same for every attempt at the same work; empty for a transform.
    idempotency_key: str = ""
    #: 1 for the first attempt.
    attempt: int = 1
    #: Bulk input of the step, if it has any.
    body: Optional[Payload] = None


#: The call that runs now.
context = Context()
