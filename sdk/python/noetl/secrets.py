"""Credentials by alias, for plugins that hold ``secrets``.

::

    import noetl, urllib.request

    request = urllib.request.Request("https://api.example.com/orders", headers=noetl.secrets.headers("orders_api"))
    with urllib.request.urlopen(request) as answer:
        orders = answer.read()

Nothing here is a secret. What stands for one is a *placeholder*, which goes into an address, the value of a header or a
body of text up to 1 MiB, sent by ``urllib`` or ``noetl.http``; the host replaces it when the request leaves for a host that
the credential is bound to, and masks the secret in what comes back. A placeholder that is computed with (hashed, encoded,
cut) stands for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

from wit_world.imports import secrets as _secrets

from .failure import Failure
from .host import ask

#: As other languages call them.
_CODES = {"unknown": "unknown_credential", "unsupported": "unsupported_credential"}


@dataclass(frozen=True)
class Description:
    """What may be known of a credential."""

    #: ``bearer``, ``basic``, ``api_key``, ``postgres``, ...
    kind: str
    #: Fields that say where and as whom. None of them is a secret.
    fields: dict[str, str]


def placeholder(alias: str, field: str) -> str:
    """What stands for one field of a credential; whether there is one shows when it is used. The field ``basic`` is
    ``user:password`` as HTTP writes it."""
    return _asked(_secrets.placeholder, alias, field)


def headers(alias: str) -> dict[str, str]:
    """The headers that log a request in: for credentials of the type bearer, basic, api_key and oauth2. Of one that signs
    (hmac, s3) the header stands for a signature, which the host makes of the request when it leaves."""
    return dict(_asked(_secrets.headers, alias))


def describe(alias: str) -> Description:
    """The kind of a credential, and its fields that are no secrets."""
    found = _asked(_secrets.describe, alias)
    return Description(found.kind, dict(found.fields))


def _asked(function: Callable[..., Any], *arguments: str) -> Any:
    try:
        return ask(function, *arguments)
    except Failure as failure:
        code = _CODES.get(failure.code, failure.code)
        raise Failure(code, failure.message, retryable=failure.retryable) from None
