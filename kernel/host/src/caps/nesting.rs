//! How often a value is escaped that is put into JSON.
//!
//! A document is often a text within another, and a value in it stands between quotes that are escaped themselves: written
//! for the outer text alone, a quote in the value would end the inner one. How deep a place is, the quotes around it tell:
//! those of the document have an even number of backslashes before them, those of a text within it have one more for each
//! two, and so on. A quote that nobody closes before an outer one does is a letter of its text, and no depth.
//!
//! Invariant: what is escaped as often as this says is found again by `noetl_scrub`, also where a server sends it back as a
//! text of its own JSON.

/// Deeper texts are escaped as those of this depth: a value doubles with each.
const DEEPEST: u32 = 2;
/// How far the quote is looked for that closes a text.
const NEAR: usize = 4 << 10;

/// How many texts are open, one in the other, at a place that was come to.
#[derive(Debug, Default)]
pub(crate) struct Nesting {
    open: u32,
}

impl Nesting {
    /// Goes on over text that stays as it is.
    pub(crate) fn pass(&mut self, text: &str) {
        for level in quotes(text.as_bytes()) {
            if level <= self.open {
                self.open = level - 1;
            } else if level == self.open + 1 {
                self.open = level;
            }
        }
    }

    /// How often a value is escaped here, with this text after it.
    pub(crate) fn times(&self, after: &str) -> u32 {
        if self.open < 2 {
            return 1;
        }
        let near = &after.as_bytes()[..after.len().min(NEAR)];
        let closed = quotes(near).find(|level| *level <= self.open);
        closed.unwrap_or(self.open).min(DEEPEST)
    }
}

/// The levels of the quotes in a text: 1 for one of the document itself.
fn quotes(text: &[u8]) -> impl Iterator<Item = u32> {
    let mut backslashes = 0_u32;
    text.iter().filter_map(move |byte| {
        let before = std::mem::take(&mut backslashes);
        match byte {
            b'\\' => {
                backslashes = before.saturating_add(1);
                None
            }
            b'"' => Some(before.trailing_ones() + 1),
            _ => None,
        }
    })
}

/// A value as it is between the quotes of a JSON text, or of a text in that.
pub(crate) fn escaped(value: &str, times: u32) -> String {
    (0..times).fold(value.to_owned(), |text, _| {
        let quoted = serde_json::Value::from(text).to_string();
        quoted[1..quoted.len() - 1].to_owned()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const HERE: &str = "HERE";

    fn filled(document: &str, value: &str) -> String {
        let (before, after) = document.split_once(HERE).expect("a place");
        let mut nesting = Nesting::default();
        nesting.pass(before);
        format!("{before}{}{after}", escaped(value, nesting.times(after)))
    }

    #[test]
    fn a_value_is_whole_again_wherever_it_was_put() {
        let value = "a\"b\\c\nd";
        let plain = json!({"x\\": "\"", "token": HERE, "more": 1}).to_string();
        assert_eq!(serde_json::from_str::<Value>(&filled(&plain, value)).expect("JSON")["token"], value);
        let text = json!({"x": "\\\"", "body": plain, "more": "y"}).to_string();
        let outer: Value = serde_json::from_str(&filled(&text, value)).expect("JSON");
        let inner: Value = serde_json::from_str(outer["body"].as_str().expect("text")).expect("JSON within");
        assert_eq!(inner["token"], value);
    }

    #[test]
    fn a_quote_that_is_a_letter_opens_nothing() {
        for (said, expected) in [
            ("5\" and HERE", "5\" and a\"b"),
            ("\"x\" and HERE", "\"x\" and a\"b"),
            ("HERE \"x\"", "a\"b \"x\""),
            ("say \"HERE\" now", "say \"a\\\"b\" now"),
        ] {
            let document = json!({"said": said, "then": "x"}).to_string();
            let read: Value = serde_json::from_str(&filled(&document, "a\"b")).expect("JSON");
            assert_eq!(read["said"], expected);
        }
    }

    #[test]
    fn deep_texts_and_no_documents_have_an_end() {
        let deep = (0..4).fold(HERE.to_owned(), |text, _| json!({"t": text}).to_string());
        let (before, after) = deep.split_once(HERE).expect("a place");
        let mut nesting = Nesting::default();
        nesting.pass(before);
        assert_eq!((nesting.open, nesting.times(after)), (4, DEEPEST));
        assert_eq!(Nesting::default().times(""), 1);
    }
}
