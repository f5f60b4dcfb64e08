"""Lines of the plugin's log, for plugins that hold ``log``.

``print`` writes there too, without a level or fields, and needs no capability.
"""

from __future__ import annotations

from wit_world.imports import log as _log

from .texts import text


def _write(level: _log.Level, message: object, fields: dict[str, object]) -> None:
    _log.write(level, text(message), [(text(key), text(value)) for key, value in fields.items()])


def trace(message: object, **fields: object) -> None:
    _write(_log.Level.TRACE, message, fields)


def debug(message: object, **fields: object) -> None:
    _write(_log.Level.DEBUG, message, fields)


def info(message: object, **fields: object) -> None:
    _write(_log.Level.INFO, message, fields)


def warn(message: object, **fields: object) -> None:
    _write(_log.Level.WARN, message, fields)


def error(message: object, **fields: object) -> None:
    _write(_log.Level.ERROR, message, fields)
