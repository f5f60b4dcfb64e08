//! The ways one value is written.
//!
//! A secret that went out in an address or in a header comes back as whoever echoes it writes it: in JSON, in an address,
//! in base64, alone or as a part of something longer. Each of these is one more text to look for. Encoders of addresses
//! differ in what they leave as it is, so there are several of them; base64 differs by where in its groups of three a
//! value begins, and what is looked for there are the letters that the value alone decides. Pages write entities, dumps
//! write hexadecimal digits, and writers of JSON differ in what they escape by number.
//!
//! All of it is held in memory for as long as the value is known, so of a long value only the usual forms are made.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

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
const LONGEST_SPELT: usize = 256;

/// Every text that is looked for where this value must not be; the value itself among them.
pub fn of(value: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::from([value.to_owned()]);
    in_json(value, &mut forms);
    in_base64(value.as_bytes(), &mut forms);
    forms.extend([hex(value, false), hex(value, true)]);
    if value.len() > LONGEST_SPELT {
        in_addresses(value, USUAL_SETS, &mut forms);
        return forms;
    }
    in_addresses(value, ALL_SETS, &mut forms);
    in_addresses_twice(value, &mut forms);
    in_numbers(value, &mut forms);
    in_pages(value, &mut forms);
    forms
}

/// The digits of every byte, as dumps and databases show them.
fn hex(value: &str, capital: bool) -> String {
    value.bytes().map(|byte| if capital { format!("{byte:02X}") } else { format!("{byte:02x}") }).collect()
}

type Picks = fn(char) -> bool;

fn is_named(letter: char) -> bool {
    matches!(letter, '&' | '<' | '>' | '"' | '\'')
}

