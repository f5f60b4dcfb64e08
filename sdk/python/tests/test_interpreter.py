"""The interpreter's own code, run by the Python of this machine: what authors see of it, without a sandbox."""

import contextlib
import hashlib
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

sys.modules["_noetl_library"] = SimpleNamespace(bring=lambda: None)
import _noetl_interpreter as interpreter  # noqa: E402
import noetl  # noqa: E402

WORLD = interpreter.WitWorld()


@contextlib.contextmanager
def loaded(entry="plugin_under_test.py", others=None, **files):
    """A program made of these files and of others with paths of their own; what it imported is forgotten after."""
    before, finders, out = dict(sys.modules), list(sys.meta_path), sys.stdout
    hooks, path, arguments = list(sys.path_hooks), list(sys.path), list(sys.argv)
    # As in a sandbox: text that goes to bytes, which can be told to keep lines together.
    sys.stdout = io.TextIOWrapper(io.BytesIO())
    try:
        texts = {name.replace("__", "/") + ".py": text for name, text in files.items()} | (others or {})
        encoded = {path: text if isinstance(text, bytes) else text.encode() for path, text in texts.items()}
        WORLD.load(entry, [SimpleNamespace(path=path, content=text) for path, text in encoded.items()])
        yield
    finally:
        sys.stdout = out
        sys.meta_path[:], sys.path_hooks[:], sys.path[:], sys.argv[:] = finders, hooks, path, arguments
        # A folder of one program is another one in the next.
        sys.path_importer_cache.clear()
        for name in set(sys.modules) - set(before):
            del sys.modules[name]
        sys.modules.update(before)
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

    def test_a_plugin_says_what_it_does_or_nothing(self):
        function = "def call(input):\n    return 1\n"
        with loaded(plugin_under_test=f"{function}describe = {{'summary': 'Adds.'}}\n"):
            self.assertEqual(WORLD.describe(), '{"summary":"Adds."}')
        with loaded(plugin_under_test=f"{function}def describe():\n    return '{{}}'\n"):
            self.assertEqual(WORLD.describe(), "{}")
        with loaded(plugin_under_test=function):
            self.assertIsNone(WORLD.describe())

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

    def test_what_is_async_runs_to_its_end(self):
        entry = "import asyncio\n\nasync def call(input):\n    await asyncio.sleep(0)\n    return await asyncio.to_thread(len, 'abc')\n"
        with loaded(plugin_under_test=entry):
            self.assertEqual(call({}).output, "3")
        with loaded(plugin_under_test="async def run(data):\n    return data\n"):
            self.assertEqual(WORLD.run(b"abc"), b"abc")
        with loaded(plugin_under_test="import asyncio\n\ndef call(input):\n    return asyncio.run(asyncio.sleep(0, 7))\n"):
            self.assertEqual(call({}).output, "7")

    def test_the_authors_modules_go_before_the_librarys(self):
        entry = "import colorsys, program, web\n\ndef call(input):\n    return [colorsys.OWN, program.OWN, web.OWN]\n"
        own = dict.fromkeys(("colorsys", "program", "web"), "OWN = 1\n")
        import colorsys

        with loaded(plugin_under_test=entry, **own):
            self.assertEqual(call({}).output, "[1,1,1]")
            self.assertIsNot(sys.modules["colorsys"], colorsys)

    def test_modules_beside_an_entry_that_lies_deeper_are_found(self):
        entry = "import words_under_test, colorsys\nfrom app_under_test.words_under_test import WORDS\n\n"
        entry += "def call(input):\n    return [words_under_test.WORDS, WORDS, colorsys.OWN]\n"
        files = {"app_under_test__words_under_test": "WORDS = 1\n", "app_under_test__colorsys": "OWN = 2\n"}
        importlib.import_module("colorsys")
        with loaded("app_under_test/main.py", app_under_test__main=entry, **files):
            self.assertEqual(call({}).output, "[1,1,2]")

    def test_a_folder_without_a_file_of_its_own_hides_no_library(self):
        entry = "import lib_under_test\n\ndef call(input):\n    return lib_under_test.ONE\n"
        others = {"lib_under_test/notes.txt": "notes"}
        with loaded(plugin_under_test=entry, others=others, vendor__lib_under_test="ONE = 1\n"):
            self.assertEqual(call({}).output, "1")

    def test_an_entry_may_have_the_name_of_a_module_it_uses(self):
        importlib.import_module("colorsys")
        with loaded("colorsys.py", colorsys="import colorsys\n\ndef call(input):\n    return colorsys.rgb_to_hsv(0, 0, 0)\n"):
            self.assertEqual(call({}).output, "[0.0,0.0,0]")


