"""Why a plugin could not do its work, as an answer."""

from __future__ import annotations

from .texts import text


class Failure(Exception):
    """Raise it to answer with a failure. It is not a crash: it does not count against the plugin.

    ``code`` is stable, for rules to match (``invalid_input``, ``not_found``); ``message`` is for people; ``retryable``
    says whether trying the same call again can help. Any other exception is a failure too, with the code ``exception``
    and its traceback as the message.
    """

    def __init__(self, code: str, message: str = "", *, retryable: bool = False) -> None:
        self.code = text(code)
        self.message = text(message)
        self.retryable = bool(retryable)
        super().__init__(f"{self.code}: {self.message}" if self.message else self.code)
