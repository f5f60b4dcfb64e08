from dataclasses import dataclass
from typing import Any, Optional


@dataclass
class Request:
    arguments: str
    body: Optional[Any]
    idempotency_key: str
    attempt: int


@dataclass
class Response:
    output: str
    body: Optional[Any]
