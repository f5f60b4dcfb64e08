//! What goes out for a tool, and what its answer becomes.

use super::*;

#[test]
fn a_tool_gets_its_rendered_configuration_and_input() {
    let spec = object(tool(
        "get",
        json!({
            "kind": "http", "timeout_ms": 900,
            "config": {"url": "{{ base }}/{{ id }}", "headers": {"{{ name }}": "x"}, "body": "{{ rows }}", "n": "{{ id }}"},
            "input": {"id": "{{ item.id + 1 }}", "name": "k", "_total": 9},
        }),
    ));
    let inputs = json!({
        "context": {"base": "http://x", "item": {"id": 4}, "rows": [1, 2], "id": "hidden"},
        "bind": {"item": {"id": 4}, "_index": 0, "_total": 3},
    });
    let ran = Kernel::default().run(&spec, &inputs, &mut answers([Ok(json!({"ok": true}))]));
    assert_eq!(
        ran.arguments(0),
        json!({
            "url": "http://x/5", "headers": {"k": "x"}, "body": [1, 2], "n": 5,
            "input": {"item": {"id": 4}, "_index": 0, "_total": 9, "id": 5, "name": "k"},
        })
    );
    let call = &ran.calls[0];
    assert_eq!(
        (call.kind.as_str(), call.timeout_ms, call.attempt, call.plugin.as_deref()),
        ("http", Some(900), 1, None)
    );
    assert_eq!(
        ran.report,
        Report {
            data: crate::event::Data { value: json!({"ok": true}), ..Default::default() },
            error: None,
            hard: false,
            set: serde_json::Map::new(),
            plugin: Some("tools/x@1".into()),
            digest: Some("d".into()),
            calls: 1,
            took: 5,
        }
    );
}

#[test]
fn an_input_may_be_one_expression_and_names_may_be_templates() {
    let inputs = json!({"context": {"row": {"id": 4, "name": "x"}, "text": "{\"id\": 5}", "key": "k", "n": 7},
        "bind": {"_index": 0}});
    let given = |input: Json| {
        let spec = object(tool("t", json!({"config": {"n": "{{ id }}"}, "input": input})));
        Kernel::default().run(&spec, &inputs, &mut answers([Ok(json!(1))]))
    };
    let ran = given(json!({"*": "{{ row }}", "name": "own", "{{ key }}": 1}));
    assert_eq!(ran.arguments(0), json!({"n": 4, "input": {"_index": 0, "id": 4, "name": "own", "k": 1}}));
    assert_eq!(given(json!({"*": "{{ text }}"})).arguments(0)["input"], json!({"_index": 0, "id": 5}));
    assert_eq!(given(json!({"*": "{{ missing }}"})).arguments(0)["input"], json!({"_index": 0}));
    let wrong = given(json!({"*": "{{ n }}"}));
    assert_eq!(wrong.code(), Some("template"), "a number is no input");
}

#[test]
fn data_that_looks_like_a_template_is_not_rendered() {
    let spec = object(tool("t", json!({"config": {"a": "{{ text }}", "b": "{{ item }}"}})));
    let inputs = json!({"context": {"text": "{{ secret }}", "secret": "s"}, "bind": {"item": "{{ secret }}"}});
    let ran = Kernel::default().run(&spec, &inputs, &mut answers([Ok(json!(1))]));
    assert_eq!(ran.arguments(0)["a"], json!("{{ secret }}"));
    assert_eq!(ran.arguments(0)["b"], json!("{{ secret }}"));
    assert_eq!(ran.arguments(0)["input"]["item"], json!("{{ secret }}"));
}

