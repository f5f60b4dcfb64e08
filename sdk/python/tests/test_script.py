"""Code of steps: the conventions of playbooks, and what is told when it breaks."""

import contextlib
import io
import json
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "fakes"), str(HERE.parent)]

from wit_world.imports import files, http_client, payload  # noqa: E402

from noetl import Failure, script  # noqa: E402

CONTEXT = {"execution_id": "77", "step": "clean", "attempt": 2}


def answer(code=None, input=None, **more):
    arguments = {"code": code, "input": input, "context": CONTEXT, **more}
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return json.loads(script.run({name: value for name, value in arguments.items() if value is not None}).encoded)


def refused(**arguments):
    try:
        script.run(arguments)
    except Failure as failure:
        return failure
    raise AssertionError("it was not refused")


class Conventions(unittest.TestCase):
    def test_the_value_is_what_the_convention_says(self):
        for name, code, input, wanted in [
            ("result", "result = {'n': n + 1}", {"n": 1}, {"n": 2}),
            ("result is falsy", "result = 0", {}, 0),
            ("result goes before main", "result = 1\ndef main():\n    return 2", {}, 1),
            ("main", "def main():\n    return 2", {}, 2),
            ("main with its arguments", "def main(a, b=5):\n    return [a, b]", {"a": 1, "c": 3}, [1, 5]),
            ("main with all of them", "def main(a, **rest):\n    return [a, rest]", {"a": 1, "c": 3}, [1, {"c": 3}]),
            ("main by position", "def main(a, /, *, c):\n    return [a, c]", {"a": 1, "c": 3}, [1, 3]),
            ("main with the whole", "def main(input_data):\n    return input_data", {"a": 1}, {"a": 1}),
            ("async main", "import asyncio\nasync def main(a):\n    await asyncio.sleep(0)\n    return a", {"a": 1}, 1),
            ("return", "if n > 1:\n    return 'many'\nreturn 'one'", {"n": 2}, "many"),
            ("return and its own names", "n = n + 1\ndef more():\n    return n\nreturn more()", {"n": 2}, 3),
            ("return in a loop", "for x in items:\n    if x > 1:\n        return x", {"items": [1, 2, 3]}, 2),
            ("return with a typed name", "total: int = 4\nreturn total", {}, 4),
            ("return after imports", "from __future__ import annotations\nfrom math import *\nreturn floor(2.5)", {}, 2),
            ("return of nothing leaves result", "result = 3\nif n:\n    return\nresult = 4", {"n": 1}, 3),
            ("a function's return is its own", "def f():\n    return 1\nresult = f() + 1", {}, 2),
            ("input called result", "assert result['n'] == 1\nresult = 'checked'", {"result": {"n": 1}}, "checked"),
            ("a script that ends itself", "import sys\nresult = 5\nsys.exit(0)\nresult = 6", {}, 5),
            ("names without import", "result = json.loads('[1]') + [type(sys).__name__]", {}, [1, "module"]),
            ("args and input_data", "result = [args['n'], input_data.get('n'), args is input_data]", {"n": 1}, [1, 1, False]),
            ("context", "result = [context['step'], context.get('n'), execution_id, step]", {"n": 1}, ["clean", 1, "77", "clean"]),
            ("globals", "result = 'n' in globals() and globals()['n']", {"n": 1}, 1),
            ("the name of the module", "result = __name__", {}, "__main__"),
            ("classes find their module", "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: 'int'\nresult = A(1).x", {}, 1),
            ("indented", "\n    # all of it\n    text = 'a' + n\n    result = text", {"n": "b"}, "ab"),
            ("indented with a return", "  from __future__ import annotations\n  if n:\n    return n", {"n": 1}, 1),
            ("formats", "result = f'{3.14159:.2f} {7:03d} {1e6:,.0f} {\"ä\":>3}'", {}, "3.14 007 1,000,000   ä"),
        ]:  # fmt: skip
            with self.subTest(name):
                self.assertEqual(answer(code, input), wanted)

    def test_the_context_has_variables_and_results_below_what_is_told(self):
        told = {"variables": {"limit": 1, "start": 2}, "results": {"start": {"n": 3}, "step": 4, "mine": 5}}
        code = "result = [context[name] for name in ('limit', 'start', 'step', 'mine')] + ['results' in context]"
        self.assertEqual(answer(code, {"mine": 6}, context={**CONTEXT, **told}), [1, {"n": 3}, "clean", 6, False])
        self.assertEqual(answer("result = 'start' in globals()", context={**CONTEXT, **told}), False)
        self.assertEqual(answer("result = 'start' in context", context={"variables": None, "results": [1]}), False)

    def test_what_is_in_a_payload_is_no_empty_list(self):
        table = {"row_count": 9, "columns": ["n"], "affected_rows": 0, "_ref": "noetl://payload/a"}
        page = {"status_code": 200, "headers": {}, "_ref": "noetl://payload/b"}
        given = {"res": {**table, "command_0": dict(table)}, "page": page}
        for code in ["res.get('rows', [])", "res['rows']", "res['command_0'].get('rows')", "page.get('data')"]:
            failure = answer(f"result = {code}", json.loads(json.dumps(given)))["_failure"]
            self.assertEqual(failure["code"], "elsewhere", code)
            self.assertIn("`_ref`", failure["message"])
        told = {"results": {"start": dict(table)}}
        self.assertIn("_failure", answer("result = context['start']['rows']", context={**CONTEXT, **told}))
        whole = {**table, "rows": [{"n": 1}]}
        code = "result = [res['row_count'], res.get('other'), 'rows' in res, whole['rows'], json.dumps(res) != '']"
        self.assertEqual(answer(code, {"res": dict(table), "whole": whole}), [9, None, False, [{"n": 1}], True])

    def test_nothing_given_is_what_was_printed(self):
        said = answer("import sys\nprint('one')\nprint('two', file=sys.stderr)\nsys.stdout.buffer.write(b'three')")
        self.assertEqual(said, {"stdout": "one\nthree", "stderr": "two\n"})

    def test_much_of_it_is_cut(self):
        said = answer("print('x' * 100_000)")["stdout"]
        self.assertTrue(said.endswith(f"[{100_001 - (64 << 10)} more bytes]"), said[-40:])

    def test_no_call_leaves_anything_to_the_next(self):
        answer("left = 1\nresult = 1")
        self.assertEqual(answer("result = 'left' in globals()"), False)

    def test_arguments_may_be_called_args(self):
        self.assertEqual(answer("result = n", args={"n": 4}), 4)


