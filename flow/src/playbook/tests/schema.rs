//! The schema says of documents what the parser says of them, as far as a schema can.

use std::fs;

use serde_json::Value as Json;

use super::super::problem::Problems;
use super::super::{schema, yaml};
use super::documents::{WHOLE, fixtures};
use super::{document, parsed};
use crate::playbook::keys::{ACTIONS, PLAYBOOK};

/// As much of JSON Schema as ours uses.
fn accepts(schema: &Json, value: &Json, root: &Json) -> bool {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.strip_prefix("#/$defs/").expect("a definition");
        return accepts(&root["$defs"][name], value, root);
    }
    if let Some(alternatives) = schema["anyOf"].as_array() {
        return alternatives.iter().any(|schema| accepts(schema, value, root));
    }
    if let Some(words) = schema["enum"].as_array() {
        return words.contains(value);
    }
    let kind = match value {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(number) if number.is_f64() => "number",
        Json::Number(_) => "integer",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    };
    let is_kind = |wanted: &Json| wanted == kind || wanted == "number" && kind == "integer";
    let kind_fits = match &schema["type"] {
        Json::Null => true,
        Json::Array(kinds) => kinds.iter().any(is_kind),
        one => is_kind(one),
    };
    kind_fits && bounds_fit(schema, value) && parts_fit(schema, value, root)
}

fn bounds_fit(schema: &Json, value: &Json) -> bool {
    let Some(number) = value.as_f64() else { return true };
    schema["minimum"].as_f64().is_none_or(|least| number >= least)
        && schema["maximum"].as_f64().is_none_or(|most| number <= most)
}

fn parts_fit(schema: &Json, value: &Json, root: &Json) -> bool {
    match value {
        Json::Array(items) => {
            schema["items"].is_null() || items.iter().all(|item| accepts(&schema["items"], item, root))
        }
        Json::Object(fields) => {
            let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
            required.iter().all(|name| name.as_str().is_some_and(|name| fields.contains_key(name)))
                && schema["maxProperties"].as_u64().is_none_or(|most| fields.len() as u64 <= most)
                && fields.iter().all(|(name, field)| match schema["properties"].get(name) {
                    Some(schema) => accepts(schema, field, root),
                    None => match &schema["additionalProperties"] {
                        Json::Null => true,
                        Json::Bool(allowed) => *allowed,
                        schema => accepts(schema, field, root),
                    },
                })
        }
        _ => true,
    }
}

fn json_of(text: &str) -> Json {
    yaml::read(text, &mut Problems::new(false)).expect("yaml").json()
}

#[test]
fn documents_the_parser_takes_fit_the_schema() {
    let schema = schema();
    assert!(accepts(&schema, &json_of(WHOLE), &schema));
    for path in fixtures() {
        let text = fs::read_to_string(&path).expect("readable");
        parsed(&text);
        assert!(accepts(&schema, &json_of(&text), &schema), "{}", path.display());
    }
}

#[test]
fn the_table_of_keys_and_the_schema_refuse_the_same() {
    let schema = schema();
    for (step, fits) in [
        ("{step: start, tool: {kind: noop}}", true),
        ("{step: start, tool: {kind: noop, anything: [1]}}", true),
        ("{step: start, tool: [{a: {kind: noop}}, {name: b, kind: noop}]}", true),
        ("{step: start, tool: , next: a}", true),
        ("{step: start, next: [a, {step: b}]}", true),
        ("{tool: {kind: noop}}", false),
        ("{step: 1}", false),
        ("{step: start, tool: {}}", false),
        ("{step: start, tool: [noop]}", false),
        ("{step: start, case: []}", false),
        ("{step: start, next: {arcs: [{when: true}]}}", false),
        ("{step: start, loop: {in: [1]}}", false),
        ("{step: start, loop: {in: [1], iterator: i, spec: {max_in_flight: 0}}}", false),
        ("{step: start, loop: {in: [1], iterator: i, spec: {mode: both}}}", false),
        ("{step: start, spec: {timeout: -1}}", false),
        ("{step: start, tool: {kind: a, spec: {policy: {rules: [{else: {do: nothing}}]}}}}", false),
        ("{step: start, unknown: 1}", false),
    ] {
        let text = document(&format!("  - {step}\n"));
        assert_eq!(accepts(&schema, &json_of(&text), &schema), fits, "schema: {step}");
        let mut problems = Problems::new(true);
        let root = yaml::read(&text, &mut problems).expect("yaml");
        PLAYBOOK.check(&root, &mut problems);
        assert_eq!(!problems.failed(), fits, "table: {step}");
    }
}

#[test]
fn every_reference_is_defined_and_everything_is_described() {
    let schema = schema();
    let definitions = schema["$defs"].as_object().expect("a map");
    let text = schema.to_string();
    for part in text.split("#/$defs/").skip(1) {
        let name = part.split('"').next().expect("it ends");
        assert!(definitions.contains_key(name), "{name}");
    }
    for (name, definition) in definitions {
        for (key, property) in definition["properties"].as_object().expect("a map") {
            assert!(property["description"].as_str().is_some_and(|text| !text.is_empty()), "{name}.{key}");
        }
    }
    assert_eq!(definitions["then"]["properties"]["do"]["anyOf"][0]["enum"], serde_json::json!(ACTIONS));
}
