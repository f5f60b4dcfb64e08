from dataclasses import dataclass

stored = {}


@dataclass
class ObjectInfo:
    key: str
    size: int
    digest: str
    media_type: str


def _info(key):
    content = stored[key]
    return ObjectInfo(key, content.size(), content.digest(), content.media_type())


def open(key):
    return stored.get(key)


def put(key, content):
    stored[key] = content
    return _info(key)


def delete(key):
    stored.pop(key, None)


def list_objects(prefix, after, limit):
    found = sorted(key for key in stored if key.startswith(prefix) and (after is None or key > after))
    return [_info(key) for key in found[: min(limit, 2)]]
