"""`urllib.request` over the host's HTTP client: a sandbox has no sockets.

Of the standard library the handler that talks to a server is replaced, and the one that follows redirects takes no header to
another origin that could be a secret. Openers, cookies and errors are its own; every request, also one that a redirect leads
to, is checked by the host.
"""

from __future__ import annotations

import http.client
import io
import urllib.error
import urllib.request
import urllib.response
from urllib.parse import urldefrag, urlsplit

import noetl
from noetl import Failure, Payload

#: Headers that tell another host nothing it should not know.
_SAFE = {"accept", "accept-charset", "accept-language", "cache-control", "if-none-match", "range", "user-agent"}
#: What the host sets itself.
_HOSTS_OWN = {"host", "content-length", "connection", "transfer-encoding"}


class _Body(io.RawIOBase):
    """The body of an answer, which enters the sandbox as far as it is read."""

    def __init__(self, body: Payload) -> None:
        self._body, self._at = body, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        piece = self._body.read(self._at, len(buffer))
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)


class HostHandler(urllib.request.AbstractHTTPHandler):
    """Sends requests by the host; TLS is the host's, so a context of the caller's is not looked at."""

    def __init__(self, debuglevel=None, context=None, check_hostname=None) -> None:
        super().__init__(0)

    http_request = https_request = urllib.request.AbstractHTTPHandler.do_request_

    def http_open(self, request: urllib.request.Request):
        url = urldefrag(request.full_url).url
        headers = {**request.headers, **request.unredirected_hdrs}
        headers = {name: value for name, value in headers.items() if name.lower() not in _HOSTS_OWN}
        timeout = request.timeout if isinstance(request.timeout, (int, float)) else None
        try:
            answer = noetl.http.request(
                request.get_method(), url, headers=headers, body=_sent(request.data), timeout=timeout
            )
        except Failure as failure:
            raise urllib.error.URLError(_reason(failure)) from None
        fields = http.client.HTTPMessage()
        for name, value in answer.headers:
            fields[name] = value
        response = urllib.response.addinfourl(io.BufferedReader(_Body(answer.body)), fields, url, answer.status)
        response.msg = response.reason = http.client.responses.get(answer.status, "")
        return response

    https_open = http_open


class Redirects(urllib.request.HTTPRedirectHandler):
    """To another origin only headers that say what is wanted go along: any other may log in at the first one."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        onward = super().redirect_request(req, fp, code, msg, headers, newurl)
        if onward is not None and _origin(onward.full_url) != _origin(req.full_url):
            onward.headers = {name: value for name, value in onward.headers.items() if name.lower() in _SAFE}
        return onward


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _sent(data) -> bytes | None:
    if data is None or isinstance(data, bytes):
        return data
    if hasattr(data, "read"):
        return data.read()
    return bytes(data) if isinstance(data, (bytearray, memoryview)) else b"".join(data)


def _reason(failure: Failure) -> OSError:
    """As far as the standard library has an error of that kind."""
    match failure.code:
        case "timeout":
            return TimeoutError("timed out")
        case "denied":
            return PermissionError(failure.message)
    return OSError(failure.message)


def install() -> None:
    urllib.request.HTTPHandler = urllib.request.HTTPSHandler = HostHandler
    urllib.request.HTTPRedirectHandler = Redirects
