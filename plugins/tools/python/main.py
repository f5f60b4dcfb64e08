"""The tool `tools/python`: the code of a step, run by the interpreter's own `noetl.script`, which has what it needs in
memory already."""

from noetl import script


def call(input):
    return script.run(input)
