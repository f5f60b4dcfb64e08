//! What holds for source text as for every plugin: its own grant, its limits, a sandbox a call.

use serde_json::json;

use super::support::Desk;

fn header(comment: &str, lines: &[&str]) -> String {
    let mut text = format!("{comment} /// noetl\n");
    lines.iter().for_each(|line| text.push_str(&format!("{comment} {line}\n")));
    text + comment + " ///\n"
}

#[test]
fn what_is_not_granted_ends_the_call_and_the_line_to_write_is_named() {
    let desk = Desk::new();
    let python = "import noetl\n\n\ndef call(input):\n    try:\n        noetl.kv.put('a', 'b')\n    except BaseException:\n        return 'caught'\n";
    let js = "import { kv } from 'noetl';\nexport function call() {\n  try {\n    kv.put('a', 'b');\n  } catch {\n    return 'caught';\n  }\n}\n";
    for (file, comment, text) in [("grant_py.py", "#", python), ("grant_js.js", "//", js)] {
        let path = format!("main/{}", file.split('.').next().expect("a name"));
        desk.write(file, text);
        desk.noetl(&["plugin", "push", file]).ok();
        let denied = desk.noetl(&["plugin", "call", &path, "--json-args", "{}"]);
        assert_ne!(denied.code, 0);
        denied.says("capabilities = [\"log\", \"kv\", \"payload\"]");

        let asks = header(comment, &["capabilities = [\"log\", \"kv\", \"payload\"]"]);
        desk.write(file, &format!("{asks}{text}"));
        desk.noetl(&["plugin", "push", file, "--grant", "kv"]).ok();
        assert_eq!(desk.call(&path, "{}"), json!(null));
        // A call may hold less than the plugin.
        let narrow = ["plugin", "call", &path, "--json-args", "{}", "--capabilities", "payload"];
        desk.noetl(&narrow).says("which this call does not grant");
    }
}

#[test]
fn every_call_has_a_sandbox_of_its_own_unless_the_plugin_asks_to_keep_it() {
    let desk = Desk::new();
    let python = "import random\n\ncount = 0\n\n\ndef call(input):\n    global count\n    count += 1\n    return [count, random.random()]\n";
    let js = "let count = 0;\nexport function call() {\n  count += 1;\n  return [count, Math.random()];\n}\n";
    for (ending, comment, text) in [("py", "#", python), ("js", "//", js)] {
        let resident =
            header(comment, &["world = \"transform\"", "capabilities = [\"log\"]", "instance = \"resident\""]);
        let fresh = header(comment, &["world = \"transform\"", "capabilities = []"]);
        for (name, top, counts) in [("fresh", fresh, [1, 1, 1]), ("kept", resident, [1, 2, 3])] {
            let (file, path) = (format!("{name}_{ending}.{ending}"), format!("main/{name}_{ending}"));
            desk.write(&file, &format!("{top}{text}"));
            desk.noetl(&["plugin", "push", &file]).ok();
            let answers: Vec<_> = counts.iter().map(|_| desk.noetl(&["plugin", "call", &path]).ok().json()).collect();
            assert_eq!(answers.iter().map(|answer| answer[0].clone()).collect::<Vec<_>>(), counts.map(|n| json!(n)));
            assert_ne!(answers[0][1], answers[1][1], "randomness is new in every call");
        }
    }
}

#[test]
fn only_a_pure_function_is_kept() {
    let desk = Desk::new();
    let top = header("#", &["world = \"transform\"", "capabilities = [\"kv\"]", "instance = \"resident\""]);
    desk.write("kept.py", &format!("{top}def call(input):\n    return 1\n"));
    let refused = desk.noetl(&["plugin", "push", "kept.py"]);
    assert_ne!(refused.code, 0);
    refused.says("not `kv`");
}

