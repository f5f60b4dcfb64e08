"""`{{path}}`: a transform that greets whoever its input names."""

import noetl


def call(input):
    name = input["name"].strip()
    if not name:
        raise noetl.Failure("invalid_input", "`name` is empty")
    noetl.log.info("greeting", name=name)
    return {"greeting": f"Hello, {name}!"}
