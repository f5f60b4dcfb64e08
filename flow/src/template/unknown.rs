//! Filters, tests and functions that do not exist, found without rendering.
//!
//! The engine notices them when it comes to them, which may be in the middle of an execution. The code is read as words, as
//! for [`References`](super::References); a name that only looks like a filter is therefore possible, and what is found
//! here is a warning.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::environment::base;
use super::filters::NAMES;
use super::is_template;
use super::path::{identifier, skip_space};
use super::split::{Part, quoted_length, split};

/// Functions there are.
const FUNCTIONS: [&str; 4] = ["dict", "now", "range", "token"];

/// Words of the language that a parenthesis may follow, and `loop`, whose methods are called.
const WORDS: [&str; 24] = [
    "and",
    "as",
    "block",
    "call",
    "do",
    "elif",
    "else",
    "filter",
    "for",
    "from",
    "if",
    "import",
    "in",
    "include",
    "is",
    "loop",
    "macro",
    "not",
    "or",
    "recursive",
    "set",
    "self",
    "super",
    "with",
];

/// A name that means nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// `filter`, `test` or `function`.
    pub what: &'static str,
    pub name: String,
    /// What was probably meant.
    pub nearest: Option<&'static str>,
}

/// What a template uses and nobody knows, in order and once each.
pub fn unknown(text: &str) -> Vec<Unknown> {
    let mut found = Vec::new();
    if is_template(text) {
        for part in split(text).unwrap_or_default() {
            match part {
                Part::Text(_) => {}
                Part::Expression(code, _) | Part::Statement(code) => scan(code, &mut found),
            }
        }
    }
    let mut seen = BTreeSet::new();
    found.retain(|one| seen.insert((one.what, one.name.clone())));
    found
}

/// The same for a guard, where a text without braces is an expression.
pub fn unknown_in_guard(when: &Json) -> Vec<Unknown> {
    match when {
        Json::String(text) if is_template(text) => unknown(text),
        Json::String(text) => {
            let mut found = Vec::new();
            scan(text, &mut found);
            found
        }
        _ => Vec::new(),
    }
}

fn scan(code: &str, found: &mut Vec<Unknown>) {
    let bytes = code.as_bytes();
    let mut at = 0;
    // The last byte that is not space, and the last word if nothing but space has come since.
    let (mut before, mut word_before) = (b' ', "");
    while let Some(byte) = bytes.get(at).copied() {
        if byte == b'"' || byte == b'\'' {
            at += quoted_length(&bytes[at + 1..], byte).map_or(code.len(), |length| length + 2);
            (before, word_before) = (byte, "");
        } else if byte.is_ascii_digit() {
            at += code[at..].bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
            (before, word_before) = (b'0', "");
        } else if byte.is_ascii_alphabetic() || byte == b'_' {
            let word = identifier(&code[at..]);
            at += word.len();
            let calls = code[skip_space(code, at)..].starts_with('(');
            let after_is = word_before == "is" && word != "not";
            if before == b'|' {
                found.extend(missing("filter", word, NAMES));
            } else if after_is {
                found.extend(missing("test", word, &[]));
            } else if calls && before != b'.' && !FUNCTIONS.contains(&word) && !WORDS.contains(&word) {
                let nearest = crate::playbook::nearest(word, FUNCTIONS);
                found.push(Unknown { what: "function", name: word.to_owned(), nearest });
            }
            // `is not defined` asks for a test too.
            word_before = if word_before == "is" && word == "not" { "is" } else { word };
            before = b'a';
        } else {
            if !byte.is_ascii_whitespace() {
                (before, word_before) = (byte, "");
            }
            at += code[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
}

fn missing(what: &'static str, name: &str, known: &'static [&'static str]) -> Option<Unknown> {
    let nearest = || crate::playbook::nearest(name, known.iter().copied());
    (!exists(what, name)).then(|| Unknown { what, name: name.to_owned(), nearest: nearest() })
}

/// Whether the engine has a filter or test of the name, which it tells by a test of its own.
fn exists(what: &str, name: &str) -> bool {
    let asked = base().compile_expression_owned(format!("'{name}' is {what}"));
    asked.and_then(|asked| asked.eval(())).is_ok_and(|answer| answer.is_true())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        unknown(text).iter().map(|one| format!("{} {}", one.what, one.name)).collect()
    }

    #[test]
    fn what_nobody_knows_is_found_and_nothing_else() {
        for (text, expected) in [
            ("{{ n | nosuch }}", vec!["filter nosuch"]),
            ("{{ n | int | lowercase('x') ~ (m|upperr) }}", vec!["filter lowercase", "filter upperr"]),
            ("{{ n is defined and m is not none and k is blue }}", vec!["test blue"]),
            ("{{ nosuch(1) + now() }}", vec!["function nosuch"]),
            ("{{ a.method(1) }}{{ 'a | nosuch' }}{{ not (a) }}{{ a if (b) else (c) }}", vec![]),
            ("{% if (a) %}{% for x in range(3) %}{{ loop.cycle(1, 2) }}{% endfor %}{% endif %}", vec![]),
            ("{% raw %}{{ a | nosuch }}{% endraw %}{# {{ a | nosuch }} #}", vec![]),
            ("{{ n | nosuch }}{{ m | nosuch }}", vec!["filter nosuch"]),
            ("{{ x in (1, 2) }}{{ a is divisibleby(3) }}{{ a or (b) }}", vec![]),
            ("cat x | grep y {{ n }} | nosuch", vec![]),
            ("plain | nosuch", vec![]),
        ] {
            assert_eq!(names(text), expected, "{text}");
        }
        assert_eq!(unknown("{{ n | tojsn }}")[0].nearest, Some("tojson"));
        assert_eq!(unknown_in_guard(&Json::from("n | nosuch > 3")).len(), 1);
        assert!(unknown_in_guard(&Json::from(true)).is_empty());
    }

    #[test]
    fn every_filter_that_is_named_exists() {
        for name in NAMES {
            assert!(exists("filter", name), "{name}");
        }
        assert!(exists("test", "defined") && !exists("test", "nosuch") && !exists("filter", "nosuch"));
    }
}
