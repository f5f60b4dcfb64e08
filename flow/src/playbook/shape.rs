//! What may stand where, and the check of a document against it.
//!
//! One table ([`super::keys`]) says which keys there are, what their values look like and what they are for. The check
//! here and the schema for editors ([`super::schema`]) both read that table, so they cannot disagree. What a table
//! cannot say (a step that an arc leads to must exist) is checked where the model is built.
//!
//! A key without a value counts as left out.

use serde_json::Value as Json;

use super::duration;
use super::problem::{Place, Problems, nearest};
use super::yaml::{Node, Value};
use crate::template::is_template;

/// A map with known keys.
pub(super) struct Object {
    /// Name of its definition in the schema.
    pub name: &'static str,
    pub about: &'static str,
    pub keys: &'static [Key],
    pub others: Others,
}

pub(super) struct Key {
    pub name: &'static str,
    pub shape: Shape,
    pub about: &'static str,
    pub status: Status,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Optional,
    Required,
    /// Accepted, and a warning says what to do instead.
    Unused(&'static str),
    /// An error says what to do instead.
    Refused(&'static str),
}

/// What becomes of keys that are not in the table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Others {
    Unknown,
    /// They belong to somebody else, who reads them.
    Kept,
    /// Likewise, unless they look like one of the known keys.
    KeptUnlessSimilar,
}

pub(super) enum Shape {
    Any,
    Text,
    /// Text that holds a template.
    Template,
    /// A boolean, or an expression with or without its braces.
    Guard,
    /// Text, number or boolean, taken as text.
    Word,
    Bool,
    /// A whole number from 1 to 4294967295.
    Count,
    /// The same, in quotes.
    Digits,
    /// A number from 0 to 1.
    Fraction,
    /// Seconds, or text with a unit.
    Duration,
    Choice(&'static [&'static str]),
    Map,
    List(&'static Shape),
    Object(&'static Object),
    /// `{kind: ...}`, or `{label: {kind: ...}}`.
    Task(&'static Object),
    OneOf(&'static [Shape]),
}

impl Shape {
    pub fn check(&self, node: &Node, problems: &mut Problems) {
        match self {
            Shape::List(item) if node.scalar().is_none() && !node.is_map() => {
                node.items().iter().for_each(|node| item.check(node, problems));
            }
            Shape::Object(object) if node.is_map() => object.check(node, problems),
            Shape::Task(object) if node.is_map() => check_task(object, node, problems),
            Shape::OneOf(shapes) => match shapes.iter().find(|shape| shape.fits(node)) {
                Some(shape) => shape.check(node, problems),
                None => problems.error(node.place, self.complaint(node)),
            },
            Shape::Choice(words) => {
                if !self.fits(node) {
                    let word = node.text().unwrap_or_default();
                    problems.unknown_name(node.place, word, words.iter().copied(), self.complaint(node));
                }
            }
            _ if self.fits(node) => {}
            _ => problems.error(node.place, self.complaint(node)),
        }
    }

    /// Whether the value is of the right kind, its contents left aside.
    fn fits(&self, node: &Node) -> bool {
        let scalar = node.scalar();
        match self {
            Shape::Any => true,
            Shape::Text => node.text().is_some(),
            Shape::Template => node.text().is_some_and(is_template),
            Shape::Guard => match scalar {
                Some(Json::String(text)) => !text.trim().is_empty(),
                Some(scalar) => scalar.is_boolean(),
                None => false,
            },
            Shape::Word => scalar.is_some_and(|scalar| !scalar.is_null()),
            Shape::Bool => scalar.is_some_and(Json::is_boolean),
            Shape::Count => count(node).is_some(),
            Shape::Digits => {
                node.text().and_then(|text| text.trim().parse::<u32>().ok()).is_some_and(|number| number > 0)
            }
            Shape::Fraction => scalar.and_then(Json::as_f64).is_some_and(|number| (0.0..=1.0).contains(&number)),
            Shape::Duration => scalar.is_some_and(|scalar| duration::milliseconds(scalar).is_some()),
            Shape::Choice(words) => node.text().is_some_and(|text| words.contains(&text)),
            Shape::Map | Shape::Object(_) | Shape::Task(_) => node.is_map(),
            Shape::List(_) => matches!(node.value, Value::List(_)),
            Shape::OneOf(shapes) => shapes.iter().any(|shape| shape.fits(node)),
        }
    }

    fn complaint(&self, node: &Node) -> String {
        let found = match &node.value {
            Value::Scalar(Json::String(text)) if text.chars().count() <= 40 && !text.contains('\n') => {
                format!("`{text}`")
            }
            Value::Scalar(Json::String(_)) => "text".to_owned(),
            Value::Scalar(Json::Null) => "nothing".to_owned(),
            Value::Scalar(scalar) => format!("`{scalar}`"),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a map".to_owned(),
        };
        format!("expected {}, found {found}", self.wish())
    }

    fn wish(&self) -> String {
        match self {
            Shape::Any => "anything".to_owned(),
            Shape::Text => "text".to_owned(),
            Shape::Template => "a template (`{{ ... }}`)".to_owned(),
            Shape::Guard => "an expression or a boolean".to_owned(),
            Shape::Word => "text or a number".to_owned(),
            Shape::Bool => "`true` or `false`".to_owned(),
            Shape::Count | Shape::Digits => "a whole number of at least 1".to_owned(),
            Shape::Fraction => "a number from 0 to 1".to_owned(),
            Shape::Duration => "seconds, or a duration such as `500ms`, `2s`, `5m`, `1h`".to_owned(),
            Shape::Choice(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
                words.join(" or ")
            }
            Shape::Map | Shape::Object(_) => "a map".to_owned(),
            Shape::Task(_) => "a tool (a map with `kind`)".to_owned(),
            Shape::List(_) => "a list".to_owned(),
            Shape::OneOf(shapes) => {
                let mut wishes: Vec<String> = Vec::new();
                for wish in shapes.iter().map(Shape::wish) {
                    if !wishes.contains(&wish) {
                        wishes.push(wish);
                    }
                }
                wishes.join(" or ")
            }
        }
    }
}

/// The number of a [`Shape::Count`].
pub(super) fn count(node: &Node) -> Option<u32> {
    let number = node.scalar().and_then(Json::as_u64)?;
    u32::try_from(number).ok().filter(|number| *number > 0)
}

/// The label and the tool of `{label: {kind: ...}}`.
pub(super) fn labelled(node: &Node) -> Option<(&str, &Node)> {
    match node.entries() {
        [(key, tool)] if key.name != "kind" && tool.is_map() => Some((&key.name, tool)),
        _ => None,
    }
}

fn check_task(object: &Object, node: &Node, problems: &mut Problems) {
    match labelled(node) {
        Some((_, tool)) => object.check(tool, problems),
        None => object.check(node, problems),
    }
}

impl Object {
    pub fn check(&self, node: &Node, problems: &mut Problems) {
        for (key, value) in node.entries() {
            match self.keys.iter().find(|known| known.name == key.name) {
                Some(known) => known.check(key.place, value, problems),
                None => self.check_other(key.place, &key.name, problems),
            }
        }
        for required in self.keys.iter().filter(|key| key.status == Status::Required) {
            if node.get(required.name).is_none() {
                let place = node.entries().iter().find(|(key, _)| key.name == required.name);
                let place = place.map_or(node.place, |(key, _)| key.place);
                problems.error(place, format!("`{}` is missing: {}", required.name, required.about));
            }
        }
    }

    fn check_other(&self, place: Place, name: &str, problems: &mut Problems) {
        let known = || self.keys.iter().filter(|key| !matches!(key.status, Status::Refused(_))).map(|key| key.name);
        match self.others {
            Others::Unknown => problems.unknown_key(place, name, known()),
            Others::Kept => {}
            Others::KeptUnlessSimilar => {
                if nearest(name, known()).is_some() {
                    problems.unknown_key(place, name, known());
                }
            }
        }
    }
}

impl Key {
    fn check(&self, place: Place, value: &Node, problems: &mut Problems) {
        match self.status {
            Status::Unused(instead) => problems.warning(place, format!("`{}` has no effect; {instead}", self.name)),
            Status::Refused(instead) => problems.error(place, format!("`{}` is not supported; {instead}", self.name)),
            Status::Optional | Status::Required if value.is_null() => {}
            Status::Optional | Status::Required => self.shape.check(value, problems),
        }
    }
}
