//! What rules and code find without a template that names it.

use super::*;

#[test]
fn rules_find_the_body_of_an_answer_as_guards_of_steps_do() {
    let set = json!({"ctx.more": "{{ output.data.paging.hasMore }}", "ctx.items": "{{ output.response.data.data }}",
                     "ctx.same": "{{ output.data.data.paging.hasMore }}"});
    let spec = object(tool("t", json!({"kind": "http", "rules": [{"set": set, "action": "continue"}]})));
    let page = json!({"status_code": 200, "headers": {}, "data": {"data": [7], "paging": {"hasMore": true}}});
    let ran = run(&spec, json!({}), &mut answers([Ok(page)]));
    assert_eq!(ran.code(), None);
    assert_eq!(Json::Object(ran.report.set), json!({"more": true, "items": [7], "same": true}));
}

fn of_code(code: &str) -> Json {
    object(tool("t", json!({"kind": "python", "config": {"code": code}})))
}

#[test]
fn code_that_asks_for_its_context_finds_results_of_steps_in_it() {
    let inputs = json!({"context": {"variables": {"a": 1}, "start": {"n": 2}, "pipe": {"get": {"id": 3}}, "limit": 4},
                        "results": [["start", false], ["pipe", true]]});
    for (code, expected) in [
        ("result = context.get('start')", json!({"start": {"n": 2}, "pipe": {"get": {"id": 3}, "id": 3}})),
        ("result = start", json!(null)),
    ] {
        let ran = Kernel::default().run(&of_code(code), &inputs, &mut answers([Ok(json!(1))]));
        assert_eq!(ran.arguments(0)["context"]["results"], expected, "{code}");
    }
}

#[test]
fn of_a_large_result_code_is_given_the_whole_when_it_names_it() {
    let kernel =
        Kernel { payloads: BTreeMap::from([("ab".repeat(32), br#"{"rows": [1, 2]}"#.to_vec())]), ..Kernel::default() };
    let inputs = json!({"context": {"large": {"_truncated": true, "rows": [1]}}, "results": [["large", false]],
                        "partial": [["large", {"payload": {"sha256": "ab".repeat(32), "size": 9}}]]});
    for (code, rows) in [("result = context['large']", json!([1, 2])), ("result = list(context)", json!([1]))] {
        let ran = kernel.run(&of_code(code), &inputs, &mut answers([Ok(json!(1))]));
        assert_eq!(ran.arguments(0)["context"]["results"]["large"]["rows"], rows, "{code}");
    }
}

#[test]
fn code_finds_what_earlier_tools_came_to_and_what_was_set_hides_it() {
    let first = tool("first", json!({"set": {"hidden": 1}}));
    let code = tool("t", json!({"kind": "python", "config": {"code": "result = context"}}));
    let inputs = json!({"context": {"hidden": {"n": 2}}, "results": [["hidden", false]]});
    let mut tools = answers([Ok(json!({"x": 5})), Ok(json!(1))]);
    let ran = Kernel::default().run(&list(vec![first, code]), &inputs, &mut tools);
    assert_eq!(ran.arguments(1)["context"]["results"], json!({"first": {"x": 5}}));
}
