//! Data that goes on, with what stands for a secret in the place of the secret.
//!
//! A mark in data would be data to whoever gets it next: stored, sent, compared. What stands for the secret can be sent on to
//! where its credential may go, and a driver that cannot put the value in refuses. So of a value that is written as itself the
//! placeholder is what is left, and of what was computed of it one that no driver puts anything in for: whoever writes it
//! somewhere is refused. What nothing stands for any more is masked.

use std::borrow::Cow;
use std::sync::Arc;

use crate::stream::Stream;
use crate::{Values, documents};

/// What data is rewritten by.
#[derive(Debug, Clone)]
pub struct Data {
    pub(crate) values: Arc<Values>,
    /// Credentials whose placeholder is taken first where several have the same value.
    pub(crate) preferred: Vec<String>,
    /// Whether words that could be the host's own are looked for.
    pub(crate) words: bool,
}

impl Data {
    /// For what came from outside.
    pub fn new(values: Arc<Values>) -> Self {
        Self { values, preferred: Vec::new(), words: true }
    }

    /// Where several credentials have the same value, it is one of these, if there is one.
    pub fn preferring(mut self, aliases: Vec<String>) -> Self {
        self.preferred = aliases;
        self
    }

    /// For what a tool made of data that was rewritten when it came in: it has words of the host's own in it, and whoever
    /// keeps such a word as a secret must not have them replaced.
    pub fn of_results(mut self) -> Self {
        self.words = false;
        self
    }

    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.values.rewrite(text, self.words, |found| self.values.stand_in(found, &self.preferred))
    }

    /// What comes back is JSON still, if it was; a number that is a secret becomes a text. Names of fields stay unless asked
    /// for.
    pub fn json<'t>(&self, text: &'t str, names: bool) -> Cow<'t, str> {
        documents::rewrite(text, names, &|text| self.text(text)).unwrap_or_else(|| self.text(text))
    }

    /// Nothing if there is no secret in them.
    pub fn bytes(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let (mut clean, mut copied) = (Vec::new(), 0);
        for found in self.values.find_in(bytes, self.words) {
            clean.extend_from_slice(&bytes[copied..found.start()]);
            clean.extend_from_slice(self.values.stand_in(&found, &self.preferred).as_bytes());
            copied = found.end();
        }
        if copied == 0 {
            return None;
        }
        clean.extend_from_slice(&bytes[copied..]);
        Some(clean)
    }

    /// For bytes that come a piece at a time.
    pub fn stream(self) -> Stream {
        Stream::new(self)
    }
}
