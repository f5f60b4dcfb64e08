//! Whole numbers that no number here can hold, in what tools answer.
//!
//! Read as they are they would become floating point numbers and lose their last digits, an id of 23 digits among them, and
//! nobody would be told. As text they keep every digit, go through templates, and a `numeric` column takes them. The
//! interpreters write such numbers in the same way.

use std::borrow::Cow;

use serde::de::IgnoredAny;

/// Digits that always fit.
const SAFE: usize = 18;

/// JSON with whole numbers beyond 64 bits as texts. What is no JSON comes out as no JSON.
pub(super) fn exact(json: &str) -> Cow<'_, str> {
    let bytes = json.as_bytes();
    if !has_long_run(bytes) {
        return Cow::Borrowed(json);
    }
    let (mut at, mut copied, mut out) = (0, 0, String::new());
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = end_of_text(bytes, at),
            b'-' | b'0'..=b'9' => {
                let end = end_of_number(bytes, at);
                let number = &json[at..end];
                if number.len() > SAFE && is_beyond(number) {
                    out.push_str(&json[copied..at]);
                    out.push('"');
                    out.push_str(number);
                    out.push('"');
                    copied = end;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    // A number in the place of a key is no JSON, and must not become some.
    if copied == 0 || serde_json::from_str::<IgnoredAny>(json).is_err() {
        return Cow::Borrowed(json);
    }
    out.push_str(&json[copied..]);
    Cow::Owned(out)
}

/// Whether there are more digits in a row than always fit. Such a row has one at every so manieth byte, so that few of the
/// others are looked at.
fn has_long_run(bytes: &[u8]) -> bool {
    let is_digit = |byte: &&u8| byte.is_ascii_digit();
    (SAFE..bytes.len()).step_by(SAFE + 1).any(|at| {
        bytes[at].is_ascii_digit() && {
            let before = bytes[..at].iter().rev().take(SAFE).take_while(is_digit).count();
            let after = bytes[at..].iter().take(SAFE + 1).take_while(is_digit).count();
            before + after > SAFE
        }
    })
}

/// Behind the quote that ends the text which begins here.
fn end_of_text(bytes: &[u8], begin: usize) -> usize {
    let mut at = begin + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn end_of_number(bytes: &[u8], begin: usize) -> usize {
    let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
    begin + 1 + bytes[begin + 1..].iter().take_while(|byte| is_part(byte)).count()
}

fn is_beyond(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number);
    let is_json = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    is_json && number.parse::<i64>().is_err() && number.parse::<u64>().is_err()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value as Json;

    use super::*;

    #[test]
    fn numbers_beyond_64_bits_are_texts_and_nothing_else_changes() {
        for same in [
            "",
            "12",
            "18446744073709551615",
            "-9223372036854775808",
            r#"{"12345678901234567890123": "a \" 12345678901234567890123", "f": 1234567890123456789012.5}"#,
            "[1e30, 0.12345678901234567890123, 123456789012345678901234e2]",
            r#""never ends 12345678901234567890123"#,
            r#""\"#,
        ] {
            assert_eq!(exact(same), same);
        }
        for (beyond, text) in [
            ("18446744073709551616", r#""18446744073709551616""#),
            ("-9223372036854775809", r#""-9223372036854775809""#),
            (r#"{"a":[1,12345678901234567890123,"x"]}"#, r#"{"a":[1,"12345678901234567890123","x"]}"#),
            ("[99999999999999999999,99999999999999999999]", r#"["99999999999999999999","99999999999999999999"]"#),
            // What is no JSON stays none.
            ("00000000000000000000000001", "00000000000000000000000001"),
            ("{12345678901234567890123:1}", "{12345678901234567890123:1}"),
        ] {
            assert_eq!(exact(beyond), text);
        }
    }

    proptest! {
        #[test]
        fn what_fits_is_read_as_before(text in r#"[\[\]{},:"\\0-9.eE+a-z -]{0,60}"#) {
            let (before, after) = (serde_json::from_str::<Json>(&text), serde_json::from_str::<Json>(&exact(&text)));
            prop_assert_eq!(before.is_ok(), after.is_ok(), "{}", exact(&text));
            if exact(&text) == text {
                prop_assert_eq!(before.ok(), after.ok());
            }
        }
    }
}
