//! Some values in all their [`forms`], ready to be found in a text.
//!
//! All forms are looked for at once, in one pass over the text; of two that begin at the same place the longer one counts.

use std::borrow::Cow;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Match, MatchKind};
use serde_json::Value;

use crate::{PLACEHOLDER, forms, json};

/// Shorter values are not looked for: they are in too many texts that have nothing to do with them.
pub const SHORTEST: usize = 6;

/// Values that can be found.
#[derive(Debug, Default)]
pub struct Values {
    forms: Option<AhoCorasick>,
    /// The value each form is one of, by its place among those that were given.
    of: Vec<usize>,
    longest: usize,
}

/// Whether a value is long enough to be looked for, and no part of what stands in its place.
pub fn is_findable(value: &str) -> bool {
    is_findable_from(SHORTEST, value)
}

fn is_findable_from(shortest: usize, value: &str) -> bool {
    value.len() >= shortest && !PLACEHOLDER.contains(value)
}

impl Values {
    pub fn new<'v>(values: impl IntoIterator<Item = &'v str>) -> Self {
        Self::at_least(SHORTEST, values)
    }

    /// Those of at least so many bytes: within one document, shorter ones than elsewhere can be told from other text.
    pub(crate) fn at_least<'v>(shortest: usize, values: impl IntoIterator<Item = &'v str>) -> Self {
        let findable = |(_, value): &(usize, &str)| is_findable_from(shortest, value);
        let found = values.into_iter().enumerate().filter(findable);
        Self::build(found.flat_map(|(place, value)| forms::of(value).into_iter().map(move |form| (place, form))))
    }

    /// Values whose forms are at hand, each as a list of them.
    pub(crate) fn of_forms<'v>(values: impl IntoIterator<Item = &'v [String]>) -> Self {
        Self::build(
            values.into_iter().enumerate().flat_map(|(place, forms)| forms.iter().map(move |form| (place, form))),
        )
    }

    fn build<T: AsRef<str>>(forms: impl Iterator<Item = (usize, T)>) -> Self {
        let (of, texts): (Vec<usize>, Vec<T>) = forms.unzip();
        if texts.is_empty() {
            return Self::default();
        }
        let longest = texts.iter().map(|text| text.as_ref().len()).max().unwrap_or_default();
        let built = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            // Small, and made quickly; it is made again when there are other values.
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(texts.iter().map(|text| text.as_ref().as_bytes()));
        Self { forms: Some(built.expect("values are bounded far below what it can hold")), of, longest }
    }

    pub fn is_empty(&self) -> bool {
        self.forms.is_none()
    }

    /// Bytes of the longest form.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    pub(crate) fn find_in<'t>(&'t self, bytes: &'t [u8]) -> impl Iterator<Item = Match> + 't {
        self.forms.iter().flat_map(move |forms| forms.find_iter(bytes))
    }

    pub fn are_in(&self, text: &str) -> bool {
        self.forms.as_ref().is_some_and(|forms| forms.is_match(text))
    }

    /// A text without the values.
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.replace(text, |_| PLACEHOLDER)
    }

    /// A text with something else in the place of each value, by its place among those that were given.
    pub fn replace<'t, 'w>(&self, text: &'t str, with: impl Fn(usize) -> &'w str) -> Cow<'t, str> {
        let (mut clean, mut copied) = (String::new(), 0);
        // A form is text, so it begins and ends where letters do.
        for found in self.find_in(text.as_bytes()) {
            clean.push_str(&text[copied..found.start()]);
            clean.push_str(with(self.of[found.pattern().as_usize()]));
            copied = found.end();
        }
        if copied == 0 {
            return Cow::Borrowed(text);
        }
        clean.push_str(&text[copied..]);
        Cow::Owned(clean)
    }

    /// Bytes without the values; nothing if there are none in them.
    pub fn mask_bytes(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let (mut clean, mut copied) = (Vec::new(), 0);
        for found in self.find_in(bytes) {
            clean.extend_from_slice(&bytes[copied..found.start()]);
            clean.extend_from_slice(PLACEHOLDER.as_bytes());
            copied = found.end();
        }
        if copied == 0 {
            return None;
        }
        clean.extend_from_slice(&bytes[copied..]);
        Some(clean)
    }

    /// JSON without the values, which is JSON still: a number that is one of them becomes a text.
    pub fn mask_json<'t>(&self, text: &'t str) -> Cow<'t, str> {
        // What has none is not written again, which would cost long numbers their digits.
        if !self.are_in(text) && !self.are_escaped_in(text) {
            return Cow::Borrowed(text);
        }
        match serde_json::from_str::<Value>(text) {
            Ok(mut value) => {
                json::walk(&mut value, &|text| self.mask(text), &|_| false);
                Cow::Owned(value.to_string())
            }
            Err(_) => self.mask(text),
        }
    }

    /// Any character can be escaped, so what is not found in JSON as it stands may be in there all the same. The texts are
    /// looked at one by one and not in the tree that JSON is read into: of two fields with the same name it has the last.
    fn are_escaped_in(&self, json: &str) -> bool {
        if self.is_empty() {
            return false;
        }
        let mut rest = json;
        while let Some(start) = rest.find('"') {
            let (bytes, mut end) = (rest.as_bytes(), start + 1);
            while end < bytes.len() && bytes[end] != b'"' {
                end += if bytes[end] == b'\\' { 2 } else { 1 };
            }
            // One that does not end is no JSON.
            let Some(quoted) = rest.get(start..=end) else { return false };
            if quoted.contains('\\') && serde_json::from_str::<String>(quoted).is_ok_and(|text| self.are_in(&text)) {
                return true;
            }
            rest = &rest[end + 1..];
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_masked_in_every_form_and_the_rest_stays() {
        let values = Values::new(["s3cr3t/with \"all\"", "other-value"]);
        for (given, wanted) in [
            ("a s3cr3t/with \"all\" b", "a [REDACTED] b"),
            (r#"{"x":"s3cr3t/with \"all\""}"#, r#"{"x":"[REDACTED]"}"#),
            ("?t=s3cr3t%2Fwith%20%22all%22&n=1", "?t=[REDACTED]&n=1"),
            ("Basic dTpvdGhlci12YWx1ZQ==", "Basic dTp[REDACTED]Q=="),
            ("other-valueother-value", "[REDACTED][REDACTED]"),
            ("ünother-valueü", "ün[REDACTED]ü"),
        ] {
            assert_eq!(values.mask(given), wanted);
            assert_eq!(values.mask(&values.mask(given)), wanted, "twice is once");
        }
        assert!(matches!(values.mask("nothing of the sort"), Cow::Borrowed(_)));
        assert_eq!(values.mask_bytes(b"\xffother-value\x00").as_deref(), Some(b"\xff[REDACTED]\x00".as_slice()));
        assert_eq!(values.mask_bytes(b"\xffother\x00"), None);
    }

    #[test]
    fn short_values_and_the_mask_itself_are_not_looked_for() {
        for value in ["", "a", "12345", "REDACTED", "[REDACTED]", "DACTED"] {
            assert!(Values::new([value]).is_empty(), "{value}");
        }
        assert!(!Values::new(["123456"]).is_empty());
    }

    #[test]
    fn json_stays_json() {
        let values = Values::new(["123456", "hunter22"]);
        let masked = values.mask_json(r#"{"n":1234567,"hunter22":["hunter22",null,12345]}"#);
        assert_eq!(masked, r#"{"n":"[REDACTED]7","[REDACTED]":["[REDACTED]",null,12345]}"#);
        assert!(matches!(values.mask_json(r#"{ "n" : 1.0 }"#), Cow::Borrowed(_)), "what has none is not written again");
        assert_eq!(values.mask_json("not json: hunter22"), "not json: [REDACTED]");
    }

    #[test]
    fn json_with_escapes_is_written_again_only_if_a_value_is_escaped_in_it() {
        let values = Values::new(["hunter22"]);
        for clean in
            [r#"{"n":123456789012345678901234567890,"e":"\u00e9\"\\"}"#, r#""\u0068unter"#, r#""a\"#, "\"\\é\""]
        {
            assert!(matches!(values.mask_json(clean), Cow::Borrowed(_)), "{clean}");
        }
        for (given, wanted) in [
            (r#"{"a":"\\","b":"\u0068unter22"}"#, r#"{"a":"\\","b":"[REDACTED]"}"#),
            (r#"{"\u0068unter22":1}"#, r#"{"[REDACTED]":1}"#),
            (r#"{"a":"\u0068unter22","a":1}"#, r#"{"a":1}"#),
        ] {
            assert_eq!(values.mask_json(given), wanted);
        }
    }
}
