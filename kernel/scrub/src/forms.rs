//! The ways one value is written.
//!
//! A secret that went out in an address or in a header comes back as whoever echoes it writes it: in JSON, in an address,
//! in base64, alone or as a part of something longer. Each of these is one more text to look for. Encoders of addresses
//! differ in what they leave as it is, so there are several of them; base64 differs by where in its groups of three a
//! value begins, and what is looked for there are the letters that the value alone decides. Pages write entities, dumps
//! write hexadecimal digits, and writers of JSON differ in what they escape by number.
//!
//! Some of these are the value itself, written as its place needs it: those are *direct*, and where data goes on they can be
//! replaced by what stands for the value. What is computed of it (base64, digits) cannot.
//!
//! All of it is held in memory for as long as the value is known, so of a long value only the usual forms are made.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::pieces;

/// All but what never has to be encoded.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
/// The same with the slash left alone.
const SEGMENTS: &AsciiSet = &UNRESERVED.remove(b'/');
/// What forms encode, beside the space that becomes a plus.
const FORM: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'*');
/// A component, as scripts in browsers encode it.
const COMPONENT: &AsciiSet = &UNRESERVED.remove(b'!').remove(b'*').remove(b'\'').remove(b'(').remove(b')');
/// What is encoded in a query, in a path and in the part before the host, when a whole address is read.
const QUERY: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>').add(b'\'');
const PATH: &AsciiSet = &QUERY.remove(b'\'').add(b'?').add(b'`').add(b'{').add(b'}').add(b'^');
const USER: &AsciiSet =
    &PATH.add(b'/').add(b':').add(b';').add(b'=').add(b'@').add(b'[').add(b'\\').add(b']').add(b'|');

const ALL_SETS: &[&AsciiSet] = &[UNRESERVED, SEGMENTS, FORM, COMPONENT, QUERY, PATH, USER];
const USUAL_SETS: &[&AsciiSet] = &[UNRESERVED, SEGMENTS, FORM, QUERY];

/// Longer values have the usual forms alone: nobody puts a document into a page or into an address within an address.
const LONGEST_SPELT: usize = 1 << 10;
/// Shorter ones fit into one line of base64, and longer ones are found line by line in what is left of them.
const WRAPPED_FROM: usize = 48;
const LONGEST_WRAPPED: usize = 2 << 10;

/// Texts that are looked for, each with whether it is direct.
#[derive(Debug, Default)]
pub struct Forms(BTreeMap<String, bool>);

impl Forms {
    fn direct(&mut self, form: String) {
        self.0.insert(form, true);
    }

    fn computed(&mut self, form: String) {
        self.0.entry(form).or_insert(false);
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, bool)> {
        self.0.iter().map(|(form, direct)| (form.as_str(), *direct))
    }

    /// Of all of them.
    pub fn bytes(&self) -> usize {
        self.0.keys().map(String::len).sum()
    }
}

/// Every text that is looked for where this value must not be; the value itself among them.
pub fn of(value: &str) -> Forms {
    let mut forms = Forms::default();
    forms.direct(value.to_owned());
    in_json(value, &mut forms);
    if value.len() > LONGEST_SPELT {
        in_addresses(value, USUAL_SETS, &mut forms);
    } else {
        in_addresses(value, ALL_SETS, &mut forms);
        in_numbers(value, &mut forms);
        in_addresses_twice(value, &mut forms);
        in_pages(value, &mut forms);
        for capital in [false, true] {
            forms.computed(bytes_spelt(value, capital, "%", ""));
            forms.computed(bytes_spelt(value, capital, "", ":"));
        }
    }
    in_base64(value.as_bytes(), &mut forms);
    in_digits(value, &mut forms);
    forms
}

/// The same; of a very long value those of its parts.
pub fn of_parts(value: &str) -> Forms {
    let mut forms = Forms::default();
    for part in pieces::large(value) {
        forms.0.extend(of(part).0.into_iter().map(|(form, direct)| (form, direct && part == value)));
    }
    forms
}

