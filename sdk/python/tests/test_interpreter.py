"""The interpreter's own code, run by the Python of this machine: what authors see of it, without a sandbox."""

import contextlib
import importlib
import io
import json
import sys
import unittest
from pathlib import Path
from types import SimpleNamespace

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "fakes"), str(HERE.parent), str(HERE.parents[2] / "plugins/interpreters/python")]

from componentize_py_types import Err  # noqa: E402
from wit_world.imports import payload, tooling  # noqa: E402

sys.modules["library"] = SimpleNamespace(bring=lambda: None)
import interpreter  # noqa: E402
import noetl  # noqa: E402

WORLD = interpreter.WitWorld()


@contextlib.contextmanager
def loaded(entry="plugin_under_test.py", **files):
    """A program made of these files; what it imported is forgotten after."""
    before, finders, out = set(sys.modules), list(sys.meta_path), sys.stdout
    # As in a sandbox: text that goes to bytes, which can be told to keep lines together.
    sys.stdout = io.TextIOWrapper(io.BytesIO())
    try:
        texts = {name.replace("__", "/") + ".py": text for name, text in files.items()}
        WORLD.load(entry, [SimpleNamespace(path=path, content=text.encode()) for path, text in texts.items()])
        yield
    finally:
        sys.stdout = out
        sys.meta_path[:] = finders
        for name in set(sys.modules) - before:
            del sys.modules[name]
        importlib.invalidate_caches()


def call(arguments, body=None):
    return WORLD.call(tooling.Request(json.dumps(arguments), body, "key", 2))


def failure(function, *arguments):
    try:
        function(*arguments)
    except Err as error:
        return error.value
    raise AssertionError("it did not fail")


class Programs(unittest.TestCase):
    def test_call_gets_the_arguments_and_answers_with_json(self):
        with loaded(plugin_under_test="def call(input):\n    return {'n': input['n'] + 1}\n"):
            self.assertEqual(call({"n": 1}).output, '{"n":2}')

    def test_main_gets_the_fields(self):
        with loaded(plugin_under_test="def main(name, greeting='Hello'):\n    return f'{greeting}, {name}!'\n"):
            self.assertEqual(call({"name": "Ada"}).output, '"Hello, Ada!"')

    def test_run_gets_bytes(self):
        with loaded(plugin_under_test="def run(data):\n    return data[::-1]\n"):
            self.assertEqual(WORLD.run(b"abc"), b"cba")

    def test_a_transform_may_speak_json(self):
        with loaded(plugin_under_test="def call(input):\n    return input['a']\n"):
            self.assertEqual(WORLD.run(b'{"a": [1]}'), b"[1]")

    def test_files_import_each_other_and_what_is_vendored(self):
        entry = "from lib_under_test.two import two\nimport third\n\ndef call(input):\n    return two(third.ONE)\n"
        files = {"lib_under_test__two": "def two(x):\n    return x * 2\n", "vendor__third": "ONE = 1\n"}
        with loaded(plugin_under_test=entry, **files):
            self.assertEqual(call({}).output, "2")

    def test_the_context_is_that_of_the_call(self):
        entry = "import noetl\n\ndef call(input):\n    c = noetl.context\n    return [c.attempt, c.body.text()]\n"
        with loaded(plugin_under_test=entry):
            self.assertEqual(call({}, payload.Payload(b"bulk")).output, '[2,"bulk"]')

    def test_an_answer_may_have_a_body(self):
        entry = "import noetl\n\ndef call(input):\n    return noetl.Response({'n': 1}, noetl.payload.of('bulk'))\n"
        with loaded(plugin_under_test=entry):
            answer = call({})
            self.assertEqual((answer.output, answer.body.data), ('{"n":1}', b"bulk"))


class Failures(unittest.TestCase):
    def test_a_traceback_has_the_authors_files_and_lines_and_no_others(self):
        entry = "import lib_under_test\n\ndef call(input):\n    return lib_under_test.bad()\n"
        with loaded(plugin_under_test=entry, lib_under_test="def bad():\n    raise ValueError('boom')\n"):
            said = failure(call, {})
        self.assertEqual(said.code, "exception")
        for line in ['File "plugin_under_test.py", line 4, in call', "return lib_under_test.bad()",
                     'File "lib_under_test.py", line 2, in bad', "ValueError: boom"]:  # fmt: skip
            self.assertIn(line, said.message)
        self.assertNotIn("interpreter.py", said.message)

    def test_a_cause_is_shown_too(self):
        entry = "def call(input):\n    try:\n        {}['a']\n    except KeyError as e:\n        raise OSError('x') from e\n"
        with loaded(plugin_under_test=entry):
            said = failure(call, {}).message
        self.assertIn('File "plugin_under_test.py", line 3', said)
        self.assertIn('File "plugin_under_test.py", line 5', said)

    def test_text_that_is_not_python_is_told_with_its_place(self):
        with self.assertRaises(Err) as raised, loaded(plugin_under_test="x = 1\ndef call(:\n"):
            pass
        self.assertIn('File "plugin_under_test.py", line 2', raised.exception.value.message)

    def test_the_plugins_own_failure_keeps_its_code(self):
        entry = "import noetl\n\ndef call(input):\n    raise noetl.Failure('not_found', 'gone', retryable=True)\n"
        with loaded(plugin_under_test=entry):
            said = failure(call, {})
        self.assertEqual((said.code, said.message, said.retryable), ("not_found", "gone", True))

    def test_what_is_not_json_is_refused_both_ways(self):
        with loaded(plugin_under_test="def call(input):\n    return {1, 2}\n"):
            self.assertEqual(failure(call, {}).code, "invalid_output")
            self.assertEqual(failure(WORLD.run, b"{").code, "invalid_input")

    def test_leaving_is_a_failure(self):
        with loaded(plugin_under_test="def call(input):\n    raise SystemExit(3)\n"):
            self.assertIn("SystemExit: 3", failure(call, {}).message)

    def test_a_plugin_without_a_function_is_told_what_to_write(self):
        with loaded(plugin_under_test="x = 1\n"):
            self.assertEqual(failure(call, {}).code, "no_function")
        self.assertEqual(noetl.context.attempt, 2)


if __name__ == "__main__":
    unittest.main()
