//! Value fidelity: a corpus of values goes from a server through `http`, templates, variables, `python` and `postgres` and
//! back to that server, which keeps what it is told as text. What comes back is compared with what it was, digit by digit;
//! each difference that is meant to be is in the corpus, with where it is documented.
//!
//! [`values`] is what JSON has, [`columns`] what a database has, [`compare`] what the same is, [`partner`] the server.

mod columns;
mod compare;
mod partner;
mod scene;
mod values;

use serde_json::{Value, json};

use compare::{Case, differences, kinds, member};
use partner::Partner;
use scene::{Scene, arcs};

/// Gives back what it was given, under the names it had, and what Python calls each of them.
const LOOK: &str = "\
def kinds(values):
    return {name: type(value).__name__ for name, value in values.items()}

result = {'each': each, 'whole': whole, 'each_kinds': kinds(each), 'whole_kinds': kinds(whole)}
";

/// A template for each case: a field of what a step has, as it is.
fn templates(cases: &[Case], of: &str) -> Value {
    cases.iter().map(|case| (case.name.to_owned(), json!(format!("{{{{ {of}.{} }}}}", case.name)))).collect()
}

#[tokio::test]
async fn json_values_come_back_from_templates_variables_and_python_as_they_were() {
    let cases = values::corpus();
    let partner = Partner::start(compare::document(&cases)).await;
    let scene = Scene::start().await;
    let workflow = json!([
        {"step": "start", "tool": {"kind": "http", "url": partner.url}, "next": arcs("look")},
        {"step": "look", "set": {"ctx.held": "{{ output.each }}"}, "next": arcs("tell"),
         "tool": {"kind": "python", "code": LOOK,
                  "input": {"each": templates(&cases, "start.data"), "whole": "{{ start.data }}"}}},
        {"step": "tell",
         "tool": {"kind": "http", "method": "POST", "url": partner.url, "json": {
             "each": "{{ look.each }}", "whole": "{{ look.whole }}", "held": "{{ held }}",
             "one_by_one": templates(&cases, "look.each"),
             "each_kinds": "{{ look.each_kinds }}", "whole_kinds": "{{ look.whole_kinds }}"}}},
    ]);
    scene.completes("fidelity/json", workflow).await;
    let told = partner.last();
    let mut wrong = Vec::new();
    for place in ["each", "whole", "held", "one_by_one"] {
        wrong.extend(differences(place, &cases, member(&told, place)));
    }
    for place in ["each_kinds", "whole_kinds"] {
        wrong.extend(kinds(place, &cases, member(&told, place)));
    }
    compare::show_exceptions(&cases);
    assert!(wrong.is_empty(), "{} values are not what they were:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test]
async fn every_type_of_a_database_is_read_as_it_was_written() {
    let columns = columns::corpus();
    let cases: Vec<Case> = columns.iter().map(|column| column.case.clone()).collect();
    let partner = Partner::start(compare::document(&cases)).await;
    let (scene, _postgres) = Scene::with_database().await;
    let read = "def kinds(values):\n    return {name: type(value).__name__ for name, value in values.items()}\n\n\
                result = {'row': row, 'kinds': kinds(row)}\n";
    let values = |of: &str| -> Value {
        cases.iter().map(|case| json!(format!("{{{{ {of}.{} }}}}", case.name))).collect::<Vec<_>>().into()
    };
    let sql =
        |command: String, of: &str| json!({"kind": "postgres", "auth": "pg", "command": command, "params": values(of)});
    let workflow = json!([
        {"step": "start", "tool": {"kind": "http", "url": partner.url}, "next": arcs("look")},
        {"step": "look", "next": arcs("make"),
         "tool": {"kind": "python", "code": LOOK,
                  "input": {"each": templates(&cases, "start.data"), "whole": "{{ start.data }}"}}},
        {"step": "make", "next": arcs("write"),
         "tool": {"kind": "postgres", "auth": "pg", "command": columns::table(&columns)}},
        {"step": "write", "tool": sql(columns::insert(&columns, 1), "look.each"), "next": arcs("read")},
        {"step": "read", "next": arcs("again"),
         "tool": {"kind": "python", "code": read, "input": {"row": "{{ write.rows[0] }}"}}},
        // What was read is written again, and is the same to the database.
        {"step": "again", "tool": sql(columns::insert(&columns, 2), "read.row"), "next": arcs("tell")},
        {"step": "tell",
         "tool": {"kind": "http", "method": "POST", "url": partner.url, "json": {
             "row": "{{ read.row }}", "kinds": "{{ read.kinds }}", "first": "{{ again.rows[0] }}",
             "second": "{{ again.rows[1] }}"}}},
    ]);
    scene.completes("fidelity/database", workflow).await;
    let told = partner.last();
    let mut wrong = kinds("kinds", &cases, member(&told, "kinds"));
    for place in ["row", "first", "second"] {
        wrong.extend(differences(place, &cases, member(&told, place)));
    }
    compare::show_exceptions(&cases);
    assert!(wrong.is_empty(), "{} values are not what they were:\n{}", wrong.len(), wrong.join("\n"));
}

/// What nobody here can hold is told: it never becomes another value, or nothing.
#[tokio::test]
async fn what_cannot_be_held_is_a_failure_that_says_so() {
    let (scene, _postgres) = Scene::with_database().await;
    for (name, document) in [("number", r#"{"v": 1e400}"#), ("surrogate", r#"{"v": "\ud800"}"#)] {
        let partner = Partner::start(document.to_owned()).await;
        let workflow = json!([{"step": "start", "tool": {"kind": "http", "url": partner.url}}]);
        let ended = scene.run(&format!("fidelity/{name}"), workflow, json!({})).await;
        assert_eq!(
            (&ended["status"], &ended["error"]["code"]),
            (&json!("failed"), &json!("invalid_output")),
            "{ended}"
        );
    }
    for (name, kind, value, says) in [
        ("zero", "text", json!("a\u{0}b"), "zero byte"),
        ("bytes", "bytea", json!("no base64!"), "base64"),
        ("fraction", "int4", json!(1.5), "1.5"),
        ("wide", "int2", json!(40_000), "40000"),
        ("day", "date", json!("2023-02-29"), "2023-02-29"),
    ] {
        let query = format!("SELECT $1::{kind} AS v");
        let tool = json!({"kind": "postgres", "auth": "pg", "query": query, "params": ["{{ value }}"]});
        let workflow = json!([{"step": "start", "tool": tool}]);
        let ended = scene.run(&format!("fidelity/{name}"), workflow, json!({"value": value})).await;
        let message = ended["error"]["message"].as_str().unwrap_or_default();
        assert!(ended["status"] == "failed" && message.contains(says), "{name}: {ended}");
    }
}
