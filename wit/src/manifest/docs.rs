//! The reference page, the JSON schema and the help text of `plugin.toml`, all from the table of options.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::options::{Kind, OPTIONS, OptionRow};
use crate::packages;
use crate::rings::Capability;

/// The reference page in markdown.
pub fn markdown() -> String {
    let mut page = String::from(
        "# plugin.toml\n\nWhat a plugin says about itself. The ring is not part of it: it follows from the path and \
         the privilege of whoever pushes. Unknown options are errors.\n\n\
         | option | value | default | since |\n|---|---|---|---|\n",
    );
    for row in OPTIONS {
        let default = row.default.map_or_else(|| "required".to_owned(), |default| format!("`{default}`"));
        let _ = writeln!(page, "| `{}` | {} | {default} | {} |", row.key, row.kind.describe(), row.since);
    }
    for row in OPTIONS {
        let _ = write!(page, "\n## `{}`\n\n{}\n\n```toml\n{}\n```\n", row.key, row.help, example(row));
    }
    page
}

/// The same for a terminal, one paragraph an option.
pub fn help() -> String {
    let mut text = String::new();
    for row in OPTIONS {
        let default = row.default.map_or_else(|| "required".to_owned(), |default| format!("default {default}"));
        let _ = write!(
            text,
            "{} ({}; {default})\n    {}\n    for example: {}\n\n",
            row.key,
            row.kind.describe(),
            row.help,
            example(row).replace('\n', " ")
        );
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// A JSON schema (2020-12) of the file's content, for editors.
pub fn json_schema() -> Value {
    let mut top = Map::new();
    for row in OPTIONS {
        let schema = schema_of(row);
        match row.key.split_once('.') {
            None => {
                top.insert(row.key.to_owned(), schema);
            }
            Some((table, name)) => {
                let table = top
                    .entry(table)
                    .or_insert_with(|| json!({ "type": "object", "additionalProperties": false, "properties": {} }));
                table["properties"][name] = schema;
            }
        }
    }
    let required: Vec<_> = OPTIONS.iter().filter(|row| row.default.is_none()).map(|row| row.key).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "plugin.toml",
        "type": "object",
        "additionalProperties": false,
        "required": required,
        "properties": top,
    })
}

fn schema_of(row: &OptionRow) -> Value {
    let mut schema = match row.kind {
        Kind::Path => json!({ "type": "string", "pattern": "^[a-z][a-z0-9_-]{0,63}(/[a-z][a-z0-9_-]{0,63}){1,5}$" }),
        Kind::Version => json!({ "type": "string", "pattern": "^[0-9]+\\.[0-9]+\\.[0-9]+" }),
        Kind::Text { max } => json!({ "type": "string", "maxLength": max }),
        Kind::Language => json!({ "type": "string", "pattern": "^([a-z][a-z0-9_-]{0,63})?$" }),
        Kind::OneOf(words) => json!({ "enum": words }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Number { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Capabilities => {
            let names = Capability::ALL.map(Capability::name);
            json!({ "type": "array", "uniqueItems": true, "items": { "enum": names } })
        }
        Kind::Hosts => json!({ "type": "array", "items": { "type": "string" } }),
        Kind::Requirements => {
            let names: Map<_, _> =
                packages::names().map(|name| (name.to_owned(), json!({ "type": "string" }))).collect();
            json!({ "type": "object", "additionalProperties": false, "properties": names })
        }
    };
    schema["description"] = json!(row.help);
    if let Some(default) = row.default.and_then(literal) {
        schema["default"] = default;
    }
    if let Some(example) = literal(row.example) {
        schema["examples"] = json!([example]);
    }
    schema
}

/// A TOML literal as JSON.
fn literal(text: &str) -> Option<Value> {
    let mut table: toml::Table = toml::from_str(&format!("value = {text}")).ok()?;
    serde_json::to_value(table.remove("value")?).ok()
}

/// The option as it stands in a file, under its table.
fn example(row: &OptionRow) -> String {
    match row.key.split_once('.') {
        Some((table, name)) => format!("[{table}]\n{name} = {}", row.example),
        None => format!("{} = {}", row.key, row.example),
    }
}
