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
