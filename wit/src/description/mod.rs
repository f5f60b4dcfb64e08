//! What a tool says about itself: which fields it takes, what it answers with, how it fails.
//!
//! One document a component, given out by its optional export `describe` (`noetl:describe`). Everything that is told
//! about a tool comes from it: its page in a terminal and in the documentation ([`page`](self)), the schema for editors
//! ([`schema`](self)), and what is said about a playbook that uses it ([`uses`]). So none of them can disagree with the
//! component that serves.
//!
//! The document comes from anyone, so it is bounded in size and in the number of its parts, and an unknown key is an
//! error: a slip in it would otherwise be a field nobody ever sees.
//!
//! Invariant: a [`Description`] that was read has a summary, and none of its names twice.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

mod page;
mod schema;
pub mod uses;

/// Largest document in bytes.
pub const MAX_BYTES: usize = 64 << 10;
/// Most fields of a tool, names of each counted.
const MAX_FIELDS: usize = 500;

/// A tool, in its own words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// One line: what the tool does.
    pub summary: String,
    /// What a step can write beside `kind`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Field>,
    /// Whether the tool takes fields that are not listed, so that nobody is warned of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open: bool,
    /// Whether the tool looks for a field among the step's `input` too, if it is not written beside `kind`.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub reads_input: bool,
    /// What the answer has in it; nothing when it is whatever the step makes of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub result: Vec<Part>,
    /// Codes of failures that rules can match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Code>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Example>,
    /// Paragraphs that fit nowhere else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

fn yes() -> bool {
    true
}

/// One field a step can write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Field {
    pub name: String,
    /// Other names of the same field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// What may be written; anything when left out.
    #[serde(default, rename = "type", skip_serializing_if = "Types::is_any")]
    pub types: Types,
    /// Whether a step has to write it. In a group, one of the group has to be written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// Other fields, and the values of them for which a step has to write this one: `{"operation": ["get", "put"]}`. All have
    /// to hold; a value that is known only when the step runs holds for nothing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub required_when: BTreeMap<String, Vec<Value>>,
    /// Fields that a map has to have in it; `required` and `required_when` of them count, and others may be there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub within: Vec<Field>,
    /// What counts when it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The only values there are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Value>,
    /// Of the fields with the same word here, a step writes one at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_of: Option<String>,
    pub doc: String,
}

/// What a value is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Type {
    Any,
    Text,
    Integer,
    Number,
    Boolean,
    /// Seconds, or text with a unit: `500ms`, `2s`, `5m`.
    Duration,
    Map,
    List,
}

/// One type, or several of which any will do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Types {
    One(Type),
    Several(Vec<Type>),
}

/// One part of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// As a template names it below the step: `rows`, `headers.retry-after`.
    pub name: String,
    #[serde(default, rename = "type", skip_serializing_if = "Types::is_any")]
    pub types: Types,
    pub doc: String,
}

/// How a tool fails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Code {
    /// As `output.error.code` has it.
    pub code: String,
    pub doc: String,
    /// Whether trying again can help.
    #[serde(default)]
    pub retryable: bool,
}

/// A piece of a playbook that works.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Example {
    pub title: String,
    /// The `tool` of a step.
    pub yaml: String,
}

/// Why a document is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DescriptionError {
    #[error("the description has {0} bytes, more than the {MAX_BYTES} it may have")]
    TooLarge(usize),
    #[error("the description cannot be read: {0}")]
    Unreadable(String),
    #[error("the description names the field `{0}` twice")]
    Twice(String),
    #[error("the description has no `{0}`")]
    Empty(&'static str),
    #[error("the description requires a field when `{0}` is something, and has no field `{0}`")]
    Nobody(String),
    #[error("the description has more than {MAX_FIELDS} fields")]
    TooMany,
}

impl Description {
    /// Reads what a component answered.
    pub fn read(text: &str) -> Result<Self, DescriptionError> {
        if text.len() > MAX_BYTES {
            return Err(DescriptionError::TooLarge(text.len()));
        }
        let description: Self =
            serde_json::from_str(text).map_err(|error| DescriptionError::Unreadable(error.to_string()))?;
        description.check()?;
        Ok(description)
    }

