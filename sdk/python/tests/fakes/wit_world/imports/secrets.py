from dataclasses import dataclass

from componentize_py_types import Err

#: Headers by alias, as the host gives them.
known = {}


@dataclass
class Description:
    kind: str
    fields: list


@dataclass
class SecretError_Unknown:
    value: str


@dataclass
class SecretError_Unsupported:
    value: str


def placeholder(alias, field):
    return f"<{alias}.{field}>"


def headers(alias):
    if alias not in known:
        raise Err(SecretError_Unknown(f"no credential is called `{alias}`"))
    if not known[alias]:
        raise Err(SecretError_Unsupported(f"`{alias}` has no header"))
    return known[alias]


def describe(alias):
    headers(alias)
    return Description("bearer", [("host", "h")])