class Odd(unittest.TestCase):
    """What must not end a call as if the interpreter had crashed."""

    def test_half_a_surrogate_pair_goes_in_and_out(self):
        half = '"\\ud800"'
        with loaded(plugin_under_test="def call(input):\n    print(input)\n    return input\n"):
            self.assertEqual(WORLD.call(tooling.Request(half, None, "", 1)).output, half)
        with loaded(plugin_under_test="def run(data):\n    return '\\ud800'\n"):
            self.assertEqual(WORLD.run(b""), b"?")
        with loaded(plugin_under_test="import noetl\n\ndef call(input):\n    noetl.log.info(input)\n    raise ValueError(input)\n"):
            said = failure(WORLD.call, tooling.Request(half, None, "", 1))
            self.assertIn("\\ud800", said.message)
            said.message.encode()

    def test_deep_json_is_refused_both_ways(self):
        with loaded(plugin_under_test="def call(input):\n    return input\n"):
            deep = "[" * 5_000 + "]" * 5_000
            self.assertEqual(failure(WORLD.call, tooling.Request(deep, None, "", 1)).code, "invalid_input")
            self.assertEqual(failure(WORLD.run, deep.encode()).code, "invalid_input")
            brackets = json.dumps("[" * 5_000)
            self.assertEqual(WORLD.call(tooling.Request(brackets, None, "", 1)).output, brackets)
            wide = json.dumps([[]] * 5_000, separators=(",", ":"))
            self.assertEqual(WORLD.call(tooling.Request(wide, None, "", 1)).output, wide)
        with loaded(plugin_under_test="import json\n\ndef call(input):\n    json.loads('[' * 5_000 + ']' * 5_000)\n"):
            self.assertIn("nested deeper", failure(call, {}).message)
        deep = "def call(input):\n    a = []\n    for _ in range(5_000):\n        a = [a]\n    return a\n"
        itself = "def call(input):\n    a = []\n    a += [a, a]\n    return a\n"
        for entry in (deep, itself):
            with loaded(plugin_under_test=entry):
                self.assertEqual(failure(call, {}).code, "invalid_output")

    def test_bytes_that_are_no_text_are_no_input(self):
        with loaded(plugin_under_test="def call(input):\n    return input\n"):
            self.assertEqual(failure(WORLD.run, b"\xff").code, "invalid_input")

    def test_whatever_is_raised_is_a_failure(self):
        raised = {
            "class E(Exception):\n    def __str__(self):\n        raise KeyError\nraise_ = E()\n": "exception",
            "import noetl\nraise_ = noetl.Failure(5, None, retryable='yes')\n": "5",
            "import noetl\nraise_ = noetl.Failure('a')\nraise_.code = None\nraise_.message = object()\n": "None",
            "raise_ = ExceptionGroup('all', [ValueError(1), KeyError(2)])\n": "exception",
        }
        for text, code in raised.items():
            with loaded(plugin_under_test=f"{text}\ndef call(input):\n    raise raise_\n"):
                said = failure(call, {})
                self.assertEqual((said.code, type(said.message), type(said.retryable)), (code, str, bool))

    def test_streams_may_be_gone(self):
        for text in ("sys.stdout = None", "sys.stdout.close()", "sys.stdout = object()"):
            with loaded(plugin_under_test=f"import sys\n\ndef call(input):\n    {text}\n    return 1\n"):
                self.assertEqual(call({}).output, "1")

    def test_a_response_is_checked(self):
        for text in ("noetl.Response(1, b'x')", "noetl.Response(encoded=5)", "noetl.Response(object())"):
            with loaded(plugin_under_test=f"import noetl\n\ndef call(input):\n    return {text}\n"):
                self.assertEqual(failure(call, {}).code, "invalid_output")

    def test_a_file_that_is_not_utf8_says_how_to_mend_it(self):
        with self.assertRaises(Err) as raised, loaded(plugin_under_test=b"x = '\xe9'\n"):
            pass
        self.assertIn("coding: latin-1", raised.exception.value.message)
        with loaded(plugin_under_test=b"\xef\xbb\xbfdef call(input):\n    return 1\n"):
            self.assertEqual(call({}).output, "1")

    def test_a_missing_library_says_where_it_goes(self):
        with self.assertRaises(Err) as raised, loaded(plugin_under_test="import no_such_library.part\n"):
            pass
        self.assertIn("pip install --target vendor no_such_library", raised.exception.value.message)

    def test_advice_for_what_cannot_be_installed_is_another(self):
        library = "try:\n    import lib_under_test._fast\nexcept ImportError as error:\n    raise ImportError('no') from error\n"
        compiled = "vendor/lib_under_test/_fast.cpython-314-x86_64-linux-gnu.so"
        others = {compiled: b"\x7fELF", "vendor/lib_under_test/__init__.py": library}
        with self.assertRaises(Err) as raised, loaded(plugin_under_test="import lib_under_test\n", others=others):
            pass
        self.assertIn(f"{compiled} is compiled", raised.exception.value.message)
        for text, wanted in (
            ("raise ModuleNotFoundError('x', name='sqlite3')\n", "`sqlite3` is of Python's own library"),
            ("raise ModuleNotFoundError('x', name='multiprocessing.pool')\n", "no processes"),
            ("raise ModuleNotFoundError('x', name='ssl')\n", "no sockets"),
            ("raise ModuleNotFoundError('x', name='bz2')\n", "machine code"),
            ("import own_under_test.missing\n", "No module named 'own_under_test.missing'"),
        ):
            with self.assertRaises(Err) as raised, loaded(plugin_under_test=text, own_under_test=""):
                pass
            self.assertIn(wanted, raised.exception.value.message)
            self.assertNotIn("pip install", raised.exception.value.message)

    def test_what_is_compiled_beside_plain_python_does_no_harm(self):
        others = {"vendor/lib_under_test/_fast.so": b"", "vendor/lib_under_test/__init__.py": (
            "import importlib.util\nFAST = importlib.util.find_spec('lib_under_test._fast') is not None\n"
            "try:\n    from . import _fast\nexcept ImportError:\n    ONE = 1\n"
        )}  # fmt: skip
        with loaded(plugin_under_test="from lib_under_test import ONE, FAST\ndef call(input):\n    return [ONE, FAST]\n", others=others):
            self.assertEqual(call({}).output, "[1,false]")


