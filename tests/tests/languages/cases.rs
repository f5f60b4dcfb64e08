//! Recorded calls: `plugin call --record`, and `plugin test` that plays them.

use std::fs;

use serde_json::{Value, json};

use super::support::Desk;

#[test]
fn the_cases_of_a_new_project_hold_and_a_change_shows_what_is_different() {
    let desk = Desk::new();
    for (lang, file) in [("python", "main.py"), ("js", "main.js")] {
        for world in ["tool", "transform"] {
            let (folder, path) = (format!("{lang}-{world}"), format!("main/{lang}-{world}"));
            desk.noetl(&["plugin", "new", &folder, "--path", &path, "--world", world, "--lang", lang]).ok();
            desk.noetl(&["plugin", "test", &folder]).ok().says("cases hold");
        }
        let (folder, entry) = (format!("{lang}-tool"), format!("{lang}-tool/{file}"));
        desk.write(&entry, &desk.read(&entry).replace("counted", "noted"));
        let differs = desk.noetl(&["plugin", "test", &folder]).ends(1);
        differs.says("counted").says("noted").says("first_call.case");
        desk.noetl(&["plugin", "test", &folder, "--bless"]).ok();
        desk.noetl(&["plugin", "test", &folder]).ok();
    }
}

#[test]
fn a_call_that_was_recorded_plays_the_same_without_a_server_and_without_its_secrets() {
    let desk = Desk::new();
    desk.write(
        "orders.py",
        "# /// noetl\n# capabilities = [\"log\", \"payload\", \"kv\", \"clock\", \"random\"]\n# ///\nimport noetl\n\n\n\
         def call(input):\n    seen = noetl.kv.get_json('seen', 0) + 1\n    noetl.kv.put_json('seen', seen)\n    \
         noetl.log.info('order', password=input['password'])\n    \
         return {'seen': seen, 'at': noetl.clock.now(), 'id': noetl.random.number()}\n",
    );
    desk.noetl(&["plugin", "push", "orders.py"]).ok();
    let input = r#"{"password": "hunter2"}"#;
    desk.call("main/orders", input);
    let call = ["plugin", "call", "main/orders", "--json-args", input, "--record", "cases/second.case"];
    let answer = desk.noetl(&call).ok().json();
    assert_eq!(answer["seen"], json!(2));

    let case: Value = serde_json::from_str(&desk.read("cases/second.case")).expect("JSON");
    assert!(!desk.read("cases/second.case").contains("hunter2"), "secrets are masked: {case}");
    let calls: Vec<_> = case["calls"].as_array().expect("calls").iter().map(|call| call["call"].clone()).collect();
    assert_eq!(calls, ["kv.get", "kv.put", "log.write", "clock.now", "random.number"].map(|call| json!(call)));
    // Played in another kernel that has neither this clock nor this store, it answers the same.
    desk.noetl(&["plugin", "test", "orders.py"]).ok().says("1 of 1 cases hold");
    // What it stored is stored once more by the record, and not by the plays.
    assert_eq!(desk.call("main/orders", input)["seen"], json!(3));

    let changed = desk.read("orders.py").replace("noetl.kv.put_json('seen', seen)", "noetl.kv.delete('seen')");
    desk.write("orders.py", &changed);
    desk.noetl(&["plugin", "test", "orders.py"]).ends(1).says("kv.delete").says("`kv.put`");
}

#[test]
fn a_recorded_call_has_a_sandbox_to_itself_also_where_sandboxes_are_kept() {
    let desk = Desk::new();
    let header = |comment: &str| {
        ["/// noetl", "world = \"transform\"", "capabilities = [\"log\"]", "instance = \"resident\"", "///"]
            .map(|line| format!("{comment} {line}\n"))
            .concat()
    };
    let python = "import time\n\ncount = 0\n\n\ndef call(input):\n    global count\n    count += 1\n    \
                  return [count, time.time_ns() // 1_000_000]\n";
    let js = "let count = 0;\nexport const call = () => [(count += 1), Date.now()];\n";
    for (file, path, text) in
        [("kept.py", "main/kept", header("#") + python), ("kept_js.js", "main/kept_js", header("//") + js)]
    {
        desk.write(file, &text);
        desk.noetl(&["plugin", "push", file]).ok();
        let call = || desk.noetl(&["plugin", "call", path]).ok().json();
        assert_eq!(call()[0], json!(1));
        assert_eq!(call()[0], json!(2));
        let case = format!("cases/{}.case", &path["main/".len()..]);
        let recorded = desk.noetl(&["plugin", "call", path, "--record", &case]).ok().json();
        assert_eq!(recorded[0], json!(1), "what earlier calls left is not in the case");
        assert_eq!(call()[0], json!(3), "nor does its clock go on in a sandbox of later calls");
        desk.noetl(&["plugin", "test", file]).ok().says("1 of 1 cases hold");
    }
}

