//! The ways one value is written.
//!
//! A secret that went out in an address or in a header comes back as whoever echoes it writes it: in JSON, in an address,
//! in base64, alone or as a part of something longer. Each of these is one more text to look for. Encoders of addresses
//! differ in what they leave as it is, so there are several of them; base64 differs by where in its groups of three a
//! value begins, and what is looked for there are the letters that the value alone decides.

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

/// Every text that is looked for where this value must not be; the value itself among them.
pub fn of(value: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::from([value.to_owned()]);
    in_json(value, &mut forms);
    in_addresses(value, &mut forms);
    in_base64(value.as_bytes(), &mut forms);
    forms
}

fn in_json(value: &str, forms: &mut BTreeSet<String>) {
    let once = escaped(value);
    forms.insert(once.replace('/', "\\/"));
    forms.insert(ascii(&once));
    // JSON is often a text within JSON.
    forms.insert(escaped(&once));
    forms.insert(once);
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
            letter.encode_utf16(&mut [0; 2]).iter().for_each(|unit| text.push_str(&format!("\\u{unit:04x}")));
        }
    }
    text
}

fn in_addresses(value: &str, forms: &mut BTreeSet<String>) {
    for set in [UNRESERVED, SEGMENTS, FORM, COMPONENT, QUERY, PATH, USER] {
        let encoded = utf8_percent_encode(value, set).to_string();
        forms.insert(encoded.replace("%20", "+"));
        forms.insert(small(&encoded));
        forms.insert(encoded);
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
    fn a_plain_value_has_few_forms_and_none_is_short() {
        let forms = of("secret");
        assert!(forms.len() <= 5, "{forms:?}");
        assert!(forms.iter().all(|form| form.len() >= 6), "{forms:?}");
    }
}
