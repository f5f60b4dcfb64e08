from dataclasses import dataclass

from componentize_py_types import Err

values = {}


@dataclass
class Entry:
    value: bytes
    version: int


@dataclass
class KvError_InvalidKey:
    value: str


@dataclass
class KvError_TooLarge:
    value: int


def get(key):
    return values.get(key)


def put(key, value):
    if not key:
        raise Err(KvError_InvalidKey("a key has 1 to 512 bytes"))
    if len(value) > 1 << 20:
        raise Err(KvError_TooLarge(len(value)))
    version = values[key].version + 1 if key in values else 1
    values[key] = Entry(value, version)


def delete(key):
    values.pop(key, None)


def compare_and_swap(key, expected, value):
    current = values[key].version if key in values else None
    if current != expected:
        return False
    put(key, value)
    return True


def list_keys(prefix, after, limit):
    # Pages of two, so that paging is seen.
    found = sorted(key for key in values if key.startswith(prefix) and (after is None or key > after))
    return found[: min(limit, 2)]
