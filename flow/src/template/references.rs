//! What a template refers to, found without rendering it.
//!
//! A step is sent only what its templates refer to, so leaving something out would render as nothing, silently. The
//! code is therefore read as words: every identifier that could be a variable is taken for one, with the constant
//! fields after it. Names of a template's own loops and the like are taken for variables too, which costs a lookup in
//! vain at most. (The engine's own analysis leaves out sliced variables, and those that are read while they are
//! assigned.)

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::is_template;
use super::path::{Segment, identifier, read_segments, skip_space};
use super::split::{Part, quoted_length, split};

/// Operators and literals. Words of statements are not among them: `filter` and `set` are fine names for variables.
const WORDS: [&str; 13] =
    ["and", "else", "false", "False", "if", "in", "is", "none", "None", "not", "or", "true", "True"];

/// Bytes of a text in a program that can be a name of something else.
const LONGEST_NAME: usize = 128;

/// What is referred to, without the `ctx.` in front of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct References {
    /// A name and fields of it as far as they are constant: `fetch`, `rows`, `0`. Everything below is meant.
    pub paths: BTreeSet<Vec<String>>,
    /// The whole context is used, or a part of it that is not known before rendering.
    pub whole_context: bool,
}

impl References {
    pub fn add_text(&mut self, text: &str) {
        if !is_template(text) {
            return;
        }
        for part in split(text).unwrap_or_default() {
            match part {
                Part::Text(_) => {}
                Part::Expression(code, _) | Part::Statement(code) => self.add_code(code),
            }
        }
    }

    /// Every text in a JSON value, names of fields included.
    pub fn add_json(&mut self, json: &Json) {
        match json {
            Json::String(text) => self.add_text(text),
            Json::Array(items) => items.iter().for_each(|item| self.add_json(item)),
            Json::Object(fields) => {
                for (name, field) in fields {
                    self.add_text(name);
                    self.add_json(field);
                }
            }
            _ => {}
        }
    }

    /// A guard, where a text without braces is an expression.
    pub fn add_guard(&mut self, when: &Json) {
        match when {
            Json::String(text) if !is_template(text) => self.add_code(text),
            other => self.add_json(other),
        }
    }

    /// Texts that a program has in quotes: names of what it may look for in the context. Most of them are something else, which
    /// costs a lookup in vain.
    pub fn add_quoted(&mut self, code: &str) {
        let mut before = None;
        for word in code.split_inclusive(['"', '\'']) {
            let (word, quote) = word.split_at(word.len() - word.ends_with(['"', '\'']) as usize);
            if before == Some(quote) && !quote.is_empty() && (1..=LONGEST_NAME).contains(&word.len()) {
                self.paths.insert(vec![word.to_owned()]);
            }
            before = Some(quote);
        }
    }

    pub fn merge(&mut self, other: &References) {
        self.paths.extend(other.paths.iter().cloned());
        self.whole_context |= other.whole_context;
    }

    /// Names at the top level, in order and once each.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let mut last = None;
        self.paths.iter().filter_map(|path| path.first().map(String::as_str)).filter(move |name| {
            let new = last != Some(*name);
            last = Some(*name);
            new
        })
    }

    fn add_code(&mut self, code: &str) {
        let mut at = 0;
        // The last byte that is not space, and whether the last word was `is`: what follows is no variable then.
        let (mut before, mut after_is) = (b' ', false);
        while let Some(byte) = code.as_bytes().get(at).copied() {
            if byte == b'"' || byte == b'\'' {
                at += quoted_length(&code.as_bytes()[at + 1..], byte).map_or(code.len(), |length| length + 2);
                before = byte;
            } else if byte.is_ascii_digit() {
                // Takes the letters of `1e5` and `0xff` along.
                at += code[at..].bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
                before = b'0';
            } else if byte.is_ascii_alphabetic() || byte == b'_' {
                let word = identifier(&code[at..]);
                let end = at + word.len();
                let variable = before != b'.' && before != b'|' && !after_is && !WORDS.contains(&word);
                after_is = word == "is" || (after_is && word == "not");
                at = if variable { self.add_variable(code, word, end) } else { end };
                before = b'a';
            } else {
                if !byte.is_ascii_whitespace() {
                    (before, after_is) = (byte, false);
                }
                at += code[at..].chars().next().map_or(1, char::len_utf8);
            }
        }
    }

    /// Reads the fields after a variable and returns where they end.
    fn add_variable(&mut self, code: &str, root: &str, from: usize) -> usize {
        let (segments, end) = read_segments(code, from);
        let mut path: Vec<String> = vec![root.to_owned()];
        path.extend(segments.into_iter().map(|segment| match segment {
            Segment::Name(name) => name,
            Segment::Index(index) => index.to_string(),
        }));
        let next = skip_space(code, end);
        let follows = |text: &str| code[next..].starts_with(text);
        if follows("(") {
            // The last is the name of a function or method.
            path.pop();
        } else if path.len() == 1 && follows("=") && !follows("==") {
            // The name of an argument, or of a variable that is assigned.
            path.pop();
        }
        if path.first().is_some_and(|name| name == "ctx") {
            path.remove(0);
            self.whole_context |= path.is_empty();
        }
        if !path.is_empty() {
            self.paths.insert(path);
        }
        end
    }
}
