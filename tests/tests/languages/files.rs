//! From a file to a live plugin with one command, and how failures look.

use serde_json::json;

use super::support::Desk;

const PYTHON: &str =
    "import noetl\n\n\ndef call(input):\n    print('called with', input)\n    return {'n': input['n'] + 1}\n";
const JS: &str =
    "export function call(input) {\n  console.log('called with', input.n);\n  return { n: input.n + 1 };\n}\n";

#[test]
fn a_file_is_live_with_one_command_and_what_it_prints_is_in_its_log() {
    let desk = Desk::new();
    for (file, text) in [("count_up.py", PYTHON), ("count-on.js", JS)] {
        let path = format!("main/{}", file.split('.').next().expect("a name"));
        desk.write(file, text);
        let pushed = desk.noetl(&["--json", "plugin", "push", file]).ok().json();
        assert_eq!((&pushed["path"], &pushed["version"]), (&json!(path), &json!("0.1.0")));
        assert_eq!(desk.call(&path, r#"{"n": 1}"#), json!({ "n": 2 }));
        desk.noetl(&["plugin", "logs", &path]).ok().says("called with");

        // Saved again, it is the next version.
        desk.write(file, &text.replace("+ 1", "+ 10"));
        let pushed = desk.noetl(&["--json", "plugin", "push", file]).ok().json();
        assert_eq!(pushed["version"], json!("0.1.1"));
        assert_eq!(desk.call(&path, r#"{"n": 1}"#), json!({ "n": 11 }));
        desk.noetl(&["plugin", "rollback", &path]).ok();
        assert_eq!(desk.call(&path, r#"{"n": 1}"#), json!({ "n": 2 }));
    }
}

#[test]
fn a_failure_names_the_authors_file_and_line() {
    let desk = Desk::new();
    desk.write("bad.py", "def inner():\n    raise ValueError('boom')\n\n\ndef call(input):\n    return inner()\n");
    desk.write(
        "bad.js",
        "function inner() {\n  throw new TypeError('boom');\n}\n\nexport function call() {\n  return inner();\n}\n",
    );
    for (file, path, wanted) in [
        ("bad.py", "main/bad", &["File \"bad.py\", line 6, in call", "File \"bad.py\", line 2, in inner", "boom"][..]),
        ("bad.js", "main/bad-js", &["at inner (bad.js:2:", "at call (bad.js:6:", "boom"]),
    ] {
        desk.noetl(&["plugin", "push", file, "--path", path]).ok();
        let failed = desk.noetl(&["plugin", "call", path, "--json-args", "{}"]).ends(7);
        wanted.iter().fold(failed, |failed, text| failed.says(text));
    }
}

#[test]
fn text_that_cannot_be_loaded_is_refused_at_the_push_and_what_serves_goes_on() {
    let desk = Desk::new();
    for (file, good, bad, wanted) in [
        ("typo.py", "def call(input):\n    return 1\n", "def call(input):\n    return (\n", "File \"typo.py\", line 2"),
        ("lost.py", "def call(input):\n    return 1\n", "import no_such_library\n", "vendor no_such_library"),
        ("typo_js.js", "export const call = () => 1;\n", "\nexport const call = (;\n", "typo_js.js:2"),
        ("lost_js.js", "export const call = () => 1;\n", "import 'lodash';\n", "vendor/lodash"),
        ("node_js.js", "export const call = () => 1;\n", "import fs from 'node:fs';\n", "module of Node.js"),
        ("std.py", "def call(input):\n    return 1\n", "import sqlite3\n", "`sqlite3` is of Python's own library"),
        // What an editor leaves for a moment, and a name that is misspelt.
        ("empty.py", "def call(input):\n    return 1\n", "", "empty.py has no function `call(input)`"),
        ("empty_js.js", "export const call = () => 1;\n", "", "empty_js.js exports no function `call(input)`"),
        ("cal.py", "def call(input):\n    return 1\n", "def cal(input):\n    return 1\n", "has no function"),
        ("cal_js.js", "export const call = () => 1;\n", "export const cal = () => 1;\n", "exports no function"),
    ] {
        let path = format!("main/{}", file.split('.').next().expect("a name"));
        desk.write(file, good);
        desk.noetl(&["plugin", "push", file]).ok();
        desk.write(file, bad);
        let refused = desk.noetl(&["plugin", "push", file]);
        assert_ne!(refused.code, 0, "{file}");
        refused.says("cannot be loaded").says(wanted);
        assert_eq!(desk.call(&path, "{}"), json!(1));
    }
}

#[test]
fn watching_goes_on_after_text_that_cannot_be_loaded() {
    let desk = Desk::new();
    desk.write("w.py", "def call(input):\n    return 1\n");
    let mut watching = desk.watch("w.py");
    assert_eq!(watching.next()["version"], json!("0.1.0-dev.1"));
    desk.write("w.py", "def call(input:\n");
    std::fs::remove_file(desk.path("w.py")).expect("removes");
    desk.write("w.py", "def call(input):\n    return 'mended'\n");
    assert_eq!(watching.next()["version"], json!("0.1.0-dev.2"));
    let answer = desk.noetl(&["plugin", "call", "main/w", "--channel", "dev", "--json-args", "{}"]).ok().json();
    assert_eq!(answer, json!("mended"));
}

#[test]
fn more_of_the_languages_is_there() {
    let desk = Desk::new();
    desk.write(
        "library.py",
        "import asyncio, concurrent.futures.thread, importlib.metadata, importlib.resources.readers\n\
         from datetime import datetime\nfrom zoneinfo import ZoneInfo\n\n\n\
         async def call(input):\n    await asyncio.sleep(0.001)\n    \
         when = datetime.strptime('2024-07-01 12:00', '%Y-%m-%d %H:%M')\n    \
         return [when.replace(tzinfo=ZoneInfo('Europe/Berlin')).isoformat(), 'ź'.encode('cp1250').hex()]\n",
    );
    desk.write("more/plugin.toml", "path = \"main/more\"\nversion = \"1.0.0\"\nworld = \"tool\"\ncapabilities = [\"log\", \"payload\"]\n[source]\nlanguage = \"js\"\nentry = \"main.js\"\n");
    desk.write(
        "more/main.js",
        "export async function call() {\n  const { two } = await import('./two.js');\n  await new Promise((done) => setTimeout(done, 1));\n  return two;\n}\n",
    );
    desk.write("more/two.js", "export const two = 2;\n");
    for what in ["library.py", "more"] {
        desk.noetl(&["plugin", "push", what]).ok();
    }
    assert_eq!(desk.call("main/library", "{}"), json!(["2024-07-01T12:00:00+02:00", "9f"]));
    assert_eq!(desk.call("main/more", "{}"), json!(2));
}

#[test]
fn a_folder_brings_its_modules_and_libraries() {
    let desk = Desk::new();
    let manifest = |path: &str, language: &str, entry: &str| {
        format!(
            "path = \"{path}\"\nversion = \"1.0.0\"\nworld = \"transform\"\n[source]\nlanguage = \"{language}\"\n\
             entry = \"{entry}\"\n"
        )
    };
    desk.write("py/plugin.toml", &manifest("main/py", "python", "app/main.py"));
    desk.write(
        "py/app/main.py",
        "from app.words import WORDS\nimport shout\n\n\ndef run(data):\n    return shout.loud(WORDS)\n",
    );
    desk.write("py/app/words.py", "WORDS = 'hello'\n");
    desk.write("py/vendor/shout/__init__.py", "def loud(text):\n    return text.upper().encode()\n");
    desk.write("js/plugin.toml", &manifest("main/js", "js", "main.ts"));
    desk.write("js/main.ts", "import { words } from './words';\nimport loud from 'shout';\nexport const run = (data: Uint8Array): string => loud(words);\n");
    desk.write("js/words.js", "export const words = 'hello';\n");
    desk.write("js/vendor/shout/package.json", "{\"main\": \"lib/shout.js\"}");
    desk.write("js/vendor/shout/lib/shout.js", "module.exports = (text) => text.toUpperCase();\n");
    for (folder, path) in [("py", "main/py"), ("js", "main/js")] {
        desk.noetl(&["plugin", "push", folder]).ok();
        assert_eq!(desk.noetl(&["plugin", "call", path]).ok().stdout, "HELLO");
    }
}

#[test]
fn a_library_of_python_finds_its_data_and_its_version() {
    let desk = Desk::new();
    desk.write(
        "p/plugin.toml",
        "path = \"main/p\"\nversion = \"1.0.0\"\nworld = \"tool\"\ncapabilities = [\"log\", \"payload\"]\n[source]\n\
         language = \"python\"\nentry = \"app/main.py\"\n",
    );
    desk.write(
        "p/app/main.py",
        "from importlib import metadata, resources\nimport beside, words\n\n\ndef call(input):\n    \
         data = resources.files('words') / 'data'\n    \
         return [sorted(file.name for file in data.iterdir()), (data / 'one.txt').read_text(), words.VERSION,\n            \
         [point.value for point in metadata.entry_points(group='things')], beside.TWO,\n            \
         resources.files('words.part').joinpath('data/one.txt').read_text(),\n            \
         resources.files('only').joinpath('three.txt').read_text()]\n",
    );
    desk.write("p/app/beside.py", "TWO = 2\n");
    desk.write("p/vendor/words/__init__.py", "from importlib.metadata import version\n\nVERSION = version('words')\n");
    desk.write("p/vendor/words/part.py", "");
    desk.write("p/vendor/words/data/one.txt", "eins");
    desk.write("p/vendor/words/data/deep/two.txt", "zwei");
    desk.write("p/vendor/only/three.txt", "drei");
    desk.write("p/vendor/words-1.2.dist-info/METADATA", "Metadata-Version: 2.1\nName: words\nVersion: 1.2\n");
    desk.write("p/vendor/words-1.2.dist-info/entry_points.txt", "[things]\none = words.part:thing\n");
    desk.noetl(&["plugin", "push", "p"]).ok();
    let found = json!([["deep", "one.txt"], "eins", "1.2", ["words.part:thing"], 2, "eins", "drei"]);
    assert_eq!(desk.call("main/p", "{}"), found);
}

#[test]
fn a_traceback_through_an_import_and_a_reader_has_no_lines_of_the_interpreter() {
    let desk = Desk::new();
    desk.write("late.py", "def call(input):\n    import json\n    return json.loads('[' * 5_000)\n");
    desk.noetl(&["plugin", "push", "late.py"]).ok();
    let failed = desk.noetl(&["plugin", "call", "main/late", "--json-args", "{}"]).ends(7).says("nested deeper");
    assert!(!failed.stderr.contains("_noetl_") && failed.stderr.contains("late.py\", line 3"), "{}", failed.stderr);
}

#[test]
fn libraries_of_javascript_begin_where_they_say_and_a_function_is_a_plugin() {
    let desk = Desk::new();
    desk.write(
        "j/plugin.toml",
        "path = \"main/j\"\nversion = \"1.0.0\"\nworld = \"tool\"\ncapabilities = [\"log\", \"payload\"]\n[source]\n\
         language = \"js\"\nentry = \"main.js\"\n",
    );
    desk.write(
        "j/main.js",
        "import one from 'one';\nimport { two } from '@scope/lib/two';\nimport three from 'three';\n\n\
         module.exports = () => [one, two, three()];\n",
    );
    desk.write("j/vendor/one/package.json", r#"{"main": "lib/a"}"#);
    desk.write("j/vendor/one/lib/a.js", "module.exports = 1;\n");
    let exports = r#"{"exports": {".": "./no.js", "./two": {"import": "./two.mjs"}}}"#;
    desk.write("j/vendor/@scope/lib/package.json", exports);
    desk.write("j/vendor/@scope/lib/two.mjs", "export const two = 2;\n");
    let exports = r#"{"exports": {"import": "./three.mjs", "require": "./dist/three.cjs"}, "main": "./dist"}"#;
    desk.write("j/vendor/three/package.json", exports);
    desk.write("j/vendor/three/three.mjs", "export default () => 'import';\n");
    desk.write("j/vendor/three/dist/three.cjs", "module.exports = () => 3;\n");
    desk.noetl(&["plugin", "push", "j"]).ok();
    assert_eq!(desk.call("main/j", "{}"), json!([1, 2, 3]));
}

#[test]
fn a_saved_change_is_live_while_it_is_watched() {
    let desk = Desk::new();
    for (lang, file) in [("python", "main.py"), ("js", "main.js")] {
        let (folder, path) = (format!("{lang}-greeter"), format!("main/{lang}-greeter"));
        desk.noetl(&["plugin", "new", &folder, "--path", &path, "--world", "transform", "--lang", lang]).ok();
        let mut watching = desk.watch(&folder);
        assert_eq!(watching.next()["version"], json!("0.1.0-dev.1"));
        let entry = format!("{folder}/{file}");
        desk.write(&entry, &desk.read(&entry).replace("Hello", "Good morning"));
        assert_eq!(watching.next()["version"], json!("0.1.0-dev.2"));
        let input = r#"{"name": "Ada"}"#;
        let answer = desk.noetl(&["plugin", "call", &path, "--channel", "dev", "--input", input]).ok().json();
        assert_eq!(answer, json!({ "greeting": "Good morning, Ada!" }));
    }
}