class Libraries(unittest.TestCase):
    """What a library finds of the files it came with."""

    FILES = {
        "vendor/lib_under_test/__init__.py": "",
        "vendor/lib_under_test/part.py": "",
        "vendor/lib_under_test/inner/__init__.py": "",
        "vendor/lib_under_test/inner/most.py": "MOST = 3\n",
        "beside_under_test.txt": "daneben",
        "vendor/lib_under_test/data/one.txt": "eins",
        "vendor/lib_under_test/data/deep/two.bin": b"\xff",
        "vendor/only_files/three.txt": "drei",
        "vendor/Lib.Under_Test-1.2.dist-info/METADATA": "Metadata-Version: 2.1\nName: Lib.Under-Test\nVersion: 1.2\n",
        "vendor/Lib.Under_Test-1.2.dist-info/RECORD": "lib_under_test/__init__.py,,\nlib_under_test/gone.py,,\n",
        "vendor/Lib.Under_Test-1.2.dist-info/entry_points.txt": "[things]\none = lib_under_test.part:thing\n",
    }

    def answer(self, text):
        entry = f"import importlib.metadata as metadata, importlib.resources as resources, pkgutil\n\n\ndef call(input):\n    {text}\n"
        with loaded(plugin_under_test=entry, others=self.FILES):
            return json.loads(call({}).output)

    def test_data_of_a_package_is_read_and_listed(self):
        top = "resources.files('lib_under_test')"
        for text, wanted in {
            f"sorted(p.name for p in {top}.joinpath('data').iterdir())": ["deep", "one.txt"],
            f"({top} / 'data' / 'one.txt').read_text()": "eins",
            f"{top}.joinpath('data/deep', 'two.bin').read_bytes().hex()": "ff",
            f"[{top}.is_dir(), ({top} / 'no').is_file(), ({top} / 'data/deep').is_dir()]": [True, False, True],
            "resources.files('only_files').joinpath('three.txt').read_text(encoding='utf-8')": "drei",
            "resources.files('lib_under_test.data').joinpath('one.txt').open('r', encoding='utf-8').read()": "eins",
            "pkgutil.get_data('lib_under_test', 'data/one.txt').decode()": "eins",
        }.items():
            self.assertEqual(self.answer(f"return {text}"), wanted, text)

    @unittest.skipIf(sys.version_info < (3, 12), "this Python asks packages alone; that of the sandbox does not")
    def test_a_module_finds_what_lies_beside_it(self):
        for text, wanted in {
            "resources.files('lib_under_test.part').joinpath('data/one.txt').read_text()": "eins",
            "resources.files('plugin_under_test').joinpath('vendor/only_files/three.txt').read_text()": "drei",
            "resources.files().joinpath('vendor/only_files/three.txt').read_text()": "drei",
        }.items():
            self.assertEqual(self.answer(f"return {text}"), wanted, text)

    def test_modules_of_a_package_are_listed_as_those_on_a_disk_are(self):
        names = "sorted(m.name for m in pkgutil.{})"
        for text, wanted in {
            names.format("iter_modules(lib_under_test.__path__)"): ["inner", "part"],
            names.format("walk_packages(lib_under_test.__path__, 'lib_under_test.')"): [
                "lib_under_test.inner", "lib_under_test.inner.most", "lib_under_test.part",
            ],
            "[m.ispkg for m in pkgutil.iter_modules(lib_under_test.__path__)]": [True, False],
            "[m.module_finder.find_spec(m.name).origin for m in pkgutil.iter_modules(['/vendor/lib_under_test/inner'])]": [
                "vendor/lib_under_test/inner/most.py"
            ],
            "[m.name for m in pkgutil.iter_modules() if m.name.endswith('_under_test')]": [
                "plugin_under_test", "lib_under_test",
            ],
            "list(pkgutil.iter_modules(['vendor/no', 'no']))": [],
        }.items():  # fmt: skip
            self.assertEqual(self.answer(f"import lib_under_test; return {text}"), wanted, text)

    def test_a_folder_that_is_added_to_the_path_is_searched(self):
        for folder in ("vendor/lib_under_test/inner", "/vendor/lib_under_test/part/../inner"):
            self.assertEqual(self.answer(f"import sys; sys.path.append({folder!r}); import most; return most.MOST"), 3)

    def test_a_file_that_is_wanted_as_one_of_a_disk_is_read_as_it_is(self):
        file = "resources.files('lib_under_test') / 'data/one.txt'"
        self.assertEqual(self.answer(f"with resources.as_file({file}) as f: return [f.read_text(), f.name, str(f)]"),
                         ["eins", "one.txt", "vendor/lib_under_test/data/one.txt"])  # fmt: skip

    def test_who_opens_a_file_of_the_bundle_is_told_how_to_read_it(self):
        read = 'importlib.resources.files("lib_under_test")'
        for text, wanted in {
            "open('vendor/lib_under_test/data/one.txt')": f'{read}.joinpath("data/one.txt").read_text()',
            "open('/vendor/lib_under_test/../lib_under_test/data/one.txt')": f'{read}.joinpath("data/one.txt").read_text()',
            "open(resources.files('lib_under_test') / 'data/one.txt')": f'{read}.joinpath("data/one.txt").read_text()',
            "__import__('os').listdir('vendor/lib_under_test')": f"{read}.iterdir()",
            "open('beside_under_test.txt')": 'importlib.resources.files(__name__).joinpath("beside_under_test.txt").read_text()',
            "open('no/such/file.txt')": "A sandbox has no files",
        }.items():
            with loaded(plugin_under_test=f"from importlib import resources\ndef call(input):\n    {text}\n", others=self.FILES):
                said = failure(call, {}).message
            self.assertIn(wanted, said, text)
            self.assertIn('File "plugin_under_test.py", line 3', said)
        with loaded(plugin_under_test="def call(input):\n    raise FileNotFoundError('my own')\n"):
            self.assertTrue(failure(call, {}).message.endswith("my own"))

    def test_what_is_not_there_is_told(self):
        for text, wanted in {
            "resources.files('lib_under_test').joinpath('no.txt').read_text()": "FileNotFoundError",
            "resources.files('lib_under_test').joinpath('data').read_text()": "IsADirectoryError",
            "list(resources.files('lib_under_test').joinpath('no').iterdir())": "FileNotFoundError",
            "metadata.version('nobody')": "PackageNotFoundError",
        }.items():
            caught = f"try:\n        {text}\n    except Exception as error:\n        return type(error).__name__"
            self.assertEqual(self.answer(caught), wanted, text)

    def test_a_library_knows_its_version_and_what_it_offers(self):
        for text, wanted in {
            "metadata.version('lib-under-test')": "1.2",
            "metadata.metadata('Lib_Under.Test')['Name']": "Lib.Under-Test",
            "[e.value for e in metadata.entry_points(group='things')]": ["lib_under_test.part:thing"],
            "[d.version for d in metadata.distributions() if d.name == 'Lib.Under-Test']": ["1.2"],
            "metadata.files('lib_under_test')[0].locate().exists()": True,
        }.items():
            self.assertEqual(self.answer(f"return {text}"), wanted, text)


