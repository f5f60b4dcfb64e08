//! What stands for a secret until a request leaves: `NOETL~SECRET~<alias>~<field>~END`.
//!
//! A placeholder is text like any other to whoever carries it: it goes through templates, guests, events and logs. The
//! driver that makes the connection finds it and puts the value in its place, and no one else can. So it is made of
//! characters that survive being written into an address, a form or JSON, and nothing else is ever taken for one: in the
//! names every byte but letters, digits, `_` and `-` is written as `.XX`, and only that one way of writing a name is read.
//!
//! Some writers of forms encode `~` as well, so it is found as `%7E` too.

use std::ops::Range;

const BEGIN: &str = "NOETL";
const SECRET: &str = "SECRET";
const END: &str = "END";

/// A placeholder in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Where in the text.
    pub at: Range<usize>,
    pub alias: String,
    pub field: String,
}

/// The placeholder of one field of a credential.
pub fn write(alias: &str, field: &str) -> String {
    let mut text = String::with_capacity(BEGIN.len() + SECRET.len() + END.len() + alias.len() + field.len() + 4);
    text.push_str(BEGIN);
    text.push('~');
    text.push_str(SECRET);
    for name in [alias, field] {
        text.push('~');
        write_name(name, &mut text);
    }
    text.push('~');
    text.push_str(END);
    text
}

fn write_name(name: &str, text: &mut String) {
    for byte in name.bytes() {
        if is_plain(byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!(".{byte:02X}"));
        }
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// Whether a text has something in it that could be a placeholder; far cheaper than looking.
pub fn may_have(text: &str) -> bool {
    text.contains(BEGIN)
}

/// All placeholders of a text, in order.
pub fn find(text: &str) -> Vec<Found> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find(BEGIN).map(|at| from + at) {
        match read(text, start) {
            Some(one) => {
                from = one.at.end;
                found.push(one);
            }
            None => from = start + BEGIN.len(),
        }
    }
    found
}

/// The placeholder that begins here.
fn read(text: &str, start: usize) -> Option<Found> {
    let mut rest = Rest { text, at: start };
    rest.word(BEGIN)?;
    rest.separator()?;
    rest.word(SECRET)?;
    rest.separator()?;
    let alias = rest.name()?;
    rest.separator()?;
    let field = rest.name()?;
    rest.separator()?;
    rest.word(END)?;
    Some(Found { at: start..rest.at, alias, field })
}

struct Rest<'t> {
    text: &'t str,
    at: usize,
}

impl Rest<'_> {
    fn word(&mut self, word: &str) -> Option<()> {
        self.text[self.at..].starts_with(word).then(|| self.at += word.len())
    }

    fn separator(&mut self) -> Option<()> {
        self.word("~").or_else(|| self.word("%7E")).or_else(|| self.word("%7e"))
    }

    /// A name as [`write`] writes it, and not empty.
    fn name(&mut self) -> Option<String> {
        let mut bytes = Vec::new();
        while let Some(byte) = self.text.as_bytes().get(self.at).copied() {
            if is_plain(byte) {
                bytes.push(byte);
                self.at += 1;
            } else if byte == b'.' {
                let digits = self.text.get(self.at + 1..self.at + 3)?;
                let upper = |digit: u8| matches!(digit, b'0'..=b'9' | b'A'..=b'F');
                let escaped = digits.bytes().all(upper).then(|| u8::from_str_radix(digits, 16).ok())??;
                if is_plain(escaped) {
                    return None;
                }
                bytes.push(escaped);
                self.at += 3;
            } else {
                break;
            }
        }
        String::from_utf8(bytes).ok().filter(|name| !name.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_placeholder_is_written_as_agreed() {
        assert_eq!(write("github", "token"), "NOETL~SECRET~github~token~END");
        assert_eq!(write("a b/ü", "x.y"), "NOETL~SECRET~a.20b.2F.C3.BC~x.2Ey~END");
    }

    #[test]
    fn nothing_but_a_placeholder_is_taken_for_one() {
        for text in [
            "",
            "NOETL",
            "NOETL~SECRET",
            "NOETL~SECRET~a~b",
            "NOETL~SECRET~a~b~EN",
            "NOETL~SECRET~~b~END",
            "NOETL~SECRET~a~~END",
            "NOETL~SECRET~a~END",
            "NOETL~SECRET~a b~c~END",
            "NOETL~SECRET~a.2~c~END",
            "NOETL~SECRET~a.61~c~END",
            "NOETL~SECRET~a.2f~c~END",
            "NOETL~SECRET~a.FF~c~END",
            "noetl~secret~a~b~end",
            "NOETL-SECRET-a-b-END",
            "NOETL~SECRET~ü~b~END",
            "NOETL~SECRET~a.é~b~END",
        ] {
            assert_eq!(find(text), [], "{text}");
        }
    }

    #[test]
    fn they_are_found_side_by_side_in_text_and_in_forms() {
        let text = format!("?a={}&b={}x{}", write("one", "t"), write("two", "t"), write("three", "t"));
        let aliases: Vec<_> = find(&text).into_iter().map(|found| found.alias).collect();
        assert_eq!(aliases, ["one", "two", "three"]);
        assert_eq!(find("NOETL%7ESECRET%7Ea%7Eb%7eEND")[0].field, "b");
        assert_eq!(find("NOETL~SECRET~a~NOETL~SECRET~b~c~END").len(), 1, "a broken one does not hide the next");
    }

    proptest! {
        #[test]
        fn what_is_written_is_found(before in "[^N]{0,9}", alias in ".{1,20}", field in ".{1,20}", after in ".{0,9}") {
            let text = format!("{before}{}{after}", write(&alias, &field));
            let found = find(&text);
            prop_assert_eq!(&found[0].alias, &alias);
            prop_assert_eq!(&found[0].field, &field);
            prop_assert_eq!(&text[found[0].at.clone()], write(&alias, &field));
        }

        #[test]
        fn it_survives_the_encodings_it_is_carried_through(alias in ".{1,20}", field in ".{1,20}") {
            let written = write(&alias, &field);
            prop_assert!(written.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)));
            prop_assert_eq!(serde_json::to_string(&written).expect("text"), format!("\"{written}\""));
        }

        #[test]
        fn any_text_is_survived_and_what_is_found_is_written_the_same(text in "(NOETL|~|%7E|SECRET|END|[a.2F é]){0,20}") {
            for found in find(&text) {
                let plain = text[found.at.clone()].replace("%7E", "~").replace("%7e", "~");
                prop_assert_eq!(plain, write(&found.alias, &found.field));
            }
        }
    }
}
