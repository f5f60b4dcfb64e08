"""Why a plugin could not do its work, as an answer."""


class Failure(Exception):
    """Raise it to answer with a failure. It is not a crash: it does not count against the plugin.

    ``code`` is stable, for rules to match (``invalid_input``, ``not_found``); ``message`` is for people; ``retryable``
    says whether trying the same call again can help. Any other exception is a failure too, with the code ``exception``
    and its traceback as the message.
    """

    def __init__(self, code: str, message: str = "", *, retryable: bool = False) -> None:
        super().__init__(f"{code}: {message}" if message else code)
        self.code = code
        self.message = message
        self.retryable = retryable
