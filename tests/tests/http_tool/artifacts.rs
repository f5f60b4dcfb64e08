//! Results by reference: kept, read again, and whose they are.

use serde_json::json;

use crate::support::{call, failure, run, server};
use crate::upstream::Upstream;

#[tokio::test]
async fn a_large_result_is_read_again_by_its_reference() {
    let server = server().await;
    let workflow = json!([
        {"step": "start", "tool": {"kind": "noop", "result": {"count": 3, "items": "{{ range(30000) | list }}"}},
         "output": {"output_select": ["count"]}, "next": {"arcs": [{"step": "load"}]}},
        {"step": "load", "tool": [{"name": "load", "kind": "artifact", "action": "get",
         "input": {"result_ref": "{{ start._ref }}"}}], "next": {"arcs": [{"step": "end"}]}},
        {"step": "end", "tool": {"kind": "noop",
         "result": "{{ load.data['items'] | length }} {{ load.data.count }} {{ start.count }}"}},
    ]);
    let ended = run(&server.admin(), "artifact/large", workflow).await;
    assert_eq!((&ended["status"], &ended["output"]), (&json!("completed"), &json!("30000 3 3")), "{ended}");
}

#[tokio::test]
async fn a_value_is_kept_and_found_by_its_reference_and_by_nobody_else() {
    let server = server().await;
    let admin = server.admin();
    let acme = server.with_token(&admin.token_for("acme", "user").await);
    let other = server.with_token(&admin.token_for("other", "user").await);
    let kept =
        call(&acme, "artifact/put", json!({"kind": "artifact", "action": "put", "value": {"n": 1.50, "s": "ä"}})).await;
    let at = kept["_ref"].as_str().expect("a reference").to_owned();
    assert_eq!((kept["ref"].as_str(), &kept["media_type"]), (Some(at.as_str()), &json!("application/json")));
    let get = || json!({"kind": "artifact", "action": "get", "result_ref": at});
    assert_eq!(call(&acme, "artifact/get", get()).await, json!({"n": 1.5, "s": "ä"}));
    for (number, stranger) in [&other, &admin].into_iter().enumerate() {
        assert_eq!(failure(stranger, &format!("artifact/theirs-{number}"), get()).await, "reference_missing");
    }
    let upstream = Upstream::start().await;
    let steal = json!({"kind": "http", "url": upstream.url, "method": "POST", "body_ref": at});
    assert_eq!(failure(&other, "artifact/steal", steal).await, "reference_missing");
    assert!(upstream.asked().is_empty(), "nothing was sent");
    // Whoever keeps the same bytes has them too.
    call(&other, "artifact/same", json!({"kind": "artifact", "action": "put", "value": {"n": 1.50, "s": "ä"}})).await;
    assert_eq!(call(&other, "artifact/own", get()).await["s"], "ä");
}

#[tokio::test]
async fn a_reference_that_is_none_says_so() {
    let server = server().await;
    let admin = server.admin();
    let gone = format!("noetl://payload/{}", "0".repeat(64));
    let get = |at: &str| json!({"kind": "artifact", "ref": at});
    assert_eq!(failure(&admin, "artifact/gone", get(&gone)).await, "reference_missing");
    assert_eq!(failure(&admin, "artifact/none", get("")).await, "invalid_input");
}