    fn check(&self) -> Result<(), DescriptionError> {
        if self.summary.trim().is_empty() {
            return Err(DescriptionError::Empty("summary"));
        }
        let mut known = BTreeSet::new();
        for name in self.names() {
            if !known.insert(name) {
                return Err(DescriptionError::Twice(name.to_owned()));
            }
        }
        check_conditions(&self.fields)?;
        self.fields.iter().try_for_each(|field| check_conditions(&field.within))?;
        if known.len() > MAX_FIELDS { Err(DescriptionError::TooMany) } else { Ok(()) }
    }

    /// Every name a field goes by.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().flat_map(Field::names)
    }

    /// The field of a name or of another name of it.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.names().any(|known| known == name))
    }
}

impl Field {
    /// Its own name first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.name.as_str()).chain(self.aliases.iter().map(String::as_str))
    }
}

/// A field is required because of fields that are there.
fn check_conditions(fields: &[Field]) -> Result<(), DescriptionError> {
    let is_known = |name: &str| fields.iter().flat_map(Field::names).any(|known| known == name);
    let mut others = fields.iter().flat_map(|field| field.required_when.keys());
    others.find(|name| !is_known(name)).map_or(Ok(()), |name| Err(DescriptionError::Nobody(name.clone())))
}

impl Field {
    /// For people: when a step has to write it, and what has to be in it. Sentences, each with a space before it.
    pub fn requirements(&self) -> String {
        let mut text = self.conditions().map(|when| format!(" Required when {when}.")).unwrap_or_default();
        // Of a group, one has to be there.
        let same =
            |one: &Field, other: &Field| one.name == other.name || one.one_of.is_some() && one.one_of == other.one_of;
        let first =
            |field: &&Field| self.within.iter().find(|other| same(other, field)).is_some_and(|other| other == *field);
        let needed = self.within.iter().filter(first).filter_map(|field| {
            let group = self.within.iter().filter(|other| same(other, field));
            let names = group.map(|field| format!("`{}`", field.name)).collect::<Vec<_>>().join(" or ");
            match field.conditions() {
                Some(when) => Some(format!("{names} when {when}")),
                None => field.required.then_some(names),
            }
        });
        let needed: Vec<String> = needed.collect();
        if !needed.is_empty() {
            text.push_str(&format!(" Required in it: {}.", needed.join("; ")));
        }
        text
    }

    /// What has to be so that it has to be written.
    fn conditions(&self) -> Option<String> {
        let one = |(name, values): (&String, &Vec<Value>)| {
            let words: Vec<String> = values.iter().map(|value| format!("`{}`", bare(value))).collect();
            format!("`{name}` is {}{}", if words.len() > 1 { "one of " } else { "" }, words.join(", "))
        };
        let all: Vec<String> = self.required_when.iter().map(one).collect();
        (!all.is_empty()).then(|| all.join(" and "))
    }
}

/// A value without the quotes of a text.
fn bare(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl Type {
    fn wish(self) -> &'static str {
        match self {
            Type::Any => "anything",
            Type::Text => "text",
            Type::Integer => "a whole number",
            Type::Number => "a number",
            Type::Boolean => "`true` or `false`",
            Type::Duration => "a duration",
            Type::Map => "a map",
            Type::List => "a list",
        }
    }
}

impl Default for Types {
    fn default() -> Self {
        Types::One(Type::Any)
    }
}

impl Types {
    pub fn all(&self) -> &[Type] {
        match self {
            Types::One(one) => std::slice::from_ref(one),
            Types::Several(several) => several,
        }
    }

    fn is_any(&self) -> bool {
        self.all().is_empty() || self.all().contains(&Type::Any)
    }
}

/// For people: `text or a list`.
impl fmt::Display for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_any() {
            return f.write_str(Type::Any.wish());
        }
        let wishes: Vec<&str> = self.all().iter().map(|one| one.wish()).collect();
        f.write_str(&wishes.join(" or "))
    }
}

#[cfg(test)]
mod tests;
