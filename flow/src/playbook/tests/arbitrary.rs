//! No text breaks the parser, whatever it is.

use proptest::prelude::*;
use serde_json::Value as Json;

use super::super::{Severity, parse};
use super::documents::WHOLE;

/// Words that lead deep into the parser.
const WORDS: &[&str] = &[
    "step",
    "tool",
    "next",
    "arcs",
    "loop",
    "in",
    "iterator",
    "spec",
    "mode",
    "policy",
    "rules",
    "when",
    "then",
    "else",
    "do",
    "kind",
    "name",
    "workflow",
    "workbook",
    "metadata",
    "executor",
    "schedule",
    "cron",
    "retry",
    "start",
    "noop",
    "cursor",
    "park",
    "wasm",
    "plugin",
    "input",
    "set",
    "args",
    "max_in_flight",
    "timeout",
    "admit",
    "{{ x }}",
    "{{ }",
    "{% if %}",
    "@previous",
    "jump",
    "to",
    "*",
    "frame",
    "max_rows",
];

fn word() -> impl Strategy<Value = String> {
    prop_oneof![prop::sample::select(WORDS).prop_map(str::to_owned), ".{0,8}"]
}

fn value() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        word().prop_map(Json::from),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Json::from),
            prop::collection::vec((word(), inner), 0..6).prop_map(|fields| Json::Object(fields.into_iter().collect())),
        ]
    })
}

/// Whatever comes out, it is either a playbook or has an error, and every problem has a place.
fn holds(text: &str) {
    match parse(text, false) {
        Ok(parsed) => assert!(parsed.playbook.step(&parsed.playbook.entry).is_some()),
        Err(problems) => {
            assert!(problems.iter().any(|problem| problem.severity == Severity::Error));
            assert!(problems.iter().all(|problem| !problem.message.is_empty()));
        }
    }
}

proptest! {
    #[test]
    fn any_text(text in "(?s).{0,200}") {
        holds(&text);
    }

    #[test]
    fn text_that_looks_like_yaml(text in r#"[ \n\t:,\[\]{}&*!|>'"%@`#?a-c0-2~.<\-]{0,120}"#) {
        holds(&text);
    }

    #[test]
    fn any_value(value in value()) {
        holds(&value.to_string());
    }

    #[test]
    fn any_value_in_the_place_of_a_workflow(value in value(), other in value()) {
        let text = format!(
            "{{apiVersion: noetl.io/v2, kind: Playbook, metadata: {{name: x}}, executor: {other}, workflow: [{value}]}}"
        );
        holds(&text);
    }

    #[test]
    fn a_playbook_with_some_of_it_replaced(from in 0..WHOLE.len(), length in 0..40_usize, by in "(?s).{0,6}") {
        let from = (0..=from).rev().find(|at| WHOLE.is_char_boundary(*at)).unwrap_or(0);
        let end = (from + length).min(WHOLE.len());
        holds(&format!("{}{by}{}", &WHOLE[..from], &WHOLE[end..]));
    }
}