#[test]
fn a_plugin_gets_its_input_only() {
    for (config, expected) in [
        (
            json!({"plugin": {"path": "acme/sum", "version": "1.2", "capabilities": ["log"]}}),
            (Some("1.2"), Some(vec!["log".to_owned()])),
        ),
        (json!({"plugin": "acme/{{ n }}", "version": 3, "capabilities": []}), (Some("3"), Some(vec![]))),
        (json!({"plugin": {"path": "acme/sum"}}), (None, None)),
    ] {
        let spec = object(tool("t", json!({"kind": "wasm", "config": config, "input": {"a": "{{ x }}"}})));
        let ran = run(&spec, json!({"x": [1], "n": "sum"}), &mut answers([Ok(json!(6))]));
        let call = &ran.calls[0];
        assert_eq!((call.plugin.as_deref(), ran.arguments(0)), (Some("acme/sum"), json!({"a": [1]})));
        assert_eq!((call.version.as_deref(), call.capabilities.clone()), expected);
        assert_eq!(ran.data(), &json!(6));
    }
    for config in [json!({}), json!({"plugin": 3}), json!({"plugin": "x", "capabilities": "log"})] {
        let ran =
            run(&object(tool("t", json!({"kind": "wasm", "config": config}))), json!({}), &mut answers([Ok(json!(1))]));
        assert_eq!((ran.code(), ran.calls.len()), (Some("invalid_input"), 0));
    }
}

#[test]
fn a_playbook_is_executed() {
    let step = json!({"output": {"value": {"last": 1}}, "steps": {"x": {"value": {"score": 5, "status": "fine"}}, "l": {"value": [1]}}});
    for (config, input, wait, payload, data) in [
        (
            json!({"payload": {"a": "{{ n }}"}}),
            json!({}),
            false,
            json!({"item": 1, "a": 3}),
            json!({"status": "started", "execution_id": "99", "path": "p/q", "async": true}),
        ),
        (
            json!({"payload": {"a": 1}, "return_step": "x", "version": "2"}),
            json!({"b": "{{ n }}"}),
            true,
            json!({"item": 1, "b": 3}),
            json!({"execution_id": "99", "status": "fine", "score": 5}),
        ),
        (
            json!({"return_step": "l"}),
            json!({}),
            true,
            json!({"item": 1}),
            json!({"execution_id": "99", "status": "completed", "data": [1]}),
        ),
        (
            json!({"return_step": "nosuch"}),
            json!({}),
            true,
            json!({"item": 1}),
            json!({"execution_id": "99", "status": "completed"}),
        ),
        (json!({"return_result": true}), json!({}), true, json!({"item": 1}), json!({"last": 1})),
        (json!({"wait": true}), json!({}), true, json!({"item": 1}), json!({"last": 1})),
        (
            json!({"wait": false, "return_step": "x"}),
            json!({}),
            false,
            json!({"item": 1}),
            json!({"status": "started", "execution_id": "99", "path": "p/q", "async": true}),
        ),
    ] {
        let mut config = config;
        config["path"] = json!("p/{{ q }}");
        let kernel =
            Kernel { child: Some((if wait { "completed" } else { "started" }, step.clone())), ..Kernel::default() };
        let spec = object(tool("t", json!({"kind": "playbook", "config": config, "input": input})));
        let inputs = json!({"context": {"n": 3, "q": "q"}, "bind": {"item": 1}});
        let ran = kernel.run(&spec, &inputs, &mut answers([Ok(json!(1))]));
        let execute = &ran.executes[0];
        assert_eq!((execute.path.as_str(), execute.wait, execute.label.as_str()), ("p/q", wait, "t"));
        assert_eq!(execute.payload.parse::<Json>().ok(), Some(payload));
        assert_eq!((ran.data(), ran.code()), (&data, None));
    }
    for (status, own, code) in [
        ("failed", "x", "child_failed"),
        ("failed", "timeout", "child_failed"),
        ("failed", "child_timeout", "timeout"),
        ("cancelled", "x", "child_cancelled"),
    ] {
        let failed = json!({"error": {"code": own, "message": "boom"}});
        let kernel = Kernel { child: Some((status, failed)), ..Kernel::default() };
        let spec = object(tool("t", json!({"kind": "playbook", "config": {"path": "p", "return_step": "x"}})));
        let ran = kernel.run(&spec, &json!({"context": {}}), &mut answers([Ok(json!(1))]));
        assert_eq!((ran.code(), ran.data()), (Some(code), &json!(null)));
        assert!(ran.report.error.is_some_and(|error| error.message.contains("boom")));
    }
    for config in [json!({}), json!({"path": "p", "version": "x"}), json!({"path": "p", "payload": 3})] {
        let ran = run(
            &object(tool("t", json!({"kind": "playbook", "config": config}))),
            json!({}),
            &mut answers([Ok(json!(1))]),
        );
        assert_eq!((ran.code(), ran.executes.len()), (Some("invalid_input"), 0));
    }
}

