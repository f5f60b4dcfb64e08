from dataclasses import dataclass
from typing import Any, Optional

from .payload import Payload

sent = []
answers = []


@dataclass
class Request:
    method: str
    url: str
    headers: list
    body: Optional[Any]
    timeout_ms: Optional[int]


@dataclass
class Response:
    status: int
    headers: list
    body: Payload


@dataclass
class HttpError_Timeout:
    pass


def send(request):
    sent.append(request)
    answer = answers.pop(0)
    if isinstance(answer, Exception):
        raise answer
    return answer
