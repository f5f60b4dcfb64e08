//! The scan over a text: one pass from left to right that stops at places where a secret can begin.
//!
//! A rule answers a [`Find`]: the part to mask, which need not start where the scan stands (`Bearer` and
//! `"password":` stay readable). The scan goes on behind the masked part.

use std::borrow::Cow;
use std::ops::Range;

use crate::PLACEHOLDER;
use crate::keys::{self, Kind};
use crate::tokens::{self, is_token_byte};

/// Names longer than this are not in the list of secrets' names.
const LONGEST_NAME: usize = 40;
/// Longest `user:password` in a URL that is looked for.
const LONGEST_USERINFO: usize = 512;
const SCHEMES: [&str; 6] = ["bearer", "basic", "digest", "token", "apikey", "negotiate"];

type Find = Range<usize>;

pub fn scrub(text: &str) -> Cow<'_, str> {
    let mut clean: Option<String> = None;
    let mut copied = 0;
    for find in finds(text) {
        let clean = clean.get_or_insert_with(|| String::with_capacity(text.len()));
        clean.push_str(&text[copied..find.start]);
        clean.push_str(PLACEHOLDER);
        copied = find.end;
    }
    match clean {
        None => Cow::Borrowed(text),
        Some(mut clean) => {
            clean.push_str(&text[copied..]);
            Cow::Owned(clean)
        }
    }
}

/// What is masked in a text, as it stands there.
pub fn secrets(text: &str) -> impl Iterator<Item = &str> {
    finds(text).map(|find| &text[find])
}

/// Whether it is the first word of a credential in a header.
pub fn is_scheme(word: &str) -> bool {
    SCHEMES.iter().any(|scheme| word.eq_ignore_ascii_case(scheme))
}

/// The parts to mask, from left to right; what is masked already is none.
fn finds(text: &str) -> impl Iterator<Item = Find> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() {
            let previous = at.checked_sub(1).map(|before| bytes[before]);
            let Some(find) = find_at(bytes, at, previous) else {
                at += 1;
                continue;
            };
            at = find.end.max(at + 1);
            if &bytes[find.clone()] != PLACEHOLDER.as_bytes() {
                return Some(find);
            }
        }
        None
    })
}

