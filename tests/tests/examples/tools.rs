//! What tools say about themselves: each component of the platform what its file says, and a bad word is refused.

use serde_json::{Value, json};

use crate::support::{Desk, examples};
use noetl_tests::made;

#[tokio::test]
async fn every_tool_says_what_its_file_says() {
    let desk = Desk::start().await;
    let listed = desk.admin.get("/api/tools").await.is(200).json();
    let tools = listed["tools"].as_array().expect("a list");
    let folder = examples().parent().expect("the project").join("plugins/tools");
    let embedded: Vec<&Value> = tools.iter().filter(|tool| tool["source"] == "embedded").collect();
    assert!(embedded.len() >= 2, "{listed:#}");
    for tool in embedded {
        let kind = tool["kind"].as_str().expect("a kind");
        let file = std::fs::read_to_string(folder.join(kind).join("describe.json")).expect("the tool's document");
        let file: Value = serde_json::from_str(&file).expect("JSON");
        assert_eq!(tool["description"]["summary"], file["summary"], "{kind}: {tool:#}");
        assert_eq!(tool["description"]["fields"].as_array().map(Vec::len), file["fields"].as_array().map(Vec::len));
    }
    let own: Vec<&str> =
        tools.iter().filter(|tool| tool["source"] == "engine").filter_map(|tool| tool["kind"].as_str()).collect();
    assert_eq!(own, ["park", "playbook", "wasm", "workbook"]);

    let http = desk.admin.get("/api/tools/http").await.is(200).json();
    assert_eq!(http["plugin"], "tools/http");
    desk.admin.get("/api/tools/nothing").await.problem(404, "plugin_not_found");
    desk.admin.get("/api/tools/No%20Kind").await.problem(400, "invalid_parameter");
    desk.noetl(&["tool", "show", "http", "--schema"]).ok().says("\"endpoint\"");
    desk.noetl(&["tool", "show", "park", "--offline"]).ok().says("Waits until somebody");
    desk.noetl(&["tool", "show", "htpp", "--offline"]).ends(3).says("did you mean `http`?");
}

#[tokio::test]
async fn a_slip_in_a_field_is_told_with_its_place_when_a_playbook_is_registered() {
    let desk = Desk::start().await;
    let text = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: slip}\nworkflow:\n  - step: start\n    \
                tool:\n      kind: http\n      url: http://127.0.0.1:1\n      methd: POST\n      json: {}\n      form: {}\n";
    let checked = desk.admin.post("/api/catalog/validate", json!({"content": text})).await.is(200).json();
    assert_eq!(checked["valid"], false, "two bodies exclude each other: {checked:#}");
    let problems = checked["problems"].as_array().expect("a list");
    let slip = problems.iter().find(|problem| problem["line"] == 9).unwrap_or_else(|| panic!("{checked:#}"));
    assert_eq!((&slip["severity"], &slip["column"]), (&json!("warning"), &json!(7)), "{slip}");
    assert_eq!(slip["suggestion"], "did you mean `method`?", "{slip}");
    assert!(problems.iter().any(|problem| problem["line"] == 11 && problem["severity"] == "error"), "{checked:#}");

    let unknown = text.replace("kind: http", "kind: nowhere");
    let registered = desk.admin.post("/api/catalog/register", json!({"content": unknown})).await.is(201).json();
    assert!(
        registered["warnings"][0]["message"].as_str().is_some_and(|text| text.contains("`nowhere`")),
        "{registered}"
    );
}

/// A transform that answers `describe` with this text.
fn saying(text: &str) -> Vec<u8> {
    let parts = format!(
        "(data (i32.const 64) \"{}\") \
         (func (export \"noetl:describe/describing@0.1.0#describe\") (result i32) \
            (i32.store (i32.const 32) (i32.const 64)) (i32.store (i32.const 36) (i32.const {})) (i32.const 32))",
        text.replace('\\', "\\\\").replace('"', "\\\""),
        text.len()
    );
    let manifest = made::manifest("main/said", &[], "");
    made::described(&parts, "(local.get 0)", &manifest)
}

#[tokio::test]
async fn what_is_no_description_is_refused_with_the_push() {
    let desk = Desk::start().await;
    for bad in ["nonsense", "{\"summary\": \"x\", \"filds\": []}", "{}"] {
        let refused = desk.admin.push(saying(bad), "").await.problem(422, "contract_skew");
        assert!(refused["detail"].as_str().is_some_and(|text| text.contains("description")), "{refused}");
    }
    desk.admin.push(saying("{\"summary\": \"Says something.\"}"), "").await.is(201);
}
