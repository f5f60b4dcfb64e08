//! The tools of a list, one after the other.

use super::*;

#[test]
fn later_tools_see_the_outputs_of_earlier_ones() {
    let spec = list(vec![
        tool(
            "fetch",
            json!({"config": {"url": "x"}, "set": {"page": "{{ output }}", "deep.er": "{{ output.rows[0] }}"}}),
        ),
        tool(
            "save",
            json!({"config": {
                "a": "{{ fetch.rows }}", "b": "{{ fetch.data.rows }}", "c": "{{ page.rows }}", "d": "{{ deep.er }}",
                "e": "{{ deep.kept }}", "f": "{{ fetch }}", "g": "{{ ctx.fetch.rows[1] }}",
            }}),
        ),
    ]);
    let mut tool = answers([Ok(json!({"rows": [1, 2]})), Ok(json!("saved"))]);
    let ran = run(&spec, json!({"deep": {"kept": 7}}), &mut tool);
    assert_eq!(
        ran.arguments(1),
        json!({
            "a": [1, 2], "b": [1, 2], "c": [1, 2], "d": 1, "e": 7, "f": {"rows": [1, 2]}, "g": 2,
        })
    );
    assert_eq!(ran.data(), &json!({"fetch": {"rows": [1, 2]}, "save": "saved"}));
    assert_eq!((ran.report.calls, ran.report.took), (2, 10));
    assert!(ran.report.set.is_empty(), "a task's own `set` stays within the run");
}

#[test]
fn a_forward_binding_is_rendered_when_it_can_be() {
    let spec = list(vec![
        tool("a", json!({"set": {"iter.page": "{{ output.n }}", "ctx.seen": "{{ iter.item }}"}})),
        tool("b", json!({"config": {"url": "/p/{{ iter.page }}/{{ iter.item }}/{{ seen }}{{ ctx.seen }}"}})),
    ]);
    let ran = run(&spec, json!({"iter": {"item": "i"}}), &mut answers([Ok(json!({"n": 4})), Ok(json!(1))]));
    assert_eq!(ran.arguments(1)["url"], json!("/p/4/i/ii"));
    assert_eq!(Json::Object(ran.report.set), json!({"seen": "i"}), "what is set in `ctx` outlives the run");
}

#[test]
fn all_of_a_set_sees_the_names_as_they_were() {
    let spec = list(vec![
        tool("a", json!({"set": {"x": "{{ y }}", "y": "{{ x }}"}})),
        tool("b", json!({"config": {"x": "{{ x }}", "y": "{{ y }}"}})),
    ]);
    let ran = run(&spec, json!({"x": 1, "y": 2}), &mut answers([Ok(json!(0))]));
    assert_eq!(ran.arguments(1), json!({"x": 2, "y": 1}));
}

#[test]
fn names_of_an_input_are_seen_by_their_tool_alone() {
    let spec = list(vec![
        tool("a", json!({"config": {"v": "{{ mine }}"}, "input": {"mine": 1}})),
        tool("b", json!({"config": {"v": "{{ mine }}"}})),
    ]);
    let ran = run(&spec, json!({}), &mut answers([Ok(json!(0))]));
    assert_eq!((&ran.arguments(0)["v"], &ran.arguments(1)["v"]), (&json!(1), &json!(null)));
}

#[test]
fn a_failure_ends_the_pipeline_and_keeps_what_there_is() {
    let spec = list(vec![tool("a", json!({})), tool("b", json!({})), tool("c", json!({}))]);
    let ran = run(&spec, json!({}), &mut answers([Ok(json!(1)), Err("boom"), Ok(json!(3))]));
    assert_eq!((ran.code(), ran.log.len()), (Some("boom"), 2));
    assert_eq!(ran.data()["a"], json!(1));
    assert_eq!(ran.data()["b"]["error"]["code"], json!("boom"));
}

#[test]
fn playbooks_run_inside_a_pipeline() {
    let spec = list(vec![
        tool("child", json!({"kind": "playbook", "config": {"path": "p", "return_step": "x"}})),
        tool("b", json!({"config": {"v": "{{ child.score }}"}})),
    ]);
    let kernel =
        Kernel { child: Some(("completed", json!({"steps": {"x": {"value": {"score": 5}}}}))), ..Kernel::default() };
    let ran = kernel.run(&spec, &json!({"context": {}}), &mut answers([Ok(json!(0))]));
    assert_eq!(ran.log, ["execute p", "b 1"]);
    assert_eq!(ran.arguments(0), json!({"v": 5}));
}