#[test]
fn a_failure_is_recorded_too() {
    let desk = Desk::new();
    desk.write(
        "bad.js",
        "import { Failure } from 'noetl';\nexport function call() {\n  throw new Failure('not_found', 'gone');\n}\n",
    );
    desk.noetl(&["plugin", "push", "bad.js"]).ok();
    let call = ["plugin", "call", "main/bad", "--json-args", "{}", "--record", "cases/gone.case"];
    desk.noetl(&call).ends(7).says("gone");
    desk.noetl(&["plugin", "test", "bad.js"]).ok().says("1 of 1 cases hold");
    fs::write(desk.path("cases/broken.case"), "{}").expect("file");
    // One that cannot be read is told, and the others are played all the same.
    let told = desk.noetl(&["plugin", "test", "bad.js"]).ends(1);
    told.says("broken.case is not a case").says("1 of 2 cases hold").says("--record");
}

#[test]
fn a_file_plays_its_own_cases() {
    let desk = Desk::new();
    for (name, answer) in [("one", "1"), ("two", "2")] {
        let (file, path) = (format!("{name}.py"), format!("main/{name}"));
        desk.write(&file, &format!("def call(input):\n    return {answer}\n"));
        desk.noetl(&["plugin", "push", &file]).ok();
        let case = format!("cases/{name}.case");
        desk.noetl(&["plugin", "call", &path, "--json-args", "{}", "--record", &case]).ok();
    }
    desk.noetl(&["plugin", "test", "one.py"]).ok().says("1 of 1 cases hold");
    // A file that was pushed elsewhere than its name says is told where its cases are from, and passes with that path.
    desk.write("three.py", &desk.read("two.py"));
    desk.noetl(&["plugin", "test", "three.py"]).ends(1).says("no case was played").says("--path main/one");
    desk.noetl(&["plugin", "test", "three.py", "--path", "main/two"]).ok().says("1 of 1 cases hold");
    desk.noetl(&["plugin", "build", "three.py", "--path", "main/two"]).ok().says("main/two");
    desk.noetl(&["plugin", "test", ".", "--path", "main/two"]).ends(2).says("single file");
}

#[test]
fn an_answer_with_its_fields_in_another_order_is_another_answer() {
    let desk = Desk::new();
    desk.write("fields.py", "def call(input):\n    return {'a': 1, 'b': 2}\n");
    desk.noetl(&["plugin", "push", "fields.py"]).ok();
    desk.noetl(&["plugin", "call", "main/fields", "--json-args", "{}", "--record", "cases/a.case"]).ok();
    desk.write("fields.py", "def call(input):\n    return {'b': 2, 'a': 1}\n");
    desk.noetl(&["plugin", "test", "fields.py"]).ends(1).says("0 of 1 cases hold");
}

#[test]
fn a_secret_is_masked_wherever_it_went() {
    let desk = Desk::new();
    desk.write(
        "leaky.py",
        "# /// noetl\n# capabilities = [\"log\", \"payload\", \"kv\"]\n# ///\nimport noetl\n\n\n\
         def call(input):\n    noetl.kv.put('last', input['password'])\n    \
         raise ValueError('bad: ' + input['password'])\n",
    );
    desk.noetl(&["plugin", "push", "leaky.py"]).ok();
    let input = r#"{"password": "opensesame"}"#;
    desk.noetl(&["plugin", "call", "main/leaky", "--json-args", input, "--record", "cases/a.case"]).ends(7);
    let case = desk.read("cases/a.case");
    assert!(!case.contains("opensesame") && case.contains("bad: [REDACTED]"), "{case}");
    desk.noetl(&["plugin", "test", "leaky.py"]).ok();
}

#[test]
fn time_and_chance_are_the_same_in_every_play() {
    let desk = Desk::new();
    desk.write(
        "chance.py",
        "import random, time, uuid\n\n\ndef call(input):\n    \
         return [time.time(), str(uuid.uuid4()), random.random()]\n",
    );
    desk.write("chance_js.js", "export const call = () => [Date.now(), Math.random(), crypto.randomUUID()];\n");
    for (file, path) in [("chance.py", "main/chance"), ("chance_js.js", "main/chance_js")] {
        desk.noetl(&["plugin", "push", file]).ok();
        let record =
            |name: &str| desk.noetl(&["plugin", "call", path, "--json-args", "{}", "--record", name]).ok().json();
        let (one, other) = (
            record(&format!("cases/{path}-1.case").replace("main/", "")),
            record(&format!("cases/{path}-2.case").replace("main/", "")),
        );
        assert_ne!(one[1], other[1], "each call has its own");
        desk.noetl(&["plugin", "test", file]).ok().says("2 of 2 cases hold");
    }
}