class Values(unittest.TestCase):
    def test_what_json_cannot_say_is_text(self):
        for code, wanted in [
            ("from decimal import Decimal\nresult = Decimal('1.10')", "1.10"),
            ("from datetime import datetime, date\nresult = [datetime(2024, 1, 2, 3), date(2024, 1, 2)]", ["2024-01-02T03:00:00", "2024-01-02"]),
            ("result = [float('nan'), float('inf'), -float('inf'), 1.5]", ["NaN", "Infinity", "-Infinity", 1.5]),
            ("result = [2**64 - 1, 2**64, -2**63, -2**63 - 1]", [2**64 - 1, str(2**64), -(2**63), str(-(2**63) - 1)]),
            ("import hashlib\nresult = int(hashlib.md5(b'1').hexdigest(), 16) % 1000", int("c4ca4238a0b923820dcc509a6f75849b", 16) % 1000),
            ("result = {'big': 2**70, 'text': '12345678901234567890', 'nan': {1: (float('nan'),)}}", {"big": str(2**70), "text": "12345678901234567890", "nan": {"1": ["NaN"]}}),
            ("result = {3}", [3]),
            ("result = print", "<built-in function print>"),
            ("result = '\\ud800 ä 😀'", "? ä 😀"),
            ("result = {'b': 1, 'a': None, 'e': ''}", {"b": 1, "a": None, "e": ""}),
        ]:  # fmt: skip
            with self.subTest(code):
                self.assertEqual(answer(code), wanted)
        self.assertEqual(list(answer("result = {'b': 1, 'a': 2}")), ["b", "a"])

    def test_what_is_no_json_at_all_is_a_failure(self):
        for code in ["result = {(1, 2): 3}", "result = []\nresult.append(result)"]:
            self.assertEqual(answer(code)["_failure"]["code"], "invalid_output")