/// The same, and of a long value what is left of it where it was cut or broken into lines.
pub fn of_all_parts(value: &str) -> Forms {
    let mut forms = of_parts(value);
    in_lines(value, &mut forms);
    for part in pieces::small(value) {
        forms.computed(part.to_owned());
        in_base64(part.as_bytes(), &mut forms);
        in_digits(part, &mut forms);
    }
    forms
}

/// The digits of every byte, as dumps and databases show them.
fn in_digits(value: &str, forms: &mut Forms) {
    for capital in [false, true] {
        forms.computed(bytes_spelt(value, capital, "", ""));
    }
}

/// Two digits for each byte, with something before each or between them.
fn bytes_spelt(value: &str, capital: bool, before: &str, between: &str) -> String {
    let digits = |byte: u8| if capital { format!("{before}{byte:02X}") } else { format!("{before}{byte:02x}") };
    value.bytes().map(digits).collect::<Vec<_>>().join(between)
}

/// Base64 in lines, as mails, keys and databases have it; the end of a line is perhaps escaped.
fn in_lines(value: &str, forms: &mut Forms) {
    if !(WRAPPED_FROM..=LONGEST_WRAPPED).contains(&value.len()) {
        return;
    }
    let letters = STANDARD.encode(value);
    for width in [76, 64].into_iter().filter(|width| letters.len() > *width) {
        let lines: Vec<&str> =
            (0..letters.len()).step_by(width).map(|start| &letters[start..letters.len().min(start + width)]).collect();
        for end in ["\n", "\r\n", "\\n", "\\r\\n"] {
            forms.computed(lines.join(end));
        }
    }
}

type Picks = fn(char) -> bool;

fn is_named(letter: char) -> bool {
    matches!(letter, '&' | '<' | '>' | '"' | '\'')
}

/// What a template of a page makes of it: all of them write `&` and `<`, some quotes, a few every letter beyond ASCII.
fn in_pages(value: &str, forms: &mut Forms) {
    let least: Picks = |letter| matches!(letter, '&' | '<' | '>');
    let with_double: Picks = |letter| matches!(letter, '&' | '<' | '>' | '"');
    for quote in ["&#39;", "&#x27;", "&#039;", "&apos;"] {
        for double in ["&quot;", "&#34;", "&#x22;"] {
            forms.computed(spelt(value, is_named, |letter| named(letter, quote, double)));
        }
    }
    for picks in [least, with_double] {
        forms.computed(spelt(value, picks, |letter| named(letter, "'", "&quot;")));
    }
    let special: Picks = |letter| is_named(letter) || !letter.is_ascii();
    let every: Picks = |_| true;
    for picks in [is_named as Picks, special, every] {
        forms.computed(spelt(value, picks, |letter| format!("&#{};", u32::from(letter))));
        forms.computed(spelt(value, picks, |letter| format!("&#x{:x};", u32::from(letter))));
        forms.computed(spelt(value, picks, |letter| format!("&#x{:X};", u32::from(letter))));
    }
}

fn named(letter: char, quote: &str, double: &str) -> String {
    match letter {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => double.to_owned(),
        '\'' => quote.to_owned(),
        other => other.to_string(),
    }
}

/// With some of its letters written otherwise.
fn spelt(value: &str, picks: Picks, write: impl Fn(char) -> String) -> String {
    let mut text = String::with_capacity(value.len());
    for letter in value.chars() {
        if picks(letter) {
            text.push_str(&write(letter));
        } else {
            text.push(letter);
        }
    }
    text
}

fn in_json(value: &str, forms: &mut Forms) {
    let once = escaped(value);
    forms.direct(once.replace('/', "\\/"));
    forms.direct(ascii(&once));
    forms.direct(once.clone());
    // Two that are common: Gson has the first by default, System.Text.Json the second.
    let pages: Picks = |letter| matches!(letter, '<' | '>' | '&' | '\'' | '=');
    let scripts: Picks =
        |letter| matches!(letter, '<' | '>' | '&' | '\'' | '"' | '+' | '`' | '\u{7f}') || !letter.is_ascii();
    for capital in [false, true] {
        forms.direct(spelt_in_json(value, pages, capital));
        forms.direct(spelt_in_json(value, scripts, capital));
    }
    // JSON is often a text within JSON, and then sent back as a text of an answer.
    let twice = escaped(&once);
    forms.computed(escaped(&twice));
    forms.computed(twice);
}

