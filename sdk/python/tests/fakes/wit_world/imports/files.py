from dataclasses import dataclass

from componentize_py_types import Err

stored = {}


@dataclass
class FileError_NotFound:
    value: str


def read(path):
    if path not in stored:
        raise Err(FileError_NotFound(path))
    return stored[path]
