"""Where the text of a `script` comes from: the step itself, the operator's folder, or a server."""

from __future__ import annotations

from typing import Any
from urllib.parse import urljoin

from .. import files, http
from ..failure import Failure

#: A script is read whole, into the sandbox.
_LONGEST = 8 << 20


def written(script: str) -> dict[str, Any]:
    """What a `script` that is text means: a file, if it is one word that ends like one, or the code itself."""
    word = script.strip()
    if word.endswith(".py") and len(word.split()) == 1:
        return {"uri": word, "source": {"type": "file"}}
    return {"uri": "script", "source": {"type": "inline", "code": script}}


def read(script: dict[str, Any]) -> tuple[str, str]:
    """The text, and what to call it."""
    uri, source = script.get("uri"), script.get("source") or {}
    if not isinstance(source, dict) or not isinstance(uri, (str, type(None))):
        raise _wrong("`script` has a text `uri` and an object `source`")
    kind = source.get("type", "inline" if "code" in source else "file")
    match kind:
        case "inline":
            return _inline(source), uri or "script"
        case "file":
            return _decoded(files.read(_needed(uri)), uri), uri
        case "http":
            url = urljoin(source.get("endpoint") or "", uri or "")
            return _decoded(_fetched(_needed(url), source), url), url
    raise _wrong(f"`script.source.type` is `{kind}`; a script comes from `inline`, `file` or `http`")


def _inline(source: dict[str, Any]) -> str:
    if not isinstance(source.get("code"), str):
        raise _wrong("`script.source.code` is missing: the text to run")
    return source["code"]


def _fetched(url: str, source: dict[str, Any]) -> bytes:
    timeout = source.get("timeout")
    method, headers = source.get("method") or "GET", source.get("headers") or {}
    answer = http.request(method.upper(), url, headers=headers, timeout=None if timeout is None else float(timeout))
    if answer.status != 200:
        # A redirect would lead to another place than the one that was named.
        raise Failure("script_unavailable", f"{url} answered with status {answer.status}", retryable=answer.status >= 500)
    if answer.body.size > _LONGEST:
        raise Failure("too_large", f"the script at {url} has {answer.body.size} bytes; the most are {_LONGEST}")
    return answer.body.read()


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _wrong(f"the script {name} is not UTF-8: {error}") from None


def _needed(uri: Any) -> str:
    if not uri:
        raise _wrong("`script.uri` is missing: where the text is")
    return uri


def _wrong(message: str) -> Failure:
    return Failure("invalid_input", message)