#[test]
fn a_program_that_goes_wrong_is_ended_and_others_go_on() {
    let desk = Desk::new();
    let limits = |comment| header(comment, &["[limits]", "cpu_ms = 300"]);
    desk.write("spin.py", &format!("{}def call(input):\n    while True:\n        pass\n", limits("#")));
    desk.write("spin_js.js", &format!("{}export function call() {{\n  for (;;) {{}}\n}}\n", limits("//")));
    desk.write(
        "hoard.py",
        "def call(input):\n    kept = []\n    while True:\n        kept.append(bytearray(1 << 20))\n",
    );
    desk.write("fine.py", "def call(input):\n    return 'fine'\n");
    for file in ["spin.py", "spin_js.js", "hoard.py", "fine.py"] {
        desk.noetl(&["plugin", "push", file]).ok();
    }
    for (path, wanted) in [("main/spin", "limits.cpu_ms"), ("main/spin_js", "limits.cpu_ms"), ("main/hoard", "memory")]
    {
        let ended = desk.noetl(&["plugin", "call", path, "--json-args", "{}"]);
        assert_ne!(ended.code, 0);
        let said = format!("{}{}", ended.stdout, ended.stderr).to_lowercase();
        assert!(said.contains(wanted), "{path}: {said}");
        assert_eq!(desk.call("main/fine", "{}"), json!("fine"));
    }
}

#[test]
fn a_language_the_server_does_not_have_is_refused_with_those_it_has() {
    let desk = Desk::new();
    desk.write(
        "p/plugin.toml",
        "path = \"main/p\"\nversion = \"1.0.0\"\nworld = \"transform\"\n[source]\nlanguage = \"cobol\"\nentry = \"main.cob\"\n",
    );
    desk.write("p/main.cob", "");
    let refused = desk.noetl(&["plugin", "push", "p"]);
    assert_ne!(refused.code, 0);
    refused.says("js, python");
}

#[test]
fn neither_input_nor_mistakes_of_an_author_are_crashes() {
    let desk = Desk::new();
    let transform = |comment| header(comment, &["world = \"transform\"", "capabilities = []"]);
    desk.write("echo.py", &format!("{}def call(input):\n    print(input)\n    return input\n", transform("#")));
    desk.write("echo_js.js", &format!("{}export const call = (input) => input;\n", transform("//")));
    for file in ["echo.py", "echo_js.js"] {
        desk.noetl(&["plugin", "push", file]).ok();
    }
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    desk.write("deep.json", &deep);
    for path in ["main/echo", "main/echo_js"] {
        assert_eq!(desk.noetl(&["plugin", "call", path, "--input", r#""\ud800""#]).ok().stdout, r#""\ud800""#);
    }
    desk.noetl(&["plugin", "call", "main/echo", "--input", "@deep.json"]).ends(7).says("invalid_input");

    for (name, text) in [
        (
            "str.py",
            "class E(Exception):\n    def __str__(self):\n        raise KeyError\n\n\ndef call(input):\n    raise E()\n",
        ),
        ("code.py", "import noetl\n\n\ndef call(input):\n    raise noetl.Failure(5, None, retryable='x')\n"),
        ("body.py", "import noetl\n\n\ndef call(input):\n    return noetl.Response(1, b'x')\n"),
        ("itself.py", "def call(input):\n    a = []\n    a += [a, a]\n    return a\n"),
        ("thrown.js", "export function call() {\n  throw { toString() { throw 1; } };\n}\n"),
        ("bare.js", "export function call() {\n  throw Object.create(null);\n}\n"),
        ("json.js", "export const call = () => ({ toJSON() { throw null; } });\n"),
        ("never.js", "export const call = () => new Promise(() => {});\n"),
        ("five.js", "import { Response } from 'noetl';\nexport const call = () => new Response({}, 5);\n"),
    ] {
        let path = format!("main/odd_{}", name.replace('.', "_"));
        desk.write(name, text);
        desk.noetl(&["plugin", "push", name, "--path", &path]).ok();
        desk.noetl(&["plugin", "call", &path, "--json-args", "{}"]).ends(7);
    }
    desk.write("closed.py", "import sys\n\n\ndef call(input):\n    sys.stdout = None\n    return 1\n");
    desk.noetl(&["plugin", "push", "closed.py"]).ok();
    assert_eq!(desk.call("main/closed", "{}"), json!(1));
}

#[test]
fn fetch_is_the_hosts_and_needs_its_capability() {
    let desk = Desk::new();
    desk.write("fetching.js", "export const call = () => fetch('http://127.0.0.1:1/');\n");
    desk.noetl(&["plugin", "push", "fetching.js"]).ok();
    let denied = desk.noetl(&["plugin", "call", "main/fetching", "--json-args", "{}"]);
    assert_ne!(denied.code, 0);
    denied.says("http-client");
}
