//! The JSON Schema of a playbook, for editors, made from the table the parser checks with.

use serde_json::{Map, Value as Json, json};

use super::keys::{KINDS, PLAYBOOK, TOOL};
use super::shape::{Key, Object, Others, Shape, Status};

/// JSON Schema, draft 2020-12.
pub fn schema() -> Json {
    schema_with(&Map::new())
}

/// The same, with the fields of tools that are known: by kind, the properties a `tool` of that kind has besides.
pub fn schema_with(tools: &Map<String, Json>) -> Json {
    let mut definitions = Map::new();
    define(&PLAYBOOK, &mut definitions);
    let kinds: Vec<Json> = tools.iter().map(|(kind, properties)| of_kind(kind, properties)).collect();
    if !kinds.is_empty() {
        definitions[TOOL.name]["allOf"] = kinds.into();
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "NoETL playbook",
        "$ref": reference(PLAYBOOK.name),
        "$defs": definitions,
    })
}

/// What holds for a tool if it is of this kind. Keys that are not named stay the tool's own.
fn of_kind(kind: &str, properties: &Json) -> Json {
    json!({
        "if": { "properties": { "kind": { "const": kind } }, "required": ["kind"] },
        "then": { "properties": properties },
    })
}

fn reference(name: &str) -> String {
    format!("#/$defs/{name}")
}

/// Adds an object and all it refers to; objects refer to each other in circles no deeper than their number.
fn define(object: &'static Object, definitions: &mut Map<String, Json>) {
    if definitions.contains_key(object.name) {
        return;
    }
    definitions.insert(object.name.to_owned(), Json::Null);
    let mut properties = Map::new();
    let mut required = Vec::new();
    for key in object.keys {
        match key.status {
            // Left out, it is refused like every key that is not there.
            Status::Refused(_) => continue,
            Status::Required => required.push(key.name),
            Status::Optional | Status::Unused(_) => {}
        }
        properties.insert(key.name.to_owned(), property(object, key, definitions));
    }
    let definition = json!({
        "description": object.about,
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": object.others != Others::Unknown,
    });
    definitions.insert(object.name.to_owned(), definition);
}

fn property(object: &Object, key: &Key, definitions: &mut Map<String, Json>) -> Json {
    let mut alternatives = Vec::new();
    alternatives_of(&key.shape, &mut alternatives, definitions);
    // A key without a value counts as left out.
    if key.status != Status::Required && !matches!(key.shape, Shape::Any) {
        alternatives.push(json!({ "type": "null" }));
    }
    let mut property = match alternatives.len() {
        1 => alternatives.remove(0),
        _ => json!({ "anyOf": alternatives }),
    };
    property["description"] = key.about.into();
    if matches!(key.status, Status::Unused(_)) {
        property["deprecated"] = true.into();
    }
    if object.name == "tool" && key.name == "kind" {
        property["examples"] = KINDS.into();
    }
    property
}

fn schema_of(shape: &'static Shape, definitions: &mut Map<String, Json>) -> Json {
    let mut alternatives = Vec::new();
    alternatives_of(shape, &mut alternatives, definitions);
    match alternatives.len() {
        1 => alternatives.remove(0),
        _ => json!({ "anyOf": alternatives }),
    }
}

fn alternatives_of(shape: &Shape, found: &mut Vec<Json>, definitions: &mut Map<String, Json>) {
    let one = match shape {
        Shape::Any => json!({}),
        Shape::Text => json!({ "type": "string" }),
        Shape::Template => json!({ "type": "string", "pattern": r"\{\{[\s\S]*\}\}|\{%[\s\S]*%\}" }),
        Shape::Guard => json!({ "type": ["string", "boolean"], "pattern": r"\S" }),
        Shape::Word => json!({ "type": ["string", "number", "boolean"] }),
        Shape::Bool => json!({ "type": "boolean" }),
        Shape::Count => json!({ "type": "integer", "minimum": 1, "maximum": u32::MAX }),
        Shape::Digits => json!({ "type": "string", "pattern": r"^\s*0*[1-9][0-9]*\s*$" }),
        Shape::Fraction => json!({ "type": "number", "minimum": 0, "maximum": 1 }),
        Shape::Duration => {
            let pattern = r"^\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*(ms|s|m|min|h|d)?\s*$";
            json!({ "type": ["number", "string"], "minimum": 0, "pattern": pattern })
        }
        Shape::Choice(words) => json!({ "enum": words }),
        Shape::Map => json!({ "type": "object" }),
        Shape::List(item) => json!({ "type": "array", "items": schema_of(item, definitions) }),
        Shape::Object(object) => {
            define(object, definitions);
            json!({ "$ref": reference(object.name) })
        }
        Shape::Task(object) => {
            define(object, definitions);
            let tool = json!({ "$ref": reference(object.name) });
            found.push(tool.clone());
            json!({ "type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": tool })
        }
        Shape::OneOf(shapes) => {
            return shapes.iter().for_each(|shape| alternatives_of(shape, found, definitions));
        }
    };
    found.push(one);
}
