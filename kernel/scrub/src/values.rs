//! Some values in all their [`forms`], ready to be found in a text.
//!
//! All forms are looked for at once, in one pass over the text; of two that begin at the same place the longer one counts.
//! What is inside of a placeholder with the tenant's seal on it is left alone: the name of a credential or of a field can be
//! somebody's secret, and a placeholder that was changed stands for nothing.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, Match, MatchKind};
use noetl_contract::placeholder::{self, Seal};

use crate::forms::Forms;
use crate::{PLACEHOLDER, documents, forms};

/// Shorter values are not looked for: they are in too many texts that have nothing to do with them.
pub const SHORTEST: usize = 6;
/// More than a placeholder has: names are bounded, and a byte of one takes three letters at most.
const LONGEST_PLACEHOLDER: usize = 1024;
/// The host's own names and words are lower-case letters, and not longer.
const LONGEST_WORD: usize = 12;

/// Values that can be found.
#[derive(Debug, Default)]
pub struct Values {
    forms: Option<AhoCorasick>,
    /// By the number of the form.
    found: Vec<Form>,
    /// What stands for a value, by its place among those that were given; perhaps more than one thing, perhaps nothing.
    stands: Vec<Vec<StandIn>>,
    seal: Option<Seal>,
    longest: usize,
}

/// What a form is one of.
#[derive(Debug, Clone, Copy)]
struct Form {
    place: usize,
    direct: bool,
    word: bool,
}

/// What stands for a value where data goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandIn {
    pub alias: Arc<str>,
    pub placeholder: Arc<str>,
    /// What stands for something that was made of the value. No driver puts anything in its place.
    pub computed: Arc<str>,
}

/// A value with its forms, and what stands for it.
pub(crate) struct Known<'v> {
    pub value: &'v str,
    pub forms: &'v Forms,
    pub stands: Vec<StandIn>,
}

/// Whether a value is long enough to be looked for, and no part of what stands in its place.
pub fn is_findable(value: &str) -> bool {
    is_findable_from(SHORTEST, value)
}

fn is_findable_from(shortest: usize, value: &str) -> bool {
    value.len() >= shortest && !PLACEHOLDER.contains(value)
}

