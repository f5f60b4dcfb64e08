from dataclasses import dataclass


@dataclass
class Failure:
    code: str
    message: str
    retryable: bool
