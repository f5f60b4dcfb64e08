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
