//! The JSON schema of a tool's fields, for editors. A text with a template fits everywhere: what it comes to is known
//! only when the step runs.

use serde_json::{Map, Value, json};

use super::{Description, Field, Type};

/// What a text with a template looks like.
const TEMPLATE: &str = r"\{\{[\s\S]*\}\}|\{%[\s\S]*%\}";

impl Description {
    /// Properties of a step's `tool`, by every name they have.
    pub fn properties(&self) -> Map<String, Value> {
        let mut properties = Map::new();
        for field in &self.fields {
            properties.insert(field.name.clone(), field.schema());
            for alias in &field.aliases {
                let mut schema = field.schema();
                schema["description"] = format!("Another name of `{}`. {}", field.name, field.doc).into();
                properties.insert(alias.clone(), schema);
            }
        }
        properties
    }

    /// The schema of such a document itself, for authors of tools.
    pub fn document_schema() -> Value {
        schemars::schema_for!(Description).to_value()
    }

    /// The schema of a whole `tool` of this kind.
    pub fn schema(&self, kind: &str) -> Value {
        let mut properties = self.properties();
        properties.insert("kind".to_owned(), json!({ "const": kind }));
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": format!("NoETL tool {kind}"),
            "description": self.summary,
            "type": "object",
            "properties": properties,
            "required": ["kind"],
        })
    }
}

impl Field {
    fn schema(&self) -> Value {
        let mut schema = self.shape();
        schema["description"] = self.doc.as_str().into();
        if let Some(default) = &self.default {
            schema["default"] = default.clone();
        }
        schema
    }

    fn shape(&self) -> Value {
        if self.types.is_any() {
            return json!({});
        }
        let mut any: Vec<Value> = match self.choices.is_empty() {
            true => self.types.all().iter().filter_map(|one| one.schema()).collect(),
            // Words are taken in any case, which a schema cannot say: the ones that are listed are offered.
            false => vec![json!({ "enum": self.choices }), json!({ "type": "string" })],
        };
        any.push(json!({ "type": "string", "pattern": TEMPLATE }));
        any.push(json!({ "type": "null" }));
        json!({ "anyOf": any })
    }
}

impl Type {
    fn schema(self) -> Option<Value> {
        Some(match self {
            Type::Any => return None,
            Type::Text => json!({ "type": ["string", "number", "boolean"] }),
            Type::Integer => json!({ "type": "integer" }),
            Type::Number => json!({ "type": "number" }),
            Type::Boolean => json!({ "type": "boolean" }),
            Type::Duration => json!({ "type": ["number", "string"] }),
            Type::Map => json!({ "type": "object" }),
            Type::List => json!({ "type": "array" }),
        })
    }
}
