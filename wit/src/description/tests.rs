//! What is read, what is refused, and what is said about a playbook.

use serde_json::json;

use super::uses::{Given, Severity, Use, UsedField, problems};
use super::*;

fn tool() -> Description {
    let text = json!({
        "summary": "Sends a request.",
        "fields": [
            {"name": "url", "aliases": ["endpoint"], "type": "text", "required": true, "doc": "where it goes"},
            {"name": "method", "type": "text", "default": "GET", "choices": ["GET", "POST"], "doc": "How."},
            {"name": "json", "one_of": "body", "doc": "Sent as JSON."},
            {"name": "form", "type": "map", "one_of": "body", "doc": "Sent as a form."},
            {"name": "retries", "type": "integer", "doc": "How often."},
        ],
        "result": [{"name": "status_code", "type": "integer", "doc": "What came back."}],
        "errors": [{"code": "timeout", "doc": "Too slow.", "retryable": true}],
        "examples": [{"title": "One", "yaml": "{kind: http, url: \"https://example.org\"}"}],
        "notes": ["A | in a note."]
    });
    Description::read(&text.to_string()).expect("a description")
}

fn field(name: &str, given: Given) -> UsedField {
    UsedField {
        name: name.to_owned(),
        line: 7,
        column: 3,
        path: format!("workflow[0].tool.{name}"),
        given,
        literal: None,
        within: None,
        ours: false,
    }
}

fn used(fields: Vec<UsedField>) -> Use {
    let path = "workflow[0].tool".to_owned();
    Use { kind: "http".to_owned(), line: 6, column: 1, path, fields, inputs: Vec::new(), open: false, unused: false }
}

fn told(used: &Use, strict: bool) -> Vec<(Severity, String, Option<String>)> {
    let found = problems(used, &tool(), strict);
    found.into_iter().map(|problem| (problem.severity, problem.message, problem.suggestion)).collect()
}

#[test]
fn a_use_that_fits_is_not_spoken_of() {
    let mut method = field("method", Given::Text);
    method.literal = Some(json!("post"));
    let fits = used(vec![field("url", Given::Template), method, field("retries", Given::Integer)]);
    assert_eq!(told(&fits, true), []);
    assert_eq!(told(&used(vec![field("endpoint", Given::Text), field("json", Given::Map)]), true), []);
}

#[test]
fn an_unknown_field_is_a_warning_with_the_one_that_was_meant() {
    let slip = used(vec![field("url", Given::Text), field("methd", Given::Text)]);
    let expected = "the tool `http` does not say that it takes `methd`".to_owned();
    let meant = Some("did you mean `method`?".to_owned());
    assert_eq!(told(&slip, false), [(Severity::Warning, expected.clone(), meant.clone())]);
    assert_eq!(told(&slip, true), [(Severity::Error, expected, meant)]);
    let mut ours = field("timeout", Given::Integer);
    ours.ours = true;
    assert_eq!(told(&used(vec![field("url", Given::Text), ours]), true), []);
}

#[test]
fn what_is_required_is_missed_unless_something_supplies_it() {
    let missing = [(Severity::Error, "`url` is missing: where it goes".to_owned(), None)];
    assert_eq!(told(&used(vec![]), false), missing);
    assert_eq!(told(&Use { unused: true, ..used(vec![]) }, false)[0].0, Severity::Warning);
    assert_eq!(told(&used(vec![field("url", Given::Nothing)]), false), missing);
    let handed = Use { inputs: vec!["endpoint".to_owned()], ..used(vec![]) };
    assert_eq!(told(&handed, false), []);
    let own = Description { reads_input: false, ..tool() };
    let found = problems(&handed, &own, false);
    assert_eq!((found.len(), found[0].message.as_str()), (1, "`url` is missing: where it goes"));
    assert!(
        found[0].suggestion.as_deref().is_some_and(|text| text.contains("`endpoint` stands in `input`")),
        "{found:?}"
    );
    assert_eq!(problems(&Use { open: true, ..used(vec![]) }, &own, false).len(), 1, "whatever the input is");
}

#[test]
fn what_is_required_for_a_value_of_another_field_is_missed_when_that_value_is_known() {
    let text = r#"{"summary": "x", "fields": [
        {"name": "operation", "default": "get", "doc": ""},
        {"name": "bucket", "required_when": {"operation": ["get", "put"]}, "doc": "which"},
        {"name": "subject", "required_when": {"operation": ["publish"]}, "doc": "where"}]}"#;
    let tool = Description::read(text).expect("a description");
    let operation = |given, literal: Option<Value>| UsedField { literal, ..field("operation", given) };
    let says = |used: &Use| problems(used, &tool, true).into_iter().map(|one| one.message).collect::<Vec<_>>();
    let missing = |operation: &str| vec![format!("`bucket` is missing for `operation: {operation}`: which")];
    assert_eq!(says(&used(vec![])), missing("get"), "which is what counts when nothing is written");
    assert_eq!(says(&used(vec![operation(Given::Text, Some(json!("put")))])), missing("put"));
    let publish = operation(Given::Text, Some(json!("publish")));
    assert_eq!(says(&used(vec![publish])), ["`subject` is missing for `operation: publish`: where"]);
    assert_eq!(says(&used(vec![operation(Given::Template, None)])), Vec::<String>::new(), "who knows");
    assert_eq!(says(&used(vec![operation(Given::Text, Some(json!("list")))])), Vec::<String>::new());
    assert_eq!(says(&used(vec![field("bucket", Given::Template)])), Vec::<String>::new());
    for handed in ["operation", "bucket"] {
        assert_eq!(says(&Use { inputs: vec![handed.to_owned()], ..used(vec![]) }), Vec::<String>::new(), "{handed}");
    }
    assert!(
        tool.markdown("x").contains("which Required when `operation` is one of `get`, `put`."),
        "{}",
        tool.markdown("x")
    );
    let nobody = text.replace(r#"{"operation": ["publish"]}"#, r#"{"action": ["publish"]}"#);
    assert!(Description::read(&nobody).expect_err("refused").to_string().contains("no field `action`"));
}

