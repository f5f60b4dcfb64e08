//! The commonest expression: a name and fields of it, `fetch.rows[0].id`.
//!
//! It is looked up without the engine's machine, which costs more to set up than the lookup itself.

use minijinja::Value;
use minijinja::value::ValueKind;

use super::Context;
use super::split::quoted_length;

/// Names of the engine that are no variables.
const RESERVED: [&str; 18] = [
    "and", "dict", "else", "false", "False", "if", "in", "is", "keychain", "loop", "none", "None", "not", "now", "or",
    "range", "token", "true",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Segment {
    Name(String),
    Index(usize),
}

#[derive(Debug)]
pub(super) struct Path {
    root: String,
    segments: Vec<Segment>,
}

impl Path {
    /// The path that a whole expression is, if it is one.
    pub(super) fn parse(code: &str) -> Option<Self> {
        let code = code.trim();
        let root = identifier(code);
        if root.is_empty() || RESERVED.contains(&root) || root == "True" {
            return None;
        }
        let (segments, end) = read_segments(code, root.len());
        (end == code.len()).then(|| Self { root: root.to_owned(), segments })
    }

    pub(super) fn get(&self, context: &Context) -> Value {
        let mut value = context.get(&self.root).unwrap_or(Value::UNDEFINED);
        for segment in &self.segments {
            // There is something, and it is elsewhere.
            if value.kind() == ValueKind::Invalid {
                return value;
            }
            let below = match segment {
                Segment::Name(name) => value.get_attr(name),
                Segment::Index(index) => value.get_item_by_index(*index),
            };
            // The only error is that there is nothing to look into.
            value = below.unwrap_or(Value::UNDEFINED);
        }
        value
    }
}

/// The identifier a text begins with, or nothing.
pub(super) fn identifier(code: &str) -> &str {
    let length = code.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
    if code.starts_with(|first: char| first.is_ascii_digit()) { "" } else { &code[..length] }
}

/// Constant fields and indexes from a place in code on, and where they end.
pub(super) fn read_segments(code: &str, from: usize) -> (Vec<Segment>, usize) {
    let mut segments = Vec::new();
    let mut end = from;
    loop {
        let at = skip_space(code, end);
        let segment = match code.as_bytes().get(at) {
            Some(b'.') => read_field(code, skip_space(code, at + 1)),
            Some(b'[') => read_index(code, skip_space(code, at + 1)),
            _ => None,
        };
        let Some((segment, next)) = segment else { return (segments, end) };
        segments.push(segment);
        end = next;
    }
}

pub(super) fn skip_space(code: &str, at: usize) -> usize {
    at + code[at..].bytes().take_while(u8::is_ascii_whitespace).count()
}

fn read_field(code: &str, at: usize) -> Option<(Segment, usize)> {
    let name = identifier(&code[at..]);
    if name.is_empty() { read_number(code, at) } else { Some((Segment::Name(name.to_owned()), at + name.len())) }
}

fn read_number(code: &str, at: usize) -> Option<(Segment, usize)> {
    let digits = code[at..].bytes().take_while(u8::is_ascii_digit).count();
    let index = code[at..at + digits].parse().ok()?;
    Some((Segment::Index(index), at + digits))
}

fn read_index(code: &str, at: usize) -> Option<(Segment, usize)> {
    let (segment, end) = match code.as_bytes().get(at)? {
        quote @ (b'"' | b'\'') => {
            let length = quoted_length(&code.as_bytes()[at + 1..], *quote)?;
            let name = &code[at + 1..at + 1 + length];
            if name.contains('\\') {
                return None;
            }
            (Segment::Name(name.to_owned()), at + length + 2)
        }
        _ => read_number(code, at)?,
    };
    let close = skip_space(code, end);
    (code.as_bytes().get(close) == Some(&b']')).then_some((segment, close + 1))
}
