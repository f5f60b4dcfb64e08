//! What an author is told before anything is kept: text that no call could load, a header that is wrong, an entry that is
//! not there; and where a file goes that says nothing of it.

use serde_json::json;

use super::support::Desk;

#[test]
fn text_that_no_call_could_load_is_not_taken() {
    let desk = Desk::new();
    let limits =
        |comment: &str| ["/// noetl", "[limits]", "cpu_ms = 400", "///"].map(|line| format!("{comment} {line}\n"));
    let python = limits("#").concat() + "while True:\n    pass\n\n\ndef call(input):\n    return 1\n";
    let js = limits("//").concat() + "for (;;) {}\nexport const call = () => 1;\n";
    let unasked = "import noetl\n\nnoetl.kv.put('a', 'b')\n\n\ndef call(input):\n    return 1\n";
    for (file, text, why) in [
        ("spins.py", python.as_str(), "raise `limits.cpu_ms`"),
        ("spins_js.js", js.as_str(), "raise `limits.cpu_ms`"),
        ("asks.py", unasked, "capabilities = [\"log\", \"kv\", \"payload\"]"),
    ] {
        desk.write(file, text);
        desk.noetl(&["plugin", "push", file]).ends(1).says("cannot be loaded").says(why);
        let path = format!("main/{}", file.split('.').next().expect("a name"));
        desk.noetl(&["plugin", "show", &path]).ends(3);
    }
    // What it asks for while it loads, and has in a call, is no reason.
    let asks = "# /// noetl\n# capabilities = [\"log\", \"kv\", \"payload\"]\n# ///\n";
    desk.write("asks.py", &format!("{asks}{unasked}"));
    desk.noetl(&["plugin", "push", "asks.py"]).ok();
    assert_eq!(desk.call("main/asks", "{}"), json!(1));
}

#[test]
fn what_is_wrong_in_a_header_is_told_by_the_lines_of_the_file() {
    let desk = Desk::new();
    desk.write(
        "wrong.py",
        "#!/usr/bin/env python\n# /// noetl\n# world = \"transfrom\"\n# [limits]\n# cpu_ms = 0\n# ///\n\n\n\
         def call(input):\n    return 1\n",
    );
    let refused = desk.noetl(&["plugin", "push", "wrong.py"]).ends(2).says("wrong.py:3:11: ").says("wrong.py:5:12: ");
    assert!(!refused.stderr.contains("plugin.toml:"), "{}", refused.stderr);
}

#[test]
fn an_entry_that_is_not_there_is_answered_with_those_that_are() {
    let desk = Desk::new();
    desk.write(
        "p/plugin.toml",
        "path = \"main/p\"\nversion = \"1.0.0\"\nworld = \"transform\"\n[source]\nlanguage = \"python\"\n\
         entry = \"mian.py\"\n",
    );
    desk.write("p/main.py", "def call(input):\n    return 1\n");
    desk.noetl(&["plugin", "push", "p"]).ends(1).says("set `source.entry` to one of: main.py");
}

#[test]
fn a_file_of_a_tenant_lives_with_the_tenant() {
    let desk = Desk::new();
    let made = desk.noetl(&["token", "create", "--name", "acme", "--tenant", "acme"]).ok();
    let token = made.stdout.trim();
    desk.write("mine.py", "def call(input):\n    return 1\n");
    for version in ["0.1.0", "0.1.1"] {
        desk.noetl(&["plugin", "push", "mine.py", "--token", token]).ok().says(&format!("acme/mine {version}"));
    }
    desk.noetl(&["plugin", "show", "main/mine"]).ends(3);
    // Whoever says where it lives is taken at their word.
    desk.noetl(&["plugin", "push", "mine.py", "--path", "main/mine", "--token", token]).ends(4);
    desk.noetl(&["plugin", "push", "mine.py"]).ok().says("main/mine 0.1.0");
}
