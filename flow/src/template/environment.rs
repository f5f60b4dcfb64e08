//! The engine, set up.
//!
//! One environment serves all: it knows filters and functions and no template, and is never changed, so compiled
//! expressions can refer to it for ever. `namespace` and `debug` are taken away: the first can build values so deep
//! that they cannot be dropped, the second shows the whole context.

use std::sync::LazyLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, State, UndefinedBehavior, Value};

use super::context::NOW;
use super::error::Cause;
use super::keychain::CREDENTIALS;
use super::value::write_text;
use super::{FUEL, TEXT_BYTES, filters, methods};

/// The name of the one template in an environment that has one.
pub(super) const TEMPLATE: &str = "template";

static BASE: LazyLock<Environment<'static>> = LazyLock::new(build);

pub(super) fn base() -> &'static Environment<'static> {
    &BASE
}

/// An environment with one template in it.
pub(super) fn with_template(text: &str) -> Result<Environment<'static>, Error> {
    let mut environment = BASE.clone();
    environment.add_template_owned(TEMPLATE, text.to_owned())?;
    Ok(environment)
}

fn build() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_fuel(Some(FUEL));
    let syntax = SyntaxConfig::builder().keep_trailing_newline(true).build();
    environment.set_syntax(syntax.expect("the default delimiters are distinct"));
    environment.set_formatter(|out, _, value| {
        let mut text = String::new();
        write_text(value, &mut text, TEXT_BYTES).map_err(refusal)?;
        out.write_str(&text).map_err(Error::from)
    });
    environment.remove_global("debug");
    environment.remove_global("namespace");
    environment.add_function("now", |state: &State| state.lookup(NOW));
    environment.add_function("token", |state: &State, alias: Value| {
        let credentials = state.lookup(CREDENTIALS).unwrap_or_default();
        credentials.get_item(&alias)?.get_attr("token")
    });
    filters::add(&mut environment);
    methods::add(&mut environment);
    environment
}

/// What a filter or the formatter says when a value cannot become text.
pub(super) fn refusal(cause: Cause) -> Error {
    match cause {
        Cause::Text | Cause::Value => Error::from(ErrorKind::WriteFailure),
        other => Error::new(ErrorKind::InvalidOperation, other.to_string()),
    }
}
