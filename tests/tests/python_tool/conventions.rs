//! What code finds, and which of its values is the answer. The rest of the table is in the SDKs' own tests.

use serde_json::{Value, json};

use super::support::Desk;

#[tokio::test]
async fn python_code_answers_by_the_conventions_of_playbooks() {
    let desk = Desk::start().await;
    for (code, input, wanted) in [
        ("result = {'n': n + 1}", json!({"n": 1}), json!({"n": 2})),
        ("def main(a, b=5):\n    return [a, b]", json!({"a": 1, "c": 2}), json!([1, 5])),
        ("import asyncio\nasync def main(a):\n    await asyncio.sleep(0.01)\n    return a", json!({"a": 1}), json!(1)),
        ("if n > 1:\n    return 'many'\nreturn 'one'", json!({"n": 2}), json!("many")),
        ("print('said')", json!({}), json!({"stdout": "said\n", "stderr": ""})),
        ("result = [input_data['n'], args['n'], context['n'], variables]", json!({"n": 1}), json!([1, 1, 1, {}])),
        ("import hashlib\nresult = int(hashlib.md5(b'7').hexdigest(), 16) % 997", json!({}), json!(583)),
        ("result = [2**64 - 1, 2**64, float('nan')]", json!({}), json!([u64::MAX, "18446744073709551616", "NaN"])),
        ("result = f'{3.14159:.2f} {7:03d} {name!r}'", json!({"name": "Ä😀"}), json!("3.14 007 'Ä😀'")),
        ("from decimal import Decimal\nresult = Decimal('0.10') + Decimal('0.20')", json!({}), json!("0.30")),
        (
            "import re, math, random, base64, statistics, ast, datetime\nresult = statistics.mean(ast.literal_eval('[1, 3]'))",
            json!({}),
            json!(2),
        ),
        (
            "import time\nbefore = time.monotonic()\ntime.sleep(0.05)\nresult = time.monotonic() - before >= 0.05",
            json!({}),
            json!(true),
        ),
    ] {
        assert_eq!(desk.python(code, input).await, wanted, "{code}");
    }
    let first = desk.python("import random\nresult = random.random()", json!({})).await;
    assert_ne!(first, desk.python("import random\nresult = random.random()", json!({})).await, "each call has its own");
}

#[tokio::test]
async fn javascript_code_answers_alike() {
    let desk = Desk::start().await;
    for (code, input, wanted) in [
        ("return { n: n + 1 };", json!({"n": 1}), json!({"n": 2})),
        ("result = input.n * 2;", json!({"n": 4}), json!(8)),
        ("const n = input.n;\nfunction main({ n }) { return [n]; }", json!({"n": 1}), json!([1])),
        ("return await Promise.resolve('later');", json!({}), json!("later")),
        ("console.log('said', { a: 1 });", json!({}), json!({"stdout": "said {\"a\":1}\n", "stderr": ""})),
        ("return [NaN, 'Ä😀', null];", json!({}), json!(["NaN", "Ä😀", null])),
    ] {
        let answer = desk.call("javascript", json!({"code": code, "input": input})).await.is(200).json();
        assert_eq!(answer, wanted, "{code}");
    }
    let said = desk.call("javascript", json!({"code": "console.log(1);\nnull.x;"})).await.is(200).json();
    assert_eq!(said["_failure"]["code"], "javascript_error");
    assert_eq!((&said["js"]["line"], &said["stdout"]), (&json!(2), &json!("1\n")), "{said}");
    assert!(said["_failure"]["message"].as_str().is_some_and(|text| text.ends_with("(code, line 2)")), "{said}");
}

#[tokio::test]
async fn an_exception_is_told_with_the_line_of_its_author_and_what_was_printed() {
    let desk = Desk::start().await;
    let code = "print('before')\n\ndef inner(x):\n    return 1 / x\n\nif True:\n    inner(n)\nreturn 1\n";
    let said = desk.python(code, json!({"n": 0})).await;
    let failure = json!({"code": "python_error", "message": "ZeroDivisionError: division by zero (code, line 4)",
                         "retryable": false});
    assert_eq!((&said["_failure"], &said["stdout"]), (&failure, &json!("before\n")));
    let trace = said["py"]["traceback"].as_str().expect("a traceback");
    for line in ["File \"code\", line 7, in <module>", "File \"code\", line 4, in inner", "return 1 / x"] {
        assert!(trace.contains(line), "{line} is not in:\n{trace}");
    }
    let logs = desk.admin.get("/api/plugins/tools/python:logs").await.is(200).text();
    assert!(logs.contains("before") && logs.contains("ZeroDivisionError"), "{logs}");

    let said = desk.python("x = 1\ny = (\n", json!({})).await;
    assert!(said["_failure"]["message"].as_str().is_some_and(|text| text.contains("SyntaxError")), "{said}");
}

#[tokio::test]
async fn libraries_and_scripts_are_where_the_step_says() {
    let desk = Desk::start().await;
    let libs = json!({"d": "decimal", "parse": {"from": "urllib.parse", "import": "quote"}});
    let arguments = json!({"code": "result = str(d.Decimal('1.5')) + parse(' ')", "libs": libs});
    assert_eq!(desk.call("python", arguments).await.is(200).json(), json!("1.5%20"));
    let missing = desk.call("python", json!({"code": "result = 1", "libs": ["pandas"]})).await.is(200).json();
    assert_eq!(missing["_failure"]["code"], "missing_module");

    std::fs::create_dir(desk.scripts().join("lib")).expect("a folder");
    std::fs::write(desk.scripts().join("lib/hello.py"), "def main(name, count=1):\n    return [name] * count\n")
        .expect("a script");
    std::fs::write(desk.outside().join("secret.py"), "result = 'secret'\n").expect("a script");
    std::os::unix::fs::symlink(desk.outside().join("secret.py"), desk.scripts().join("link.py")).expect("a link");
    let script =
        |uri: &str| json!({"script": {"uri": uri, "source": {"type": "file"}}, "input": {"name": "a", "count": 2}});
    for uri in ["lib/hello.py", "./scripts/lib/hello.py"] {
        assert_eq!(desk.call("python", script(uri)).await.is(200).json(), json!(["a", "a"]), "{uri}");
    }
    for (uri, says) in [
        ("lib/none.py", "lib/none.py"),
        ("../secret.py", "files.folder"),
        ("/etc/passwd", "files.folder"),
        ("link.py", "link.py"),
    ] {
        let refused = desk.call("python", script(uri)).await.problem(422, "plugin_failure").to_string();
        assert!(refused.contains(says) && !refused.contains("'secret'"), "{uri}: {refused}");
    }
    let other = desk.server.with_token(&desk.admin.token_for("acme", "tenant").await);
    let refused = other.post("/api/plugins/tools/python:call", script("lib/hello.py")).await;
    let refused: Value = refused.problem(422, "plugin_failure");
    assert!(refused.to_string().contains("no folder is named for the tenant `acme`"), "{refused}");
}
