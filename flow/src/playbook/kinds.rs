//! Kinds of tools that the engine runs itself, as they describe themselves.
//!
//! They are no components, so nobody can ask them; the documents are here, in the form every tool's has. What it means
//! is known to whoever reads it: here it is text.

/// The kinds and their documents, by name.
pub const KINDS: &[(&str, &str)] = &[
    ("park", include_str!("kinds/park.json")),
    ("playbook", include_str!("kinds/playbook.json")),
    ("wasm", include_str!("kinds/wasm.json")),
    ("workbook", include_str!("kinds/workbook.json")),
];