/// What a template of a page makes of it: all of them write `&` and `<`, some quotes, a few every letter beyond ASCII.
fn in_pages(value: &str, forms: &mut BTreeSet<String>) {
    let least: Picks = |letter| matches!(letter, '&' | '<' | '>');
    let with_double: Picks = |letter| matches!(letter, '&' | '<' | '>' | '"');
    for quote in ["&#39;", "&#x27;", "&#039;", "&apos;"] {
        for double in ["&quot;", "&#34;", "&#x22;"] {
            forms.insert(spelt(value, is_named, |letter| named(letter, quote, double)));
        }
    }
    for picks in [least, with_double] {
        forms.insert(spelt(value, picks, |letter| named(letter, "'", "&quot;")));
    }
    let special: Picks = |letter| is_named(letter) || !letter.is_ascii();
    let every: Picks = |_| true;
    for picks in [is_named as Picks, special, every] {
        forms.insert(spelt(value, picks, |letter| format!("&#{};", u32::from(letter))));
        forms.insert(spelt(value, picks, |letter| format!("&#x{:x};", u32::from(letter))));
        forms.insert(spelt(value, picks, |letter| format!("&#x{:X};", u32::from(letter))));
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

fn in_json(value: &str, forms: &mut BTreeSet<String>) {
    let once = escaped(value);
    forms.insert(once.replace('/', "\\/"));
    forms.insert(ascii(&once));
    // JSON is often a text within JSON.
    forms.insert(escaped(&once));
    forms.insert(once);
}

/// With letters as `\u00XX`, which stay so in text that nobody reads as JSON: writers that think of pages escape what has a
/// meaning there, careful ones everything but letters and digits, and some everything.
fn in_numbers(value: &str, forms: &mut BTreeSet<String>) {
    let once = escaped(value);
    let marks: Picks = |letter| matches!(letter, '<' | '>' | '&');
    let quotes: Picks = |letter| matches!(letter, '<' | '>' | '&' | '\'');
    for picks in [marks, quotes] {
        for text in [once.clone(), ascii(&once)] {
            forms.insert(spelt(&text, picks, |letter| numbered(letter, false)));
            forms.insert(spelt(&text, picks, |letter| numbered(letter, true)));
        }
    }
    let special: Picks = |letter| !letter.is_ascii_alphanumeric();
    let unusual: Picks = |letter| is_named(letter) || letter == '/' || letter == '\\' || !letter.is_ascii();
    let every: Picks = |_| true;
    for picks in [unusual, special, every] {
        for capital in [false, true] {
            forms.insert(spelt(value, picks, |letter| numbered(letter, capital)));
        }
    }
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

fn in_addresses(value: &str, sets: &[&'static AsciiSet], forms: &mut BTreeSet<String>) {
    for &set in sets {
        let encoded = utf8_percent_encode(value, set).to_string();
        forms.insert(encoded.replace("%20", "+"));
        forms.insert(small(&encoded));
        forms.insert(encoded);
    }
}

/// In an address within an address.
fn in_addresses_twice(value: &str, forms: &mut BTreeSet<String>) {
    for &set in ALL_SETS {
        let encoded = utf8_percent_encode(value, set).to_string();
        for once in [&small(&encoded), &encoded] {
            forms.insert(utf8_percent_encode(once, UNRESERVED).to_string());
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

fn in_base64(value: &[u8], forms: &mut BTreeSet<String>) {
    forms.extend([STANDARD.encode(value), URL_SAFE.encode(value), STANDARD_NO_PAD.encode(value)]);
    for before in 0..3 {
        let mut bytes = vec![0; before];
        bytes.extend_from_slice(value);
        // Six bits a letter: what begins before the value or ends after it is not looked for.
        let letters = (before * 8).div_ceil(6)..bytes.len() * 8 / 6;
        for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            forms.extend(engine.encode(&bytes).get(letters.clone()).map(str::to_owned));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_encoders_make_of_a_value_is_among_its_forms() {
        let forms = of("p@ss w/ö\"rd+1");
        for form in [
            "p@ss w/ö\"rd+1",
            "p@ss w/ö\\\"rd+1",
            "p@ss w/\\u00f6\\\"rd+1",
            "p@ss w\\/ö\\\"rd+1",
            "p@ss w/ö\\\\\\\"rd+1",
            "p%40ss%20w%2F%C3%B6%22rd%2B1",
            "p%40ss%20w%2f%c3%b6%22rd%2b1",
            "p%40ss+w%2F%C3%B6%22rd%2B1",
            "p@ss%20w/%C3%B6%22rd+1",
            "cEBzcyB3L8O2InJkKzE=",
            "p%2540ss%2520w%252F%25C3%25B6%2522rd%252B1",
            "p%2540ss%2520w%252f%25c3%25b6%2522rd%252b1",
            "p@ss w/ö&quot;rd+1",
            "p@ss w/ö&#34;rd+1",
            "p@ss w/&#246;&#34;rd+1",
            "p@ss w/&#xf6;&#x22;rd+1",
            "7040737320772fc3b62272642b31",
            "7040737320772FC3B62272642B31",
            "p@ss w\\u002F\\u00F6\\u0022rd+1",
            "p\\u0040ss\\u0020w\\u002f\\u00f6\\u0022rd\\u002b1",
        ] {
            assert!(forms.contains(form), "{form} is not among {forms:#?}");
        }
    }

    #[test]
    fn base64_finds_a_value_wherever_it_begins() {
        for value in ["secret", "secret1", "secret-value", "~~~???>>>"] {
            let forms = of(value);
            for before in ["", "a", "ab", "abc", "user:"] {
                for after in ["", "z", "zz", "zzz"] {
                    let whole = format!("{before}{value}{after}");
                    for text in [STANDARD.encode(&whole), URL_SAFE_NO_PAD.encode(&whole)] {
                        assert!(forms.iter().any(|form| text.contains(form)), "{whole} in {text}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_pages_make_of_a_value_is_among_its_forms() {
        let forms = of("a<b>&'c'\"d\"");
        for form in [
            "a&lt;b&gt;&amp;'c'\"d\"",
            "a&lt;b&gt;&amp;'c'&quot;d&quot;",
            "a&lt;b&gt;&amp;&#39;c&#39;&quot;d&quot;",
            "a&lt;b&gt;&amp;&#x27;c&#x27;&quot;d&quot;",
            "a&lt;b&gt;&amp;&#39;c&#39;&#34;d&#34;",
            "a&#60;b&#62;&#38;&#39;c&#39;&#34;d&#34;",
            "a\\u003cb\\u003e\\u0026'c'\\\"d\\\"",
            "a\\u003Cb\\u003E\\u0026\\u0027c\\u0027\\\"d\\\"",
            "&#97;&#60;&#98;&#62;&#38;&#39;&#99;&#39;&#34;&#100;&#34;",
        ] {
            assert!(forms.contains(form), "{form} is not among {forms:#?}");
        }
    }

    #[test]
    fn a_long_value_is_not_spelt_letter_by_letter() {
        let long = of(&"x".repeat(LONGEST_SPELT + 1));
        assert!(long.iter().all(|form| form.len() <= 3 * LONGEST_SPELT), "it would cost more than it finds");
    }

    #[test]
    fn a_long_value_has_the_usual_forms_and_no_more() {
        let long = "<\"a/ö ".repeat(60);
        let forms = of(&long);
        for part in
            ["<\"a/ö ", "<\\\"a/ö ", "<\\\"a/\\u00f6 ", "%3C%22a%2F%C3%B6%20", "%3c%22a%2f%c3%b6%20", "3c22612fc3b620"]
        {
            assert!(forms.contains(&part.repeat(60)), "{part}");
        }
        assert!(forms.contains(&STANDARD.encode(&long)));
        assert!(!forms.contains(&"&lt;&quot;a/ö ".repeat(60)));
        assert!(forms.iter().map(String::len).sum::<usize>() < 100 * long.len());
    }

    #[test]
    fn a_plain_value_has_few_forms_and_none_is_short() {
        let forms = of("secret");
        assert!(forms.len() <= 12, "{forms:?}");
        assert!(forms.iter().all(|form| form.len() >= 6), "{forms:?}");
    }
}