#[test]
fn answers_become_results_and_failures_errors() {
    let long = "x".repeat(10);
    for (kind, answer, code, retryable) in [
        ("test", Ok(json!({"status_code": 500})), None, false),
        ("http", Ok(json!({"status_code": 200, "data": long})), None, false),
        ("http", Ok(json!({"status_code": 429})), Some("rate_limit"), true),
        ("http", Ok(json!({"status_code": 401})), Some("auth"), false),
        ("http", Ok(json!({"status_code": 403})), Some("auth"), false),
        ("http", Ok(json!({"status_code": 404})), Some("not_found"), false),
        ("http", Ok(json!({"status_code": 422})), Some("client_error"), false),
        ("http", Ok(json!({"status_code": 503})), Some("server_error"), true),
        ("http", Err("!timeout"), Some("timeout"), true),
        ("shell", Ok(json!({"exit_code": 0, "stdout": "x"})), None, false),
        ("shell", Ok(json!({"exit_code": 3, "stdout": "x"})), Some("exit_code"), false),
        ("shell", Ok(json!({"exit_code": null, "signal": 9, "timed_out": false})), Some("exit_code"), false),
        ("shell", Ok(json!({"exit_code": null, "signal": 9, "timed_out": true})), Some("timeout"), true),
        ("test", Ok(json!({"exit_code": 3})), None, false),
        ("test", Err("invalid_input"), Some("invalid_input"), false),
        ("test", Err("?gone"), Some("outcome_unknown"), false),
    ] {
        let spec = object(tool("t", json!({"kind": kind})));
        let ran = run(&spec, json!({}), &mut answers([answer.clone()]));
        assert_eq!(ran.code(), code, "{answer:?}");
        assert_eq!(ran.report.error.as_ref().is_some_and(|error| error.retryable), retryable, "{answer:?}");
        assert_eq!(ran.data(), &answer.unwrap_or(Json::Null), "what the tool said is kept");
    }
}

#[test]
fn a_body_beside_the_answer_is_told_by_reference() {
    let task = format!("{}\n", object(tool("t", json!({}))));
    let mut runner = Runner::new();
    let mut advance = |continuation: &[u8], news| {
        runner.advance(Turn { execution: 1, command: "s#1", time_ms: 0, task: task.as_bytes(), continuation, news })
    };
    for (output, expected) in [
        (
            r#"{"name": "f"}"#,
            json!({"name": "f", "_ref": "noetl://payload/ab", "_bytes": 12, "_media_type": "text/csv"}),
        ),
        ("[1]", json!({"data": [1], "_ref": "noetl://payload/ab", "_bytes": 12, "_media_type": "text/csv"})),
    ] {
        let next = advance(&[], News::Begin);
        let answered = Answered { output: output.to_owned(), body: Some(("ab".into(), 12, "text/csv".into())) };
        let called = Called { outcome: Ok(answered), duration_ms: 0, plugin: String::new(), digest: String::new() };
        let Action::Done(done) = advance(&next.continuation, News::Called(called)).action else { panic!("it is done") };
        let report: Report = serde_json::from_slice(&done.report).expect("a report");
        assert_eq!(report.data.value, expected);
    }
}

