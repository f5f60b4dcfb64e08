//! Texts and numbers of a JSON document rewritten where they stand.
//!
//! The document is not read into a tree and written again: that would cost long numbers their digits, fields of the same name
//! all but the last, and everybody else's spaces. Only the texts that change are written anew. Any character of a text can be
//! escaped, so each is looked at as what it means.

use std::borrow::Cow;

use serde::de::IgnoredAny;

type Rewrite<'r> = &'r dyn for<'t> Fn(&'t str) -> Cow<'t, str>;

/// Nothing if it is no JSON. A number that is rewritten becomes a text. Names of fields stay unless asked for.
pub fn rewrite<'t>(json: &'t str, names: bool, with: Rewrite<'_>) -> Option<Cow<'t, str>> {
    // Without an escape, what a text means is what stands there.
    if !json.contains('\\') && matches!(with(json), Cow::Borrowed(_)) {
        return Some(Cow::Borrowed(json));
    }
    serde_json::from_str::<IgnoredAny>(json).ok()?;
    let (bytes, mut clean, mut copied, mut at) = (json.as_bytes(), String::new(), 0, 0);
    while at < bytes.len() {
        let end = match bytes[at] {
            b'"' => end_of_text(bytes, at),
            b'-' | b'0'..=b'9' => end_of_number(bytes, at),
            _ => {
                at += 1;
                continue;
            }
        };
        let token = &json[at..end];
        let is_name = || bytes[end..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':');
        if let Some(text) = meant(token)
            && let Cow::Owned(other) = with(&text)
            && (names || !is_name())
        {
            clean.push_str(&json[copied..at]);
            clean.push_str(&serde_json::Value::String(other).to_string());
            copied = end;
        }
        at = end;
    }
    if copied == 0 {
        return Some(Cow::Borrowed(json));
    }
    clean.push_str(&json[copied..]);
    Some(Cow::Owned(clean))
}

/// The text that a token is.
fn meant(token: &str) -> Option<Cow<'_, str>> {
    match token.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        None => Some(Cow::Borrowed(token)),
        Some(inside) if !inside.contains('\\') => Some(Cow::Borrowed(inside)),
        Some(_) => serde_json::from_str::<String>(token).ok().map(Cow::Owned),
    }
}

/// Behind the closing quote; the document was read, so there is one.
fn end_of_text(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

fn end_of_number(bytes: &[u8], start: usize) -> usize {
    let is_part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E');
    start + bytes[start..].iter().take_while(|byte| is_part(byte)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without(json: &str, names: bool) -> Option<Cow<'_, str>> {
        fn masked(text: &str) -> Cow<'_, str> {
            if text.contains("hunter22") || text.contains("123456") {
                Cow::Owned(text.replace("hunter22", "X").replace("123456", "Y"))
            } else {
                Cow::Borrowed(text)
            }
        }
        rewrite(json, names, &masked)
    }

    #[test]
    fn what_has_nothing_to_rewrite_is_the_same_text() {
        for json in [r#"{ "n" : 1.0 }"#, r#"{"n":987654321098765432109876.50,"e":"\u00e9\"\\"}"#, r#""""#, "[]"] {
            assert!(matches!(without(json, true), Some(Cow::Borrowed(same)) if same == json), "{json}");
        }
    }

    #[test]
    fn only_what_changes_is_written_again() {
        for (given, wanted) in [
            (
                r#"{ "n":98765432109876543210987654321,"a":"a hunter22"}"#,
                r#"{ "n":98765432109876543210987654321,"a":"a X"}"#,
            ),
            (r#"{"a":"\\","b":"\u0068unter22 \u00e9","c":"\u00e9"}"#, r#"{"a":"\\","b":"X é","c":"\u00e9"}"#),
            (r#"{"a":"\u0068unter22","a":1}"#, r#"{"a":"X","a":1}"#),
            (r#"[-1234567, 12345]"#, r#"["-Y7", 12345]"#),
            (r#"{"\u0068unter22" : "hunter22"}"#, r#"{"X" : "X"}"#),
        ] {
            assert_eq!(without(given, true).as_deref(), Some(wanted));
        }
    }

    #[test]
    fn names_of_fields_stay_unless_asked_for() {
        assert_eq!(
            without(r#"{"hunter22" : {"hunter22":"hunter22"}}"#, false).as_deref(),
            Some(r#"{"hunter22" : {"hunter22":"X"}}"#)
        );
    }

    #[test]
    fn what_is_no_json_is_said_so() {
        for text in ["hunter22", r#""\u0068unter22"#, r#"{"a":"hunter22""#, "\"\\hunter22\""] {
            assert_eq!(without(text, true), None, "{text}");
        }
    }
}
