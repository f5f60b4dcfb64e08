//! Code that means no good: each attempt ends in a class of its own, the next call is fine, and so are those of another tenant.

use std::time::Instant;

use noetl_tests::Api;
use noetl_tests::bystander::{Bystander, Errand, report, row};
use serde_json::json;

use super::support::{Desk, class_of};

/// Enough for honest code on a slow machine, and little enough for a test to wait for.
const CPU_MS: &str = "8000";

#[tokio::test]
async fn hostile_python_is_contained_and_told_by_its_class() {
    let desk = Desk::start_with(&[("NOETL_HOST_MAX_CPU_MS", CPU_MS)]).await;
    for (what, code, classes) in [
        ("fork", "import os\nos.fork()", &["python_error"][..]),
        ("a process", "import subprocess\nsubprocess.run(['id'])", &["python_error"]),
        ("a shell", "import os\nos.system('id')", &["python_error"]),
        (
            "a socket",
            "import socket\nsocket.create_connection(('127.0.0.1', 80))",
            &["capability_denied", "python_error"],
        ),
        (
            "a server",
            "import socket\ns = socket.socket()\ns.bind(('0.0.0.0', 0))",
            &["capability_denied", "python_error"],
        ),
        ("reading a file", "result = open('/etc/passwd').read()", &["python_error"]),
        ("listing files", "import os\nresult = os.listdir('/')", &["python_error"]),
        ("writing a file", "open('/tmp/x', 'w').write('x')", &["python_error"]),
        ("ctypes", "import ctypes\nctypes.string_at(0)", &["python_error"]),
        ("a thread", "import threading\nthreading.Thread(target=print).start()", &["python_error"]),
        ("an endless loop", "while True:\n    pass", &["timeout"]),
        (
            "an endless loop that catches all",
            "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
            &["timeout"],
        ),
        ("a hoard", "kept = []\nwhile True:\n    kept.append(bytearray(1 << 20))", &["memory", "python_error"]),
        (
            "a hoard that catches all",
            "kept = []\nwhile True:\n    try:\n        kept.append(bytearray(1 << 24))\n    except MemoryError:\n        break\nresult = 'caught'",
            &["memory", "ok"],
        ),
        ("a list of 8 GiB", "result = [0] * (8 << 30)", &["python_error", "memory"]),
        ("recursion", "def f(n):\n    return f(n + 1)\nresult = f(0)", &["python_error", "trap"]),
        ("the end of the process", "import os\nos._exit(3)", &["trap", "python_error"]),
        ("a flood of output", "for i in range(200_000):\n    print('x' * 50)\nresult = 1", &["ok", "timeout"]),
    ] {
        let class = desk.class("python", code).await;
        assert!(classes.contains(&class.as_str()), "{what} ended with `{class}`");
        assert_eq!(desk.python("result = n + 1", json!({"n": 1})).await, json!(2), "after {what}");
    }
    desk.admin.get("/health").await.is(200);
}

#[tokio::test]
async fn code_finds_nothing_of_the_machine_or_of_other_calls() {
    let desk = Desk::start().await;
    assert_eq!(desk.python("import os\nresult = dict(os.environ)", json!({})).await, json!({}));
    let leave = "import builtins, json, random, re, urllib.request\nkept = 'needle'\njson.kept = kept\nbuiltins.kept = kept\n\
                 sys.modules['kept'] = json\njson.dumps = None\nre.sub = None\nurllib.request.kept = kept\n\
                 random.seed(1)\nresult = 1";
    let look = "import builtins, json, re, urllib.request\n\
                result = ['kept' in globals(), hasattr(json, 'kept'), hasattr(builtins, 'kept'), 'kept' in sys.modules,\n          \
                hasattr(urllib.request, 'kept'), re.sub('a', 'b', 'a'), json.dumps(1)]";
    desk.call("python", json!({"code": leave})).await;
    let found = desk.python(look, json!({})).await;
    assert_eq!(found, json!([false, false, false, false, false, "b", "1"]));
    let leave = "globalThis.kept = 1; Array.prototype.map = null; return 1;";
    desk.call("javascript", json!({"code": leave})).await;
    let look = json!({"code": "return [typeof kept, typeof [].map, typeof process, typeof require];"});
    let found = desk.call("javascript", look).await.is(200).json();
    assert_eq!(found, json!(["undefined", "function", "undefined", "undefined"]));
}

