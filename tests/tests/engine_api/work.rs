//! What is done once and what is done again: pipelines that come back to a tool, calls that are tried again, several
//! effects of one call, and children that a crash finds half way.

use noetl_tests::{Api, Outside, Server};
use serde_json::{Value, json};

use crate::support::{asks, fails, playbook, register, run, server_with, start, texts, until_parked, until_status};

const LOCAL: [(&str, &str); 1] = [("NOETL_POLICY_HTTP_PRIVATE_ADDRESSES", "true")];

/// How often each key was seen, in the order of the keys.
fn asked(outside: &Outside) -> Vec<(String, usize)> {
    outside.seen().into_iter().map(|(key, times)| (key, times.len())).collect()
}

async fn children(api: &Api, parent: &str) -> Vec<String> {
    let listed = api.get(&format!("/api/executions?consistency=strong&parent={parent}")).await.is(200).json();
    texts(&listed["executions"], "execution_id").into_iter().map(str::to_owned).collect()
}

/// The child that a parent says it waits for: its id, its path, and the tool that waits.
async fn waited_for(api: &Api, parent: &str) -> Value {
    loop {
        let why = api.get(&format!("/api/executions/{parent}/why")).await.is(200).json();
        let child = &why["waiting"]["children"][0];
        if child.is_object() {
            assert_eq!(child["step"], "start", "{why}");
            return json!([child["execution_id"], child["path"], child["label"]]);
        }
    }
}

async fn completed(api: &Api, path: &str, workflow: Value) -> Value {
    register(api, &playbook(path, workflow)).await.is(201);
    let ended = run(api, path, json!({})).await;
    assert_eq!(ended["status"], "completed", "{ended}");
    ended
}

#[tokio::test]
async fn a_pipeline_that_comes_back_asks_anew_and_one_that_tries_again_does_not() {
    let (server, outside) = (server_with(&LOCAL).await, Outside::start().await);
    let admin = server.admin();
    let post = |name: &str, path: &str, rules: Value| {
        json!({"name": name, "kind": "http", "method": "POST", "url": format!("{}/{path}", outside.url), "json": {},
               "spec": {"policy": {"rules": rules}}})
    };
    let again = json!([{"when": "{{ (iter.n | default(1)) < 3 }}",
        "then": {"do": "jump", "to": "say", "set": {"iter.n": "{{ (iter.n | default(1)) + 1 }}"}}}]);
    let tools =
        json!([post("say", "say", json!([])), {"name": "back", "kind": "noop", "spec": {"policy": {"rules": again}}}]);
    let ended = completed(&admin, "work/round", json!([{"step": "start", "tool": tools}])).await;
    let id = ended["execution_id"].as_str().expect("an id");
    let keys = [1, 2, 3].map(|visit| (format!("{id}/start#1/say/{visit}"), 1_usize));
    assert_eq!(asked(&outside), keys);

    let other = Outside::start().await;
    let retry =
        json!([{"when": "{{ output.status == 'error' }}", "then": {"do": "retry", "attempts": 3, "delay": 0.01}}]);
    let mut tool = post("flaky", "flaky", retry);
    tool["url"] = json!(format!("{}/flaky", other.url));
    completed(&admin, "work/again", json!([{"step": "start", "tool": [tool]}])).await;
    let seen = asked(&other);
    assert_eq!(seen.iter().map(|(_, times)| *times).collect::<Vec<_>>(), [2], "{seen:?}");
}

