"""`{{path}}`: a tool that counts how often it was called for a name."""

import noetl


def call(input):
    name = input.get("name")
    if not name:
        raise noetl.Failure("invalid_input", "`name` is empty")
    key = f"calls/{name}"
    # The write is kept only if this call succeeds.
    calls = noetl.kv.get_json(key, 0) + 1
    noetl.kv.put_json(key, calls)
    noetl.log.info("counted", name=name, calls=calls)
    return {"name": name, "calls": calls}