#[test]
fn a_tool_that_cannot_be_rendered_fails_without_being_called() {
    for more in [json!({"config": {"a": "{{ missing + 1 }}"}}), json!({"input": {"a": "{{ missing + 1 }}"}})] {
        let ran = run(&object(tool("t", more)), json!({}), &mut answers([Ok(json!(1))]));
        assert_eq!((ran.code(), ran.calls.len(), ran.report.calls), (Some("template"), 0, 0));
        assert!(ran.report.error.is_some_and(|error| error.message.contains("missing + 1")));
    }
}

#[test]
fn the_code_of_a_step_is_told_where_it_is_and_other_tools_are_not() {
    for (kind, context) in [
        ("python", json!({"execution_id": "7", "step": "s", "attempt": 1})),
        ("javascript", json!({})),
        ("http", json!(null)),
    ] {
        let spec = object(tool("t", json!({"kind": kind, "config": {"code": "x"}})));
        let told = run(&spec, json!({}), &mut answers([Ok(json!(1))])).arguments(0)["context"].clone();
        assert_eq!(told.is_object(), context.is_object(), "{kind}");
        if kind == "python" {
            assert_eq!(told, context);
        }
    }
}

#[test]
fn a_tool_may_fail_and_have_something_to_say() {
    let failure = json!({"code": "python_error", "message": "ValueError: boom (code, line 3)"});
    let left = json!({"_failure": failure, "stdout": "one\n", "py": {"exception": "ValueError", "line": 3}});
    let spec = object(tool("t", json!({"set": {"a": "{{ output.nothing.at_all }}"}})));
    let ran = run(&spec, json!({}), &mut answers([Ok(left.clone())]));
    assert_eq!(ran.code(), Some("python_error"));
    assert_eq!(ran.data()["stdout"], json!("one\n"));
    assert_eq!((&ran.data()["status"], ran.data().get("_failure")), (&json!("error"), None));

    let rule = json!({"when": "{{ output.py.exception == 'ValueError' and output.error.kind == 'python_error' }}",
        "set": {"ctx.at": "{{ output.py.line }}"}, "action": "continue"});
    let ran = run(&object(tool("t", json!({"rules": [rule]}))), json!({}), &mut answers([Ok(left)]));
    assert_eq!((ran.code(), ran.report.set.get("at")), (None, Some(&json!(3))));

    // What only looks like one is a result.
    let odd = json!({"_failure": "no"});
    let ran = run(&object(tool("t", json!({}))), json!({}), &mut answers([Ok(odd.clone())]));
    assert_eq!((ran.code(), ran.data()), (None, &odd));
}

#[test]
fn a_payload_goes_to_a_tool_by_its_reference() {
    let digest = "ab".repeat(32);
    let address = format!("noetl://payload/{digest}");
    let body = |kind: &str, config: Json, input: Json| {
        let spec = object(tool("t", json!({"kind": kind, "config": config, "input": input})));
        run(&spec, json!({"at": address, "result": {"_ref": address}}), &mut answers([Ok(json!(1))])).calls[0]
            .body
            .clone()
    };
    for (kind, config, input) in [
        ("artifact", json!({"action": "get"}), json!({"result_ref": "{{ at }}"})),
        ("artifact", json!({"ref": "{{ result }}"}), json!({})),
        ("artifact", json!({"uri": "{{ at | upper | replace('NOETL://PAYLOAD/', 'noetl://payload/') }}"}), json!({})),
        ("http", json!({"url": "http://a/", "body_ref": "{{ at }}"}), json!({})),
    ] {
        assert_eq!(body(kind, config.clone(), input), Some(digest.clone()), "{kind} {config}");
    }
    for (kind, config, input) in [
        ("artifact", json!({"action": "get"}), json!({"result_ref": ""})),
        ("artifact", json!({"ref": "noetl://payload/short"}), json!({})),
        ("http", json!({"url": "http://a/", "ref": "{{ at }}"}), json!({"result_ref": "{{ at }}"})),
    ] {
        assert_eq!(body(kind, config.clone(), input), None, "{kind} {config}");
    }
}