/// With letters as `\u00XX`, which stay so in text that nobody reads as JSON: writers that think of pages escape what has a
/// meaning there, careful ones everything but letters and digits, and some everything.
fn in_numbers(value: &str, forms: &mut Forms) {
    let marks: Picks = |letter| matches!(letter, '<' | '>' | '&');
    let quotes: Picks = |letter| matches!(letter, '<' | '>' | '&' | '\'');
    let special: Picks = |letter| !letter.is_ascii_alphanumeric();
    let unusual: Picks = |letter| is_named(letter) || letter == '/' || letter == '\\' || !letter.is_ascii();
    let every: Picks = |_| true;
    for capital in [false, true] {
        for picks in [marks, quotes] {
            let text = spelt_in_json(value, picks, capital);
            forms.direct(ascii(&text));
            forms.direct(text);
        }
        for picks in [unusual, special, every] {
            forms.direct(spelt_in_json(value, picks, capital));
        }
    }
}

/// With some letters by their number, and what JSON has to escape in its usual way.
fn spelt_in_json(value: &str, picks: Picks, capital: bool) -> String {
    let mut text = String::with_capacity(value.len());
    for letter in value.chars() {
        if picks(letter) {
            text.push_str(&numbered(letter, capital));
        } else {
            text.push_str(&escaped(letter.encode_utf8(&mut [0; 4])));
        }
    }
    text
}

fn numbered(letter: char, capital: bool) -> String {
    let unit = |unit: &u16| if capital { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") };
    letter.encode_utf16(&mut [0; 2]).iter().map(unit).collect()
}

/// As it is between the quotes of a JSON text.
fn escaped(value: &str) -> String {
    let quoted = Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// With everything beyond ASCII as `\uXXXX`.
fn ascii(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for letter in json.chars() {
        if letter.is_ascii() {
            text.push(letter);
        } else {
            text.push_str(&numbered(letter, false));
        }
    }
    text
}

fn in_addresses(value: &str, sets: &[&'static AsciiSet], forms: &mut Forms) {
    for &set in sets {
        let encoded = utf8_percent_encode(value, set).to_string();
        forms.direct(encoded.replace("%20", "+"));
        forms.direct(small(&encoded));
        forms.direct(encoded);
    }
}

/// In an address within an address.
fn in_addresses_twice(value: &str, forms: &mut Forms) {
    for &set in ALL_SETS {
        let encoded = utf8_percent_encode(value, set).to_string();
        for once in [&small(&encoded), &encoded] {
            forms.computed(utf8_percent_encode(once, UNRESERVED).to_string());
        }
    }
}

/// With small letters in the codes.
fn small(encoded: &str) -> String {
    let mut text = String::with_capacity(encoded.len());
    let mut code = 0;
    for letter in encoded.chars() {
        text.push(if code > 0 { letter.to_ascii_lowercase() } else { letter });
        code = if letter == '%' { 2 } else { usize::saturating_sub(code, 1) };
    }
    text
}

fn in_base64(value: &[u8], forms: &mut Forms) {
    for whole in [STANDARD.encode(value), URL_SAFE.encode(value), STANDARD_NO_PAD.encode(value)] {
        forms.computed(whole);
    }
    for before in 0..3 {
        let mut bytes = vec![0; before];
        bytes.extend_from_slice(value);
        // Six bits a letter: what begins before the value or ends after it is not looked for.
        let letters = (before * 8).div_ceil(6)..bytes.len() * 8 / 6;
        for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            if let Some(form) = engine.encode(&bytes).get(letters.clone()) {
                forms.computed(form.to_owned());
            }
        }
    }
}

#[cfg(test)]
#[path = "forms_tests.rs"]
mod tests;
