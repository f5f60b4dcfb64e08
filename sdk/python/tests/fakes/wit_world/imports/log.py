from enum import Enum

Level = Enum("Level", ["TRACE", "DEBUG", "INFO", "WARN", "ERROR"])
lines = []


def write(level, message, fields):
    lines.append((level.name, message, fields))