fn find_at(bytes: &[u8], at: usize, previous: Option<u8>) -> Option<Find> {
    let byte = bytes[at];
    if byte == b':' {
        return url_password(bytes, at);
    }
    // Both a word and the dashes of a PEM block begin behind something that is no letter or digit.
    if !(byte.is_ascii_alphabetic() || byte == b'-') || previous.is_some_and(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    if let Some(length) = tokens::end_of_token(&bytes[at..], previous) {
        return Some(at..at + length);
    }
    if previous.is_some_and(is_token_byte) {
        return None;
    }
    let word = at..at + bytes[at..].iter().take(LONGEST_NAME + 1).take_while(|byte| is_token_byte(**byte)).count();
    scheme_and_token(bytes, &word).or_else(|| named_value(bytes, &word))
}

/// `Bearer x` and `Basic x` in running text: only where `x` cannot be the next word of a sentence.
fn scheme_and_token(bytes: &[u8], word: &Range<usize>) -> Option<Find> {
    let scheme = &bytes[word.clone()];
    let is_secret = if scheme.eq_ignore_ascii_case(b"bearer") {
        tokens::is_bearer_token
    } else if scheme.eq_ignore_ascii_case(b"basic") {
        tokens::is_basic_credential
    } else {
        return None;
    };
    let start = skip_spaces(bytes, word.end);
    let value = start..end_of_credential(bytes, start);
    (start > word.end && is_secret(&bytes[value.clone()])).then_some(value)
}

/// A secret's name followed by its value: `"password": "x"`, `password=x`, `X-Api-Key: x`.
fn named_value(bytes: &[u8], name: &Range<usize>) -> Option<Find> {
    let (quote, mut at) = quote_at(bytes, name.end);
    at = skip_spaces(bytes, at);
    let separator = *bytes.get(at).filter(|byte| matches!(byte, b':' | b'='))?;
    let name = std::str::from_utf8(&bytes[name.clone()]).ok()?;
    let kind = keys::kind_of(name)?;
    // `password => x` and `token := x` are pairs as well.
    at += 1 + usize::from(bytes.get(at + 1).is_some_and(|byte| matches!(byte, b'=' | b'>')));
    let start = skip_spaces(bytes, at);
    if let (Some(open), inside) = quote_at(bytes, start) {
        let value = inside..end_of_quoted(bytes, inside, open);
        return if kind == Kind::Authorization && quote.is_none() { after_scheme(bytes, value) } else { filled(value) };
    }
    match (kind, quote, separator) {
        (Kind::Authorization, None, _) => after_scheme(bytes, start..bytes.len()),
        (Kind::Cookie, None, b':') => filled(start..end_of_line(bytes, start)),
        (Kind::Header, None, b':') => filled(start..end_of_word(bytes, start)),
        // `unexpected token: foo` is prose; only a quoted name makes a colon a separator.
        (Kind::Field, None, b':') => None,
        // An object or a list under the name is masked field by field as the scan goes on, and `null`,
        // `true` and `false` are no secrets.
        _ => {
            let value = start..end_of_word(bytes, start);
            let text = &bytes[value.clone()];
            let plain = matches!(text, b"null" | b"true" | b"false" | b"None");
            if plain || text.starts_with(b"{") || (text.starts_with(b"[") && text != PLACEHOLDER.as_bytes()) {
                return None;
            }
            filled(value)
        }
    }
}

fn filled(value: Find) -> Option<Find> {
    (!value.is_empty()).then_some(value)
}

/// The part of an `authorization` value behind its scheme. A value without a scheme is masked only where it
/// looks like a token, because `authorization: required` is a sentence.
fn after_scheme(bytes: &[u8], value: Range<usize>) -> Option<Find> {
    let first = value.start..end_of_credential(bytes, value.start).min(value.end);
    let word = &bytes[first.clone()];
    if std::str::from_utf8(word).is_ok_and(is_scheme) {
        let start = skip_spaces(bytes, first.end).min(value.end);
        return filled(start..end_of_credential(bytes, start).min(value.end));
    }
    tokens::is_bearer_token(word).then_some(first)
}

/// The password of `scheme://user:password@host`, standing on the first colon.
fn url_password(bytes: &[u8], at: usize) -> Option<Find> {
    let start = at + 3;
    if !bytes[at..].starts_with(b"://") {
        return None;
    }
    let authority = &bytes[start..bytes.len().min(start + LONGEST_USERINFO)];
    let end = authority
        .iter()
        .position(|byte| matches!(byte, b'/' | b'?' | b'#' | b'"' | b'\'' | b'<') || byte.is_ascii_whitespace());
    let authority = &authority[..end.unwrap_or(authority.len())];
    let host = authority.iter().rposition(|byte| *byte == b'@')?;
    let colon = authority[..host].iter().position(|byte| *byte == b':')?;
    filled(start + colon + 1..start + host)
}

fn skip_spaces(bytes: &[u8], at: usize) -> usize {
    at + bytes[at..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// A quote, which may be escaped because JSON is often logged inside of JSON, and the place behind it.
fn quote_at(bytes: &[u8], at: usize) -> (Option<&[u8]>, usize) {
    let escaped = usize::from(bytes.get(at) == Some(&b'\\'));
    match bytes.get(at + escaped) {
        Some(b'"' | b'\'') => (Some(&bytes[at..=at + escaped]), at + escaped + 1),
        _ => (None, at),
    }
}

/// Where the quote that was opened with `open` closes; a text that was cut off ends it too.
fn end_of_quoted(bytes: &[u8], from: usize, open: &[u8]) -> usize {
    let mut at = from;
    while at < bytes.len() {
        if bytes[at..].starts_with(open) {
            return at;
        }
        // An escape hides the byte behind it; where the quotes are escaped themselves, it takes three.
        at += if bytes[at] == b'\\' { 1 + open.len() } else { 1 };
    }
    bytes.len()
}

fn end_of_word(bytes: &[u8], from: usize) -> usize {
    let stops = |byte: &u8| {
        byte.is_ascii_whitespace() || matches!(byte, b'&' | b';' | b',' | b'"' | b'\'' | b')' | b'}' | b'<' | b'\\')
    };
    from + bytes[from..].iter().take_while(|byte| !stops(byte)).count()
}

/// What a credential in a header is made of.
fn end_of_credential(bytes: &[u8], from: usize) -> usize {
    let belongs = |byte: &u8| is_token_byte(*byte) || matches!(byte, b'.' | b'~' | b'+' | b'/' | b'=');
    from + bytes[from..].iter().take_while(|byte| belongs(byte)).count()
}

fn end_of_line(bytes: &[u8], from: usize) -> usize {
    from + bytes[from..].iter().take_while(|byte| !matches!(byte, b'\r' | b'\n')).count()
}