#[test]
fn code_is_told_the_variables_that_came_with_its_task_as_they_are_now() {
    let first = tool("a", json!({"set": {"ctx.b": "{{ output.n }}", "local": 9}}));
    let code = tool("t", json!({"kind": "python", "config": {"code": "result = variables"}}));
    let inputs = json!({"context": {"variables": {"a": 1, "b": 1}}});
    let ran = Kernel::default().run(&list(vec![first, code]), &inputs, &mut answers([Ok(json!({"n": 2}))]));
    assert_eq!(ran.arguments(1)["context"]["variables"], json!({"a": 1, "b": 2}));
}

#[test]
fn a_failure_is_hard_when_nothing_answered() {
    let hard = |kind: &str, outcome: Result<Json, &'static str>| {
        run(&object(tool("t", json!({"kind": kind}))), json!({}), &mut answers([outcome])).report.hard
    };
    assert!(hard("http", Err("!connect")) && hard("postgres", Err("syntax")) && hard("x", Err("unknown_tool")));
    assert!(!hard("http", Ok(json!({"status_code": 500}))) && !hard("shell", Ok(json!({"exit_code": 1}))));
    assert!(!hard("python", Ok(json!({"_failure": {"code": "python_error", "message": "m"}}))));
    assert!(!hard("http", Err("!timeout")) && !hard("noop", Ok(json!(1))));
    // A rule that fails the step judges an answer; one that gives up on a tool that never answered does not.
    let fail = |outcome: Result<Json, &'static str>| {
        let spec = object(tool("t", json!({"rules": [{"action": "fail"}]})));
        run(&spec, json!({}), &mut answers([outcome])).report.hard
    };
    assert!(!fail(Ok(json!(1))) && fail(Err("connect")));
    let child = |config: Json| {
        let kernel = Kernel { child: Some(("failed", json!({}))), ..Kernel::default() };
        let spec = object(tool("t", json!({"kind": "playbook", "config": config})));
        kernel.run(&spec, &json!({"context": {}}), &mut answers([Ok(json!(1))])).report.hard
    };
    assert!(child(json!({"path": "p", "return_result": true})) && !child(json!({"path": "p", "return_step": "x"})));
}

#[test]
fn a_time_limit_can_be_a_template() {
    for (config, limit) in [
        (json!({"timeout": "{{ t }}"}), Some(2_000)),
        (json!({"timeout": "{{ t }}00ms"}), Some(200)),
        (json!({"timeout_seconds": "{{ t / 4 }}"}), Some(500)),
        (json!({"timeout": "{{ none }}"}), None),
        (json!({"timeout": "{{ '' }}"}), None),
        (json!({}), None),
    ] {
        for kind in ["python", "nats", "wasm", "playbook"] {
            let mut config = config.clone();
            (config["plugin"], config["path"]) = (json!("p"), json!("p"));
            let kernel = Kernel { child: Some(("completed", json!({}))), ..Kernel::default() };
            let spec = object(tool("t", json!({"kind": kind, "config": config})));
            let ran = kernel.run(&spec, &json!({"context": {"t": 2}}), &mut answers([Ok(json!(1))]));
            let calls = ran.calls.iter().map(|call| call.timeout_ms);
            let limits: Vec<_> = calls.chain(ran.executes.iter().map(|execute| execute.timeout_ms)).collect();
            assert_eq!(limits, [limit], "{kind} {config}");
        }
    }
    for wrong in ["{{ 0 }}", "{{ -1 }}", "{{ 'soon' }}", "{{ [t] }}"] {
        let spec = object(tool("t", json!({"kind": "python", "config": {"timeout": wrong}})));
        let ran = run(&spec, json!({"t": 2}), &mut answers([Ok(json!(1))]));
        assert_eq!((ran.calls.len(), ran.code()), (0, Some("invalid_input")), "{wrong}");
    }
}

