"""`hashlib.pbkdf2_hmac`, which Python takes from a library of the machine and a sandbox has not.

It is the sum of RFC 8018, 5.2, over `hmac.digest`. A machine's own does the same some times faster; how long one takes
is the point of the function, so an author who makes keys of passwords here raises `limits.cpu_ms`.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Optional


def pbkdf2_hmac(hash_name: str, password, salt, iterations: int, dklen: Optional[int] = None) -> bytes:
    if not isinstance(hash_name, str):
        raise TypeError(f"the name of a hash is text and not {type(hash_name).__name__}")
    empty = hashlib.new(hash_name)
    if not empty.digest_size:
        raise ValueError(f"{hash_name} is as long as one asks, and HMAC needs a hash with a length of its own")
    length = empty.digest_size if dklen is None else dklen
    if iterations < 1:
        raise ValueError("the number of iterations has to be 1 or more")
    if length < 1:
        raise ValueError("the length of a key has to be 1 or more")
    key, salt = bytes(memoryview(password)), bytes(memoryview(salt))
    if len(key) > empty.block_size:
        # What HMAC does with a key that is too long, once and not in every round.
        key = hashlib.new(empty.name, key).digest()
    blocks = -(-length // empty.digest_size)
    made = b"".join(_block(empty.name, key, salt + at.to_bytes(4, "big"), iterations) for at in range(1, blocks + 1))
    return made[:length]


def _block(hash_name: str, key: bytes, message: bytes, iterations: int) -> bytes:
    last = hmac.digest(key, message, hash_name)
    mixed = int.from_bytes(last, "big")
    for _ in range(iterations - 1):
        last = hmac.digest(key, last, hash_name)
        mixed ^= int.from_bytes(last, "big")
    return mixed.to_bytes(len(last), "big")


def install() -> None:
    if not hasattr(hashlib, "pbkdf2_hmac"):
        hashlib.pbkdf2_hmac = pbkdf2_hmac
        hashlib.__all__ += ("pbkdf2_hmac",)
