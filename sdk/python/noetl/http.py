"""HTTP requests to the hosts that ``http.allow`` of plugin.toml names, for plugins that hold ``http-client`` and
``payload``.

A status of 400 or more is an answer, not an error: :meth:`Response.ok` makes it a failure. Redirects are not followed.
"""

from __future__ import annotations

import json as _json
from dataclasses import dataclass
from typing import Any, Mapping, Optional

from wit_world.imports import http_client as _http

from . import payload as _payload
from .failure import Failure
from .host import ask
from .payload import Payload
from .texts import text


@dataclass(frozen=True)
class Response:
    status: int
    headers: list[tuple[str, str]]
    body: Payload

    def header(self, name: str) -> Optional[str]:
        """The first header of that name; case does not matter."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    def ok(self) -> Response:
        """This answer, or a failure when its status is 400 or more."""
        if self.status >= 400:
            text = self.body.read(0, 2_000).decode(errors="replace")
            raise Failure("http_status", f"status {self.status}: {text}", retryable=self.status >= 500)
        return self

    def text(self) -> str:
        return self.body.text()

    def json(self) -> Any:
        return self.body.json()


def request(
    method: str,
    url: str,
    *,
    headers: Optional[Mapping[str, str]] = None,
    body: Optional[Payload | bytes | str] = None,
    json: Any = None,
    timeout: Optional[float] = None,
) -> Response:
    """Send one request. ``timeout`` is in seconds and bounded by the call's own ``limits.wall_ms``."""
    fields = [(text(name), text(value)) for name, value in (headers or {}).items()]
    if json is not None:
        body = _payload.of(_json.dumps(json), "application/json")
        if all(name.lower() != "content-type" for name, _ in fields):
            fields.append(("content-type", "application/json"))
    elif isinstance(body, (bytes, str)):
        body = _payload.of(body)
    timeout_ms = None if timeout is None else max(1, round(timeout * 1_000))
    given = None if body is None else body.give()
    answer = ask(_http.send, _http.Request(text(method), text(url), fields, given, timeout_ms))
    return Response(answer.status, list(answer.headers), Payload(answer.body))


def get(url: str, **options: Any) -> Response:
    return request("GET", url, **options)


def post(url: str, **options: Any) -> Response:
    return request("POST", url, **options)


def put(url: str, **options: Any) -> Response:
    return request("PUT", url, **options)


def delete(url: str, **options: Any) -> Response:
    return request("DELETE", url, **options)
