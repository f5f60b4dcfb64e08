//! Code in the steps of a playbook: what the engine tells it, and what rules see of it.

use serde_json::json;

use super::support::Desk;

#[tokio::test]
async fn steps_hand_values_on_and_know_where_they_are() {
    let desk = Desk::start().await;
    let done = desk
        .run(
            "values",
            json!([
                {"step": "start", "tool": {"kind": "python", "code": "result = {'rows': [{'n': i} for i in range(3)]}"},
                 "next": {"arcs": [{"step": "double"}]}},
                {"step": "double",
                 "tool": {"kind": "javascript", "input": {"rows": "{{ start.rows }}"},
                          "code": "return rows.map(({ n }) => ({ n: n * 2 }));"},
                 "next": {"arcs": [{"step": "sum"}]}},
                {"step": "sum",
                 "tool": {"kind": "python", "input": {"rows": "{{ double }}", "id": "{{ execution_id }}"},
                          "spec": {"code": "result = [sum(r['n'] for r in rows), step, execution_id == id]"}}},
            ]),
        )
        .await;
    assert_eq!((&done["status"], &done["output"]), (&json!("completed"), &json!([6, "sum", true])), "{done}");
}

#[tokio::test]
async fn an_exception_is_a_failure_that_rules_can_read() {
    let desk = Desk::start().await;
    let seen = "{{ output.error.kind }} {{ output.py.exception }} {{ output.py.line }} {{ output.data.stdout }}";
    let rules =
        json!([{"when": "{{ output.status == 'error' }}", "then": {"do": "continue", "set": {"ctx.seen": seen}}}]);
    let done = desk
        .run(
            "rules",
            json!([
                {"step": "start",
                 "tool": {"kind": "python", "code": "print('x', end='')\nraise LookupError('gone')",
                          "spec": {"policy": {"rules": rules}}},
                 "next": {"arcs": [{"step": "told"}]}},
                {"step": "told", "tool": {"kind": "noop", "result": "{{ seen }}"}},
            ]),
        )
        .await;
    assert_eq!(done["output"], json!("python_error LookupError 2 x"), "{done}");

    let bare = json!([{"step": "start", "tool": {"kind": "python", "code": "raise LookupError('gone')"}}]);
    let failed = desk.run("fails", bare).await;
    assert_eq!(failed["status"], "failed", "{failed}");
    assert!(failed["error"].to_string().contains("LookupError: gone (code, line 1)"), "{failed}");
}

#[tokio::test]
async fn a_step_has_the_time_it_says_and_no_more() {
    let desk = Desk::start().await;
    // Made ready first: loading the interpreter is not part of what is limited here.
    desk.python("result = 1", json!({})).await;
    let rules = json!([{"else": {"then": {"do": "continue", "set": {"ctx.seen": "{{ output.error.kind }}"}}}}]);
    let slow = json!({"kind": "python", "timeout": "2s", "code": "import time\ntime.sleep(60)\nresult = 'slept'",
                      "spec": {"policy": {"rules": rules}}});
    let told = json!({"step": "told", "tool": {"kind": "noop", "result": "{{ seen }}"}});
    let workflow = json!([{"step": "start", "tool": slow, "next": {"arcs": [{"step": "told"}]}}, told]);
    assert_eq!(desk.run("slow", workflow).await["output"], json!("timeout"));
}
