//! Masks secrets in text that leaves the server: log lines of guests, error messages, problem documents.
//!
//! Two lines of defence. Secrets of the wallet are known and masked exactly, in every way they may be written ([`known`]).
//! What a guest or a remote service printed on its own is found by its name or its shape; there shapes that hardly
//! ever occur by chance are preferred over broad guesses: a digest, an id or a metric name that is masked by mistake
//! makes a log useless, and people then switch the masking off.
//!
//! Results of steps are looked at for known values alone: they are data, and the next step reads them. What is found in
//! data is replaced by what stands for it ([`Data`]), and masked only where nothing does.
//!
//! Invariants:
//! 1. Text without a secret comes back borrowed and unchanged; nothing is allocated for it.
//! 2. Keys decide by their whole name ([`keys`]), never by a part of it: `author`, `max_tokens` and
//!    `certainty` are not secrets.
//! 3. Masking twice gives the same as masking once.
//! 4. Work is linear in the length of the text, whatever a guest writes.
//!
//! Bad input: a value that is cut off (no closing quote, no end of a private key) is masked to the end of
//! the text, and a JSON tree that is deeper than any parser of ours accepts is masked below that depth.

use std::borrow::Cow;

use serde_json::Value;

mod data;
mod documents;
mod forms;
mod found;
mod json;
mod keys;
pub mod known;
mod learned;
mod pieces;
mod stream;
mod text;
mod tokens;
mod values;

pub use data::Data;
pub use found::Found;
pub use stream::Stream;
pub use values::{SHORTEST, Values, is_findable, is_word};

/// What stands where a secret stood.
pub const PLACEHOLDER: &str = "[REDACTED]";

/// Mask every secret in a text, whoever's it is: for what only the operator reads.
pub fn scrub_text(text: &str) -> Cow<'_, str> {
    by_shape(known::mask_for_operator(text))
}

/// Mask every secret in a text that is shown to a tenant: its own, and what looks like one.
pub fn scrub_text_for<'t>(tenant: &str, text: &'t str) -> Cow<'t, str> {
    by_shape(known::mask_for(tenant, text))
}

/// Mask what looks like a secret in a JSON tree, for a reader of whom nothing is known.
pub fn scrub_json_by_shape(value: &mut Value) {
    json::walk(value, &text::scrub, &keys::is_secret);
}

fn by_shape(masked: Cow<'_, str>) -> Cow<'_, str> {
    match masked {
        Cow::Borrowed(text) => text::scrub(text),
        Cow::Owned(masked) => Cow::Owned(text::scrub(&masked).into_owned()),
    }
}

/// Mask every secret in a JSON tree: values under a secret's key whole, all other strings as text.
pub fn scrub_json(value: &mut Value) {
    json::walk(value, &|text| scrub_text(text), &keys::is_secret);
}

/// The same for what is shown to a tenant.
pub fn scrub_json_for(tenant: &str, value: &mut Value) {
    json::walk(value, &|text| scrub_text_for(tenant, text), &keys::is_secret);
}
