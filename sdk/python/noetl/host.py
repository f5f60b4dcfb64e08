"""Calls into the host, with its typed errors as failures."""

from __future__ import annotations

import re
from typing import Any, Callable, TypeVar

from componentize_py_types import Err

from .failure import Failure

Answer = TypeVar("Answer")

#: Errors after which the same call may well succeed.
_RETRYABLE = {"unavailable", "timeout", "failed"}


def ask(function: Callable[..., Answer], *arguments: Any) -> Answer:
    """Call a function of the host; an error of its own becomes a :class:`Failure`."""
    for argument in arguments:
        if isinstance(argument, str):
            # Raises for half of a pair of surrogates, which the host could not be told.
            argument.encode()
    try:
        return function(*arguments)
    except Err as error:
        raise as_failure(error.value) from None


def as_failure(error: Any) -> Failure:
    """``KvError_InvalidKey("...")`` is the failure ``invalid_key``."""
    case = type(error).__name__.rpartition("_")[2]
    code = re.sub(r"(?<!^)(?=[A-Z])", "_", case).lower()
    value = getattr(error, "value", "")
    message = f"{value} bytes are too many" if code == "too_large" else str(value)
    return Failure(code, message, retryable=code in _RETRYABLE)