class Sockets(unittest.TestCase):
    """The standard library of this machine has lost its own by the import of the interpreter."""

    def test_every_way_to_one_is_an_error_that_is_caught(self):
        entry = "import http.client, socket\n\n\ndef call(input):\n    try:\n        {}\n    except {} as error:\n        return str(error)\n"
        for text, error in {
            "socket.socket()": "OSError",
            "class Own(socket.socket): pass\n        Own(socket.AF_INET)": "OSError",
            "socket.create_connection(('example.com', 80), timeout=1)": "OSError",
            "socket.create_server(('', 0))": "OSError",
            "socket.socketpair()": "OSError",
            "socket.getaddrinfo('example.com', 80)": "socket.gaierror",
            "socket.gethostbyname('example.com')": "socket.gaierror",
            "socket.gethostbyname_ex('example.com')": "socket.gaierror",
            "socket.gethostbyaddr('127.0.0.1')": "socket.herror",
            "http.client.HTTPConnection('example.com').request('GET', '/')": "OSError",
        }.items():
            with loaded(plugin_under_test=entry.format(text, error)):
                self.assertIn("a sandbox has no sockets: use `noetl.http`", call({}).output, text)

    def test_one_that_is_not_caught_names_the_authors_line(self):
        with loaded(plugin_under_test="import socket\n\ndef call(input):\n    return socket.socket()\n"):
            said = failure(call, {}).message
        self.assertIn('File "plugin_under_test.py", line 4, in call', said)
        self.assertNotIn("_noetl_", said)

    def test_in_code_of_a_step_it_is_at_its_line_too(self):
        entry = "from noetl import script\n\ndef call(input):\n    return script.run(input)\n"
        with loaded(plugin_under_test=entry):
            said = json.loads(call({"code": "import socket\nsocket.create_connection(('a', 1))"}).output)["py"]
        self.assertEqual((said["exception"], said["line"]), ("OSError", 2))
        self.assertNotIn("_noetl_", said["traceback"])

    def test_what_only_computes_is_there(self):
        entry = "import socket\n\ndef call(input):\n    return [socket.gethostname(), socket.getfqdn(), socket.inet_aton('1.2.3.4').hex(), socket.has_ipv6]\n"
        with loaded(plugin_under_test=entry):
            self.assertEqual(json.loads(call({}).output), ["localhost", "localhost", "01020304", False])

    def test_a_client_that_gives_up_before_it_tries_is_explained(self):
        library = "def get():\n    raise OSError('no certificates')\n"
        others = {"vendor/requests/__init__.py": "from .api import get\n", "vendor/requests/api.py": library}
        with loaded(plugin_under_test="import requests\ndef call(input):\n    requests.get()\n", others=others):
            self.assertIn("no certificates\nThe library reaches nothing here, because a sandbox has no sockets", failure(call, {}).message)