#[tokio::test]
async fn hostile_javascript_is_contained_too() {
    let desk = Desk::start_with(&[("NOETL_HOST_MAX_CPU_MS", CPU_MS)]).await;
    for (what, code, classes) in [
        ("an endless loop", "for (;;) {}", &["timeout"][..]),
        (
            "a hoard",
            "const kept = [];\nfor (;;) kept.push(new Uint8Array(1 << 20).fill(1));",
            &["memory", "trap", "javascript_error"],
        ),
        ("recursion", "const f = (n) => f(n + 1);\nreturn f(0);", &["javascript_error", "trap"]),
        ("a promise that never comes", "await new Promise(() => {});", &["plugin_failure"]),
    ] {
        let class = desk.class("javascript", code).await;
        assert!(classes.contains(&class.as_str()), "{what} ended with `{class}`");
        let fine = desk.call("javascript", json!({"code": "return n + 1;", "input": {"n": 1}})).await.is(200).json();
        assert_eq!(fine, json!(2), "after {what}");
    }
}

/// Calls of the bystander before an attack, and at least that many during one.
const SAMPLES: usize = 20;
/// Endless loops at once; more than the processors of a small machine.
const LOOPS: usize = 4;

/// One call of a tenant's; the class it ended in.
async fn attempt(api: &Api, code: &str) -> String {
    class_of(&api.post("/api/plugins/tools/python:call", json!({ "code": code })).await)
}

/// Another tenant uses the very same tool meanwhile: all of its calls succeed. What they take is shown.
#[tokio::test]
async fn another_tenant_is_served_while_hostile_python_runs() {
    let desk = Desk::start_with(&[("NOETL_HOST_MAX_CPU_MS", CPU_MS)]).await;
    let of = async |tenant: &str| desk.server.with_token(&desk.admin.token_for(tenant, "tenant").await);
    let (mallory, alice) = (of("mallory").await, of("alice").await);
    // It leaves something where all of Python could find it, if there was one Python for all.
    let code = "import builtins, json\nbuiltins.alices = json.alices = 'treasure'\nresult = sum(range(1000))";
    let input = json!({ "code": code }).to_string();
    let errand = Errand { path: "tools/python", input, answer: "499500".to_owned(), samples: SAMPLES };
    let look = "import builtins, gc, json\n\
                found = [hasattr(builtins, 'alices'), hasattr(json, 'alices')]\n\
                found += ['treasure' in o for o in gc.get_objects() if isinstance(o, list) and o is not found]\n\
                assert not any(found), found\nresult = 'nothing'";
    for (name, code, callers) in [
        ("Python: fork", "import os\nos.fork()", 1),
        ("Python: a socket", "import socket\nsocket.create_connection(('127.0.0.1', 80))", 1),
        ("Python: a file", "open('/etc/passwd').read()", 1),
        ("Python: an endless loop", "while True:\n    pass", 1),
        ("Python: four endless loops", "while True:\n    pass", LOOPS),
        ("Python: a list of 8 GiB", "result = [0] * (2 << 30)", 1),
        ("Python: a hoard", "kept = []\nwhile True:\n    kept.append(bytearray(1 << 20))", 1),
        ("Python: ctypes", "import ctypes\nctypes.string_at(0)", 1),
        ("Python: the environment", "import os\nassert not os.environ, os.environ\nresult = 'empty'", 1),
        ("Python: another's memory", look, 1),
    ] {
        let before = Bystander::start(&alice, &errand);
        before.enough().await;
        let before = before.stop().await;
        let during = Bystander::start(&alice, &errand);
        let attack = || futures::future::join_all((0..callers).map(|_| attempt(&mallory, code)));
        let began = Instant::now();
        let classes = attack().await;
        let contained = began.elapsed();
        while !during.has_enough() {
            attack().await;
        }
        let during = during.stop().await;
        let harmless = code.starts_with("import os\nassert") || code == look;
        assert!(classes.iter().all(|class| (class == "ok") == harmless), "{name} ended with {classes:?}");
        report(&row(name, &classes[0], contained, &before, &during));
    }
    desk.admin.get("/health").await.is(200);
}