#[tokio::test]
async fn requests_of_one_call_are_told_apart() {
    let (server, outside) = (server_with(&LOCAL).await, Outside::start().await);
    let code = "import urllib.request\n\
                for number in range(3):\n    \
                urllib.request.urlopen(urllib.request.Request(url, data=b'{}', method='POST')).read()\n\
                result = 3\n";
    let tool = json!({"kind": "python", "code": code, "input": {"url": format!("{}/say", outside.url)}});
    completed(&server.admin(), "work/thrice", json!([{"step": "start", "tool": tool}])).await;
    let seen = asked(&outside);
    let first = seen[0].0.clone();
    let expected = [first.clone(), format!("{first}~2"), format!("{first}~3")].map(|key| (key, 1_usize));
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_child_is_found_again_after_a_crash() {
    let mut server = server_with(&[]).await;
    register(&server.admin(), &asks("work/asks")).await.is(201);
    // With rules of its own the playbook is the runner's business, as in a pipeline.
    let rules = json!([{"when": "{{ output.status == 'error' }}", "then": {"do": "retry", "attempts": 2}}]);
    let tool =
        json!({"kind": "playbook", "path": "work/asks", "return_step": "start", "spec": {"policy": {"rules": rules}}});
    let workflow = json!([
        {"step": "start", "tool": tool, "next": {"arcs": [{"step": "end"}]}},
        {"step": "end", "tool": {"kind": "noop", "result": {"data": "{{ start.data }}", "of": "{{ start.execution_id }}"}}},
    ]);
    register(&server.admin(), &playbook("work/parent", workflow)).await.is(201);
    let id = start(&server.admin(), "work/parent").await;
    let child = loop {
        if let Some(child) = children(&server.admin(), &id).await.pop() {
            break child;
        }
    };
    until_parked(&server.admin(), &child, "ask").await;
    assert_eq!(waited_for(&server.admin(), &id).await, json!([child, "work/asks", "start"]));
    let folder = server.folder();
    server.kill();
    drop(server);

    let server = Server::start_on(folder, &[]);
    let admin = server.admin();
    while server.nobody().get("/ready").await.status != 200 {}
    until_parked(&admin, &child, "ask").await;
    let resume = json!({"step": "ask", "value": {"answer": "yes"}});
    admin.post(&format!("/api/executions/{child}/resume"), resume).await.is(200);
    let ended = until_status(&admin, &id, "COMPLETED").await;
    assert_eq!(ended["output"], json!({"data": 7, "of": child}), "the wanted step's result, and not the last one's");
    assert_eq!(children(&admin, &id).await, [child], "there is one child");
}

#[tokio::test]
async fn a_child_of_a_pipeline_is_shown_with_its_step_and_ends_with_its_parent() {
    let server = server_with(&[]).await;
    let admin = server.admin();
    register(&admin, &asks("work/asks")).await.is(201);
    register(&admin, &fails("work/fails")).await.is(201);
    let sub = |path: &str| json!([{"name": "sub", "kind": "playbook", "path": path, "return_result": true}]);
    register(&admin, &playbook("work/piped", json!([{"step": "start", "tool": sub("work/asks")}]))).await.is(201);
    let id = start(&admin, "work/piped").await;
    let told = waited_for(&admin, &id).await;
    let child = told[0].as_str().expect("an id").to_owned();
    assert_eq!(told, json!([child, "work/asks", "sub"]));
    until_parked(&admin, &child, "ask").await;
    admin.post(&format!("/api/executions/{id}/cancel"), json!({"reason": "enough"})).await.is(200);
    until_status(&admin, &id, "CANCELLED").await;
    until_status(&admin, &child, "CANCELLED").await;

    register(&admin, &playbook("work/broken", json!([{"step": "start", "tool": sub("work/fails")}]))).await.is(201);
    let ended = run(&admin, "work/broken", json!({})).await;
    assert_eq!(ended["status"], "failed", "{ended}");
    let id = ended["execution_id"].as_str().expect("an id");
    let why = admin.get(&format!("/api/executions/{id}/why")).await.is(200).json();
    let failed = children(&admin, id).await;
    assert_eq!(why["blamed"]["child_execution_id"].as_str(), failed.first().map(String::as_str), "{why}");
}

#[tokio::test]
async fn a_child_of_a_pipeline_has_the_time_its_tool_says() {
    let server = server_with(&[]).await;
    let admin = server.admin();
    register(&admin, &asks("work/asks")).await.is(201);
    let seen = json!({"seen": "{{ output.error.code }}"});
    let tools = json!([
        {"name": "sub", "kind": "playbook", "path": "work/asks", "return_result": true, "timeout": "1s",
         "spec": {"policy": {"rules": [{"else": {"then": {"do": "continue", "set": seen}}}]}}},
        {"name": "told", "kind": "noop", "result": "{{ seen }}"},
    ]);
    let ended = completed(&admin, "work/late", json!([{"step": "start", "tool": tools}])).await;
    assert_eq!(ended["output"]["told"], "timeout", "{ended}");
    let child = children(&admin, ended["execution_id"].as_str().expect("an id")).await.pop().expect("a child");
    until_status(&admin, &child, "CANCELLED").await;
}

#[tokio::test]
async fn which_result_of_a_child_is_wanted_can_be_a_template() {
    let server = server_with(&[]).await;
    let admin = server.admin();
    let steps = json!([
        {"step": "start", "tool": {"kind": "noop", "result": {"says": "first"}}, "next": {"arcs": [{"step": "end"}]}},
        {"step": "end", "tool": {"kind": "noop", "result": {"says": "last"}}},
    ]);
    register(&admin, &playbook("work/child", steps)).await.is(201);
    let tool = json!({"kind": "playbook", "path": "work/child", "return_step": "{{ 'start' if name else 'end' }}"});
    let workflow = json!([
        {"step": "start", "tool": tool, "next": {"arcs": [{"step": "end"}]}},
        {"step": "end", "tool": {"kind": "noop", "result": "{{ start.says }}"}},
    ]);
    let ended = completed(&admin, "work/wants", workflow).await;
    assert_eq!(ended["output"], "first", "{ended}");
}

#[tokio::test]
async fn a_kind_that_no_tool_serves_is_told_when_a_playbook_is_registered() {
    let server = server_with(&[]).await;
    let tool = json!({"kind": "duckdb", "command": "SELECT 1"});
    let text = playbook("work/duckdb", json!([{"step": "start", "tool": tool}]));
    let warned = register(&server.admin(), &text).await.is(201).json();
    assert!(warned["warnings"].to_string().contains("there is no tool `duckdb` here"), "{warned}");
    let ended = run(&server.admin(), "work/duckdb", json!({})).await;
    assert_eq!(ended["error"]["code"], "unknown_tool", "{ended}");
}

#[tokio::test]
async fn a_loop_that_cannot_begin_is_a_failed_step_like_any_other() {
    let server = server_with(&[]).await;
    let admin = server.admin();
    let told = json!({"kind": "noop", "result": "{{ each.status }}: {{ each.error.code }}"});
    let over = |on_error: &str| {
        json!([
            {"step": "start", "tool": {"kind": "noop", "result": "text"}, "next": {"arcs": [{"step": "each"}]}},
            {"step": "each", "spec": {"on_error": on_error}, "loop": {"in": "{{ start + 1 }}", "iterator": "n"},
             "tool": {"kind": "noop"}, "next": {"arcs": [{"step": "end"}]}},
            {"step": "end", "tool": told},
        ])
    };
    let ended = completed(&admin, "work/over", over("continue")).await;
    assert_eq!(ended["output"], "error: template", "{ended}");
    register(&admin, &playbook("work/strict", over("fail"))).await.is(201);
    let ended = run(&admin, "work/strict", json!({})).await;
    assert_eq!((&ended["status"], &ended["error"]["code"]), (&json!("failed"), &json!("template")), "{ended}");
}

#[tokio::test]
async fn a_child_that_is_not_waited_for_any_longer_is_told_so() {
    let server = server_with(&[]).await;
    let admin = server.admin();
    register(&admin, &asks("work/asks")).await.is(201);
    let sub = json!({"kind": "playbook", "path": "work/asks", "return_result": true, "timeout": "1s"});
    let workflow = json!([
        {"step": "start", "spec": {"on_error": "continue"}, "tool": sub, "next": {"arcs": [{"step": "end"}]}},
        {"step": "end", "tool": {"kind": "noop", "result": "{{ start.error.message }}"}},
    ]);
    let ended = completed(&admin, "work/gave_up", workflow).await;
    let parent = ended["execution_id"].as_str().expect("an id");
    let child = children(&admin, parent).await.pop().expect("a child");
    let told = ended["output"].as_str().unwrap_or_default();
    assert!(told.contains(&format!("execution {child} did not end in time")), "{ended}");
    until_status(&admin, &child, "CANCELLED").await;
    let why = admin.get(&format!("/api/executions/{child}/why")).await.is(200).json();
    assert!(why.to_string().contains("does not wait for it any longer"), "{why}");
}