/// Whether it could be a word of the host's own as well as somebody's secret.
pub fn is_word(value: &str) -> bool {
    value.len() <= LONGEST_WORD && value.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

impl Values {
    pub fn new<'v>(values: impl IntoIterator<Item = &'v str>) -> Self {
        Self::at_least(SHORTEST, values)
    }

    /// Those of at least so many bytes: within one document, shorter ones than elsewhere can be told from other text.
    pub(crate) fn at_least<'v>(shortest: usize, values: impl IntoIterator<Item = &'v str>) -> Self {
        let forms = |value| if is_findable_from(shortest, value) { forms::of(value) } else { Forms::default() };
        let values: Vec<(&str, Forms)> = values.into_iter().map(|value| (value, forms(value))).collect();
        let known = values.iter().map(|(value, forms)| Known { value, forms, stands: Vec::new() });
        Self::of(known.collect(), None)
    }

    /// Values whose forms are at hand. Placeholders with this seal are left alone.
    pub(crate) fn of(values: Vec<Known<'_>>, seal: Option<Seal>) -> Self {
        let (mut found, mut texts, mut stands) = (Vec::new(), Vec::new(), Vec::with_capacity(values.len()));
        for (place, Known { value, forms, stands: standing }) in values.into_iter().enumerate() {
            let word = is_word(value);
            for (text, direct) in forms.iter() {
                found.push(Form { place, direct, word });
                texts.push(text);
            }
            stands.push(standing);
        }
        if texts.is_empty() {
            return Self::default();
        }
        let longest = texts.iter().map(|text| text.len()).max().unwrap_or_default();
        let longest = if seal.is_some() { longest.max(LONGEST_PLACEHOLDER) } else { longest };
        let built = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            // Small, and made quickly; it is made again when there are other values.
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(&texts);
        let forms = Some(built.expect("values are bounded far below what it can hold"));
        Self { forms, found, stands, seal, longest }
    }

    pub fn is_empty(&self) -> bool {
        self.forms.is_none()
    }

    /// Bytes of the longest that has to be seen as a whole.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    /// Placeholders in there that the tenant's seal is on.
    pub(crate) fn sealed_in(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let Some(seal) = &self.seal else { return Vec::new() };
        let mut sealed = Vec::new();
        for run in placeholder::runs(bytes) {
            let Ok(text) = std::str::from_utf8(&bytes[run.clone()]) else { continue };
            let found = placeholder::find(text).into_iter().filter(|found| seal.is_on(found));
            sealed.extend(found.map(|found| run.start + found.at.start..run.start + found.at.end));
        }
        sealed
    }

    pub(crate) fn find_in<'t>(&'t self, bytes: &'t [u8], words: bool) -> impl Iterator<Item = Match> + 't {
        // Most texts have nothing in them, and are looked at once.
        let any = self.forms.as_ref().is_some_and(|forms| forms.is_match(bytes));
        let mut sealed = if any { self.sealed_in(bytes) } else { Vec::new() }.into_iter().peekable();
        let mut at = 0;
        std::iter::from_fn(move || {
            let forms = self.forms.as_ref().filter(|_| any)?;
            loop {
                let end = sealed.peek().map_or(bytes.len(), |placeholder| placeholder.start);
                match forms.find(Input::new(bytes).range(at..end.max(at))) {
                    Some(found) if !words && self.found[found.pattern().as_usize()].word => at = found.start() + 1,
                    Some(found) => {
                        at = found.end();
                        return Some(found);
                    }
                    None => at = sealed.next()?.end,
                }
            }
        })
    }

    pub fn are_in(&self, text: &str) -> bool {
        self.find_in(text.as_bytes(), true).next().is_some()
    }

    /// What is written in the place of a find: what stands for the value, if it stands there itself, or for what was made of it;
    /// the mark, if nothing does. Of several the first one of a preferred credential counts.
    pub(crate) fn stand_in(&self, found: &Match, preferred: &[String]) -> &str {
        let form = self.found[found.pattern().as_usize()];
        let stands = &self.stands[form.place];
        let preferred = stands.iter().find(|stand| preferred.iter().any(|alias| **alias == *stand.alias));
        let chosen = preferred.or(stands.first());
        chosen.map_or(PLACEHOLDER, |stand| if form.direct { &stand.placeholder } else { &stand.computed })
    }

    /// A text without the values.
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.rewrite(text, true, |_| PLACEHOLDER)
    }

    /// A text with something else in the place of each value, by its place among those that were given.
    pub fn replace<'t, 'w>(&'w self, text: &'t str, with: impl Fn(usize) -> &'w str) -> Cow<'t, str> {
        self.rewrite(text, true, |found| with(self.found[found.pattern().as_usize()].place))
    }

    pub(crate) fn rewrite<'t, 'w>(
        &'w self,
        text: &'t str,
        words: bool,
        with: impl Fn(&Match) -> &'w str,
    ) -> Cow<'t, str> {
        let (mut clean, mut copied) = (String::new(), 0);
        // A form is text, so it begins and ends where letters do.
        for found in self.find_in(text.as_bytes(), words) {
            clean.push_str(&text[copied..found.start()]);
            clean.push_str(with(&found));
            copied = found.end();
        }
        if copied == 0 {
            return Cow::Borrowed(text);
        }
        clean.push_str(&text[copied..]);
        Cow::Owned(clean)
    }

    /// JSON without the values, which is JSON still: a number that is one of them becomes a text.
    pub fn mask_json<'t>(&self, text: &'t str) -> Cow<'t, str> {
        documents::rewrite(text, true, &|text| self.mask(text)).unwrap_or_else(|| self.mask(text))
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
        assert_eq!(values.replace("a other-value", |place| ["x", "y"][place]), "a y");
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
        assert_eq!(values.mask_json("not json: hunter22"), "not json: [REDACTED]");
    }
}