#[test]
fn what_a_map_has_to_have_in_it_is_missed() {
    let text = r#"{"summary": "x", "fields": [{"name": "source", "type": "map", "doc": "where from", "within": [
        {"name": "type", "aliases": ["kind"], "required": true, "doc": "which"},
        {"name": "url", "required_when": {"type": ["http"]}, "doc": "where"}]}]}"#;
    let tool = Description::read(text).expect("a description");
    let says = |within: Option<Vec<UsedField>>| {
        let source = UsedField { within, ..field("source", Given::Map) };
        let found = problems(&used(vec![source]), &tool, true).into_iter();
        found.map(|one| (one.path, one.message)).collect::<Vec<_>>()
    };
    let at = |message: &str| vec![("workflow[0].tool.source".to_owned(), message.to_owned())];
    let http = || UsedField { literal: Some(json!("http")), ..field("kind", Given::Text) };
    assert_eq!(says(Some(vec![])), at("`type` is missing: which"));
    assert_eq!(says(Some(vec![http()])), at("`url` is missing for `type: http`: where"));
    assert_eq!(says(Some(vec![http(), field("url", Given::Template), field("more", Given::Text)])), []);
    assert_eq!(says(None), [], "nothing is known of what is in it");
    let page = tool.markdown("x");
    assert!(page.contains("where from Required in it: `type`; `url` when `type` is `http`."), "{page}");
}

#[test]
fn values_of_another_type_or_beside_the_choices_are_told() {
    let says = |name: &str, given, literal: Option<Value>| {
        let mut wrong = field(name, given);
        wrong.literal = literal;
        let found = told(&used(vec![field("url", Given::Text), wrong]), false);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, Severity::Warning);
        found[0].1.clone()
    };
    assert_eq!(says("form", Given::Text, None), "`form` is a map, and here is text");
    assert_eq!(says("retries", Given::Text, None), "`retries` is a whole number, and here is text");
    let choice = says("method", Given::Text, Some(json!("PSOT")));
    assert_eq!(choice, "`method` is one of `GET`, `POST`, and not `PSOT`");
}

#[test]
fn of_a_group_only_one_is_written() {
    let both = |first, second| used(vec![field("url", Given::Text), field("json", first), field("form", second)]);
    let text = "`json` and `form` exclude each other: leave one out".to_owned();
    assert_eq!(told(&both(Given::Map, Given::Map), false), [(Severity::Error, text.clone(), None)]);
    assert_eq!(told(&both(Given::Template, Given::Map), false), [(Severity::Warning, text, None)]);
    assert_eq!(told(&both(Given::Nothing, Given::Map), false), []);
    let twice = used(vec![field("url", Given::Text), field("endpoint", Given::Text)]);
    assert_eq!(told(&twice, false).len(), 1);
}

#[test]
fn a_document_that_is_none_says_why() {
    let says = |text: &str| Description::read(text).expect_err("refused").to_string();
    assert!(says("[]").contains("cannot be read"));
    assert!(says(r#"{"summary": "x", "filds": []}"#).contains("filds"));
    assert!(says(r#"{"summary": " "}"#).contains("no `summary`"));
    let twice = r#"{"summary": "x", "fields": [{"name": "a", "doc": ""}, {"name": "b", "aliases": ["a"], "doc": ""}]}"#;
    assert!(says(twice).contains("`a` twice"));
    assert!(says(&" ".repeat(MAX_BYTES + 1)).contains("more than the"));
}

#[test]
fn a_page_and_a_schema_have_every_field() {
    let tool = tool();
    let page = tool.markdown("http");
    for part in ["## `http`", "`url`, `endpoint`", "| required |", "status_code", "`timeout` | yes", "```yaml"] {
        assert!(page.contains(part), "{part} is not in\n{page}");
    }
    let schema = tool.schema("http");
    assert_eq!(schema["properties"]["kind"]["const"], "http");
    assert_eq!(schema["properties"]["method"]["default"], "GET");
    assert!(schema["properties"]["endpoint"]["description"].as_str().is_some_and(|text| text.contains("`url`")));
}
