"""Exceptions of a plugin as failures its author can act on.

What is raised is the author's own: its texts may be anything, and asking for them may raise again. A failure is made of
it whatever it is; a call must not end as if the interpreter had crashed.
"""

from __future__ import annotations

import errno
import sys
import traceback
from typing import Any, Iterator

from componentize_py_types import Err
from noetl import Failure
from noetl.texts import text
from wit_world.imports import failures

import _noetl_absent as absent
from _noetl_program import Program
from _noetl_sockets import WHY

#: Libraries that make requests over sockets of their own.
_CLIENTS = {"aiohttp", "httpcore", "httpx", "requests", "urllib3"}


def failed(code: str, message: str, retryable: bool = False) -> Err:
    return Err(failures.Failure(code, message, retryable))


def of(error: BaseException, program: Program | None) -> Err:
    """The failure an exception is, with the author's own files and lines."""
    if isinstance(error, Err) and isinstance(error.value, failures.Failure):
        return error
    if isinstance(error, Failure):
        return failed(text(error.code), text(error.message), _truth(error.retryable))
    return failed("exception", text(_described(error, program)))


def _truth(value: Any) -> bool:
    try:
        return bool(value)
    except BaseException:  # noqa: BLE001 - the same
        return False


def _described(error: BaseException, program: Program | None) -> str:
    try:
        shown = traceback.TracebackException.from_exception(error)
        _cut_all(shown, program)
        return "".join(shown.format()).rstrip() + _advice(error, program)
    except BaseException:  # noqa: BLE001 - an exception may be one that cannot be shown
        return type(error).__name__


def _advice(error: BaseException, program: Program | None) -> str:
    """What an author can do about a module, a file or a network that is not there."""
    if isinstance(error, ImportError) and (advice := _advice_about_module(error, program)):
        return advice
    if isinstance(error, FileNotFoundError) and error.errno == errno.ENOENT:
        return _advice_about_file(error, program)
    if isinstance(error, (ImportError, OSError)) and WHY not in text(error) and _is_of_a_client(error, program):
        return f"\nThe library reaches nothing here, because {WHY}"
    return ""


def _advice_about_module(error: ImportError, program: Program | None) -> str:
    names = [name for raised in _imports(error) for name in _named(raised)]
    for name in names:
        if program is not None and (file := program.compiled(name)):
            return (
                f"\n{file} is compiled for another machine, and plugins run in a sandbox that takes none of it: use a "
                "library, or a release of it, that is Python alone"
            )
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return ""
    library = error.name.partition(".")[0]
    if library in sys.stdlib_module_names:
        return f"\n`{error.name}` is of Python's own library and not here: {absent.why(error.name)}"
    if program is not None and program.brings(library):
        return ""
    return f"\nA plugin brings its libraries: pip install --target vendor {library}"


def _advice_about_file(error: FileNotFoundError, program: Program | None) -> str:
    if program is not None and (how := program.how_to_read(str(error.filename or ""))):
        return f"\nThe plugin brings it, but a sandbox has no disk it could be opened from: {how} reads it"
    return "\nA sandbox has no files: `noetl.kv` and `noetl.objects` keep data, and `io.BytesIO` is a file in memory"


def _is_of_a_client(error: BaseException, program: Program | None) -> bool:
    """Whether a library raised it that would talk over a socket: before it tries, it may miss certificates or `ssl`."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        path = frame.f_code.co_filename
        if program is not None and program.has(path) and _CLIENTS.intersection(path.split("/")):
            return True
    return False


def _imports(error: BaseException) -> Iterator[ImportError]:
    """Of a chain of imports that failed, each: libraries put words of their own around the first."""
    seen = set()
    while isinstance(error, ImportError) and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _named(error: ImportError) -> Iterator[str]:
    if error.name:
        yield error.name
        # What `from package import part` wanted of it.
        if part := getattr(error, "name_from", None):
            yield f"{error.name}.{part}"


def _cut_all(shown, program: Program | None) -> None:
    seen, open_ = set(), [shown]
    while open_:
        shown = open_.pop()
        if shown is None or id(shown) in seen:
            continue
        seen.add(id(shown))
        _cut(shown, program)
        open_ += [shown.__cause__, shown.__context__, *(shown.exceptions or [])]


def _cut(shown, program: Program | None) -> None:
    """Leave out the frames of the interpreter itself: all before the author's first, and those that imports and readers
    of JSON put between."""
    own = [at for at, frame in enumerate(shown.stack) if program is not None and program.has(frame.filename)]
    first = own[0] if own else len(shown.stack)
    shown.stack[:] = [
        frame for at, frame in enumerate(shown.stack) if at in own or (at > first and not _is_ours(frame.filename))
    ]


def _is_ours(filename: str) -> bool:
    return filename.startswith("<frozen importlib") or filename.rpartition("/")[2].startswith("_noetl_")