class Failures(unittest.TestCase):
    def test_an_exception_is_told_with_the_authors_line(self):
        said = answer("print('before')\n\ndef inner(x):\n    return 1 / x\n\nresult = inner(n)\n", {"n": 0})
        self.assertEqual(said["_failure"]["code"], "python_error")
        self.assertEqual(said["_failure"]["message"], "ZeroDivisionError: division by zero (code, line 4)")
        self.assertEqual((said["py"]["exception"], said["py"]["line"]), ("ZeroDivisionError", 4))
        for line in ['File "code", line 6, in <module>', 'File "code", line 4, in inner', "return 1 / x"]:
            self.assertIn(line, said["py"]["traceback"])
        self.assertNotIn("body.py", said["py"]["traceback"])
        self.assertEqual(said["stdout"], "before\n")
        self.assertIn("ZeroDivisionError", said["stderr"])

    def test_lines_stay_where_they_are_in_code_that_returns(self):
        said = answer("x = 1\n\nif x:\n    raise KeyError('a')\nreturn x\n")
        self.assertEqual(said["_failure"]["message"], "KeyError: 'a' (code, line 4)")
        self.assertIn('File "code", line 4, in <module>', said["py"]["traceback"])

    def test_text_that_is_not_python_is_told_with_its_place(self):
        said = answer("x = 1\ny = (\n")["_failure"]["message"]
        self.assertTrue(said.startswith("SyntaxError: ") and said.endswith("(code, line 2)"), said)

    def test_a_failure_of_its_own_keeps_its_code(self):
        said = answer("import noetl\nraise noetl.Failure('not_found', 'gone', retryable=True)")["_failure"]
        self.assertEqual(said, {"code": "not_found", "message": "gone (code, line 2)", "retryable": True})

    def test_leaving_with_a_number_is_a_failure(self):
        self.assertEqual(answer("import sys\nsys.exit(3)")["_failure"]["message"], "SystemExit: 3 (code, line 2)")

    def test_an_assertion_without_words(self):
        self.assertEqual(answer("assert n == 2", {"n": 1})["_failure"]["message"], "AssertionError (code, line 1)")

    def test_a_long_traceback_is_cut(self):
        said = answer("raise ValueError('x' * 100_000)")
        self.assertLess(len(said["py"]["traceback"]) + len(said["_failure"]["message"]), 20_000)


class Sources(unittest.TestCase):
    def test_libraries_are_there_before_the_code(self):
        for libs, code, wanted in [
            ({"j": "json"}, "result = j.dumps([1])", "[1]"),
            ({"Decimal": {"from": "decimal", "import": "Decimal"}}, "result = str(Decimal('1.5') * 2)", "3.0"),
            ({"parse": {"from": "urllib.parse"}}, "result = parse.quote(' ')", "%20"),
            (["math", "urllib.parse"], "result = [math.floor(1.5), urllib.parse.quote(' ')]", [1, "%20"]),
        ]:
            self.assertEqual(answer(code, libs=libs), wanted)
        said = answer("result = 1", libs={"pd": "pandas_that_is_not_there"})["_failure"]
        self.assertEqual(said["code"], "missing_module")
        self.assertIn("`pandas_that_is_not_there`", said["message"])

    def test_a_script_comes_from_where_the_step_says(self):
        files.stored["scripts/a.py"] = b"def main(name, count=1):\n    return [name] * count\n"
        inline = {"source": {"type": "inline", "code": "result = 3"}}
        self.assertEqual(answer(script=inline), 3)
        file = {"uri": "scripts/a.py", "source": {"type": "file"}}
        self.assertEqual(answer(script=file, input={"name": "Ada", "count": 2}), ["Ada", "Ada"])
        self.assertEqual(answer(script=" scripts/a.py\n", input={"name": "Ada"}), ["Ada"])
        self.assertEqual(answer(script="result = 1 + 1  # not a.py"), 2)
        files.stored["bad.py"] = b"x = 1\nraise OSError('no')\n"
        said = answer(script={"uri": "bad.py", "source": {"type": "file"}})
        self.assertEqual(said["_failure"]["message"], "OSError: no (bad.py, line 2)")
        http_client.answers.append(http_client.Response(200, [], payload.Payload(b"result = 'fetched'")))
        remote = {"uri": "a.py", "source": {"type": "http", "endpoint": "https://example.com/scripts/"}}
        self.assertEqual(answer(script=remote), "fetched")
        self.assertEqual(http_client.sent.pop().url, "https://example.com/scripts/a.py")

    def test_a_script_that_cannot_be_had_is_a_failure(self):
        self.assertEqual(refused(script={"uri": "none.py", "source": {"type": "file"}}).code, "not_found")
        http_client.answers.append(http_client.Response(503, [], payload.Payload(b"")))
        failure = refused(script={"uri": "https://example.com/a.py", "source": {"type": "http"}})
        self.assertEqual((failure.code, failure.retryable), ("script_unavailable", True))
        self.assertIn("`inline`, `file` or `http`", refused(script={"uri": "x", "source": {"type": "s3"}}).message)

    def test_arguments_that_make_no_sense_are_refused(self):
        for arguments in [{}, {"code": 1}, {"code": "", "script": {}}, {"code": "", "input": []}, {"code": "", "libs": 3}]:
            self.assertEqual(refused(**arguments).code, "invalid_input", arguments)


if __name__ == "__main__":
    unittest.main()
