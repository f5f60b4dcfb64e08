//! Expressions and text in playbooks.
//!
//! A text with `{{ }}` or `{% %}` in it is a template; every other text is itself. A template that is one lone
//! `{{ expression }}` gives the expression's own value: a list stays a list and a number a number, also behind `| tojson`,
//! which is there for templates that are more than that. Anything else gives text. Types are never guessed from text:
//! `"007"` is a text of three characters.
//!
//! The engine is minijinja; what differs from its defaults is in [`environment`](self) (filters, how values become
//! text, limits) and in [`Context`] (names, layers, `ctx`). Templates are compiled once ([`Template`], [`Tree`],
//! [`Guard`]) and kept, either by whoever renders them often or by [`Templates`], which finds them by their text.
//!
//! Invariants:
//! 1. Rendering is a function of the template and the context. `now()` is the time in the context.
//! 2. A missing name, and anything below it, is undefined and not an error: empty in text, `null` as a value.
//! 3. Rendering ends: it has fuel, text has [`TEXT_BYTES`] and a value [`VALUE_BYTES`] at most. What is over is an
//!    error that names the template. (Values inside an expression have no limit but the memory of the instance.)
//! 4. What a template refers to is known without rendering it, and never less than it reads: [`References`].

mod compiled;
mod context;
mod envelope;
mod environment;
mod error;
mod filters;
mod guard;
mod kept;
mod keychain;
mod methods;
mod path;
mod references;
mod split;
mod step;
mod tree;
mod unknown;
mod value;
mod written;

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value as Json;

pub use compiled::Template;
pub use context::Context;
pub use envelope::envelope_value;
pub use error::{Cause, RenderError};
pub use guard::Guard;
pub(crate) use keychain::KEYCHAIN;
pub use keychain::keychain;
pub use minijinja::Value;
pub use references::References;
pub use step::{Reading, payload_address, payload_of, read_value, result_value, step_value};
pub use tree::Tree;
pub use unknown::{Unknown, unknown, unknown_in_guard};
pub use value::{from_json, is_truthy, to_json};
pub use written::{Written, written};

use crate::cache::Cache;

/// The most text a template may give.
pub const TEXT_BYTES: usize = 1 << 20;
/// The most a value may come to as JSON, roughly. It is far more than text may be, because a lone expression passes on
/// what a step returned.
pub const VALUE_BYTES: usize = 64 << 20;
/// Instructions an expression may take.
pub const FUEL: u64 = 500_000;

/// Templates kept by their text; the least used half is forgotten when there are more.
const KEPT: usize = 4096;

/// Whether a text is a template at all.
pub fn is_template(text: &str) -> bool {
    let has = |open: &str, close: &str| text.find(open).is_some_and(|at| text[at + 2..].contains(close));
    has("{{", "}}") || has("{%", "%}")
}

/// Whether a text compiles; if not, why, and in which of its lines.
pub fn check(text: &str) -> Result<(), String> {
    Template::compile(text).map(drop).map_err(|error| error.problem())
}

/// The same for a guard, where a text without braces is an expression.
pub fn check_guard(when: &Json) -> Result<(), String> {
    Guard::compile(when).map(drop).map_err(|error| error.problem())
}

/// What a text refers to; nothing if it does not compile.
pub fn references(text: &str) -> References {
    let mut found = References::default();
    found.add_text(text);
    found
}

/// Compiled templates by their text.
#[derive(Debug)]
pub struct Templates {
    texts: Mutex<Cache<String, Arc<Template>>>,
    guards: Mutex<Cache<String, Arc<Guard>>>,
}

impl Default for Templates {
    fn default() -> Self {
        Self { texts: Mutex::new(Cache::new(KEPT)), guards: Mutex::new(Cache::new(KEPT)) }
    }
}

impl Templates {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn template(&self, text: &str) -> Result<Arc<Template>, RenderError> {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        texts.get_or_make(text, || Template::compile(text).map(Arc::new))
    }

    /// The value of a text, with its native type.
    pub fn render(&self, text: &str, context: &Context) -> Result<Value, RenderError> {
        if !is_template(text) {
            return Ok(Value::from(text));
        }
        self.template(text)?.render(context)
    }

    /// A JSON value with every text in it rendered, names of fields included.
    pub fn render_json(&self, json: &Json, context: &Context) -> Result<Json, RenderError> {
        match json {
            Json::String(text) if is_template(text) => self.template(text)?.render_json(context),
            Json::Array(items) => items.iter().map(|item| self.render_json(item, context)).collect(),
            Json::Object(fields) => {
                let rendered = fields.iter().map(|(name, field)| {
                    let name =
                        if is_template(name) { self.template(name)?.render_text(context)? } else { name.clone() };
                    Ok((name, self.render_json(field, context)?))
                });
                rendered.collect::<Result<_, _>>().map(Json::Object)
            }
            other => Ok(other.clone()),
        }
    }

    /// Whether a guard holds: a boolean, a template, or a bare expression.
    pub fn truthy(&self, when: &Json, context: &Context) -> Result<bool, RenderError> {
        let Json::String(text) = when else { return Guard::compile(when)?.holds(context) };
        let guard = {
            let mut guards = self.guards.lock().unwrap_or_else(PoisonError::into_inner);
            guards.get_or_make(text.as_str(), || Guard::compile(when).map(Arc::new))?
        };
        guard.holds(context)
    }
}