class Hashes(unittest.TestCase):
    def test_keys_of_passwords_are_those_of_every_python(self):
        import _noetl_hashing as hashing

        for arguments in (
            ("sha1", b"password", b"salt", 1),
            ("sha256", b"password", b"salt", 100, 70),
            ("SHA512", bytearray(b"p" * 200), memoryview(b""), 3, 1),
            ("md5", b"", b"salt", 2, 33),
        ):
            self.assertEqual(hashing.pbkdf2_hmac(*arguments), hashlib.pbkdf2_hmac(*arguments), arguments)
        for arguments in (("none", b"", b"", 1), ("sha1", b"", b"", 0), ("sha1", b"", b"", 1, 0), ("shake_128", b"", b"", 1)):
            self.assertRaises(ValueError, hashing.pbkdf2_hmac, *arguments)
        for arguments in ((b"sha1", b"", b"", 1), ("sha1", "text", b"", 1), ("sha1", b"", 5, 1)):
            self.assertRaises(TypeError, hashing.pbkdf2_hmac, *arguments)


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

    def test_a_plugin_without_a_function_is_not_loaded_and_told_what_to_write(self):
        for text in ("", "x = 1\n", "def cal(input):\n    return 1\n", "call = 5\n"):
            with self.assertRaises(Err) as raised, loaded(plugin_under_test=text):
                pass
            self.assertEqual(raised.exception.value.code, "no_function")
            self.assertIn("plugin_under_test.py has no function `call(input)`", raised.exception.value.message)
        with loaded(plugin_under_test="def run(data):\n    return data\n"):
            self.assertIn("`transform`", failure(call, {}).message)
        self.assertEqual(noetl.context.attempt, 2)

    def test_what_imports_and_readers_put_between_an_authors_lines_is_left_out(self):
        entry = "import lib_under_test\n"
        with self.assertRaises(Err) as raised, loaded(plugin_under_test=entry, lib_under_test="import json\njson.loads('{')\n"):
            pass
        said = raised.exception.value.message
        for line in ('File "plugin_under_test.py", line 1', 'File "lib_under_test.py", line 2', "in loads"):
            self.assertIn(line, said)
        for word in ("<frozen", "_noetl_"):
            self.assertNotIn(word, said)


if __name__ == "__main__":
    unittest.main()