#[test]
fn messages_are_not_acknowledged_before_the_tools_after_the_poll() {
    let poll =
        |config: Json, input: Json| tool("poll", json!({"kind": "subscription", "config": config, "input": input}));
    let then = || tool("then", json!({}));
    for (config, input, refused) in [
        (json!({}), json!({}), true),
        (json!({"ack": "{{ how }}", "operation": "poll"}), json!({}), true),
        (json!({}), json!({"ack": "{{ how }}"}), true),
        (json!({"ack": "manual"}), json!({}), false),
        (json!({"ack": "{{ 'auto' }}"}), json!({}), false),
        (json!({"operation": "ack", "ack_ids": ["x"]}), json!({}), false),
    ] {
        let context = json!({"how": "on_success"});
        let spec = list(vec![poll(config.clone(), input.clone()), then()]);
        let ran = run(&spec, context.clone(), &mut answers([Ok(json!(1))]));
        assert_eq!(ran.code(), refused.then_some("invalid_input"), "{config} {input}");
        let spec = list(vec![then(), poll(config.clone(), input)]);
        assert_eq!(run(&spec, context, &mut answers([Ok(json!(1))])).code(), None, "{config} is the last");
    }
    let consume = |ack: &str| tool("t", json!({"kind": "nats", "config": {"operation": "js_consume", "ack": ack}}));
    for (ack, refused) in [("{{ how }}", true), ("{{ not how }}", false)] {
        let ran = run(&list(vec![consume(ack), then()]), json!({"how": true}), &mut answers([Ok(json!(1))]));
        assert_eq!(ran.code(), refused.then_some("invalid_input"), "{ack}");
    }
}

#[test]
fn a_name_of_the_keychain_is_the_credential_it_stands_for() {
    let config = json!({"auth": "{{ which }}", "query": "mydb"});
    let mut spec = object(tool("t", json!({"kind": "postgres", "config": config, "input": {"auth": "mydb"}})));
    spec["keychain"] = json!({"mydb": {"credential": "pg"}});
    for (which, alias) in [("mydb", "pg"), ("other", "other")] {
        let ran = run(&spec, json!({"which": which}), &mut answers([Ok(json!(1))]));
        let given = ran.arguments(0);
        assert_eq!((&given["auth"], &given["query"]), (&json!(alias), &json!("mydb")));
        assert_eq!(given["input"]["auth"], "mydb", "an input is the step's own");
    }
    let config = json!({"plugin": {"path": "tools/transfer"}});
    let input = json!({"source": {"auth": "mydb"}});
    let mut spec = object(tool("t", json!({"kind": "wasm", "config": config, "input": input})));
    spec["keychain"] = json!({"mydb": {"credential": "pg"}});
    let ran = run(&spec, json!({}), &mut answers([Ok(json!(1))]));
    assert_eq!(ran.arguments(0)["source"]["auth"], "pg", "by its path it is the same tool");
}

#[test]
fn what_a_tool_is_given_has_the_seal_of_its_execution_on_it() {
    let config = json!({
        "declared": "{{ keychain.ai.key }}", "bare": "Bearer {{ keychain.pg.password }}", "token": "{{ token('pg') }}",
        "data": "{{ data }}", "all": "{{ ctx }}",
    });
    let mut spec = object(tool("get", json!({"config": config, "set": {"ctx.later": "{{ keychain.pg.password }}"}})));
    spec["keychain"] = json!({"ai": {"credential": "openai", "fields": {"key": "api_key"}}});
    let data = "NOETL~SECRET~pg~password~END";
    let inputs = json!({"context": {"data": data}, "seal": "the seal"});
    let ran = Kernel::default().run(&spec, &inputs, &mut answers([Ok(json!({}))]));
    let tagged = |alias: &str, field: &str| crate::keychain::placeholder(Some("the seal"), alias, field);
    let given = ran.arguments(0);
    assert_eq!(given["declared"], tagged("openai", "api_key"));
    assert_eq!(given["bare"], format!("Bearer {}", tagged("pg", "password")));
    assert_eq!((&given["token"], &given["data"]), (&json!(tagged("pg", "token")), &json!(data)));
    assert_eq!(ran.report.set["later"], tagged("pg", "password"));
    assert!(!given.to_string().contains("the seal"), "no template reads it: {given}");
}
