//! Conditions: `when` of arcs, steps and rules.

use serde_json::Value as Json;

use super::compiled::Template;
use super::value::is_truthy;
use super::{Context, RenderError, is_template};

/// A condition. A text without braces is an expression, because nobody means a constant there.
#[derive(Debug)]
pub struct Guard(Kind);

#[derive(Debug)]
enum Kind {
    Constant(bool),
    Template(Template),
}

impl Guard {
    pub fn compile(when: &Json) -> Result<Self, RenderError> {
        Ok(Self(match when {
            Json::String(text) if is_template(text) => Kind::Template(Template::compile(text)?),
            Json::String(text) if text.trim().is_empty() => Kind::Constant(false),
            Json::String(text) => Kind::Template(Template::expression(text)?),
            other => Kind::Constant(is_truthy(&super::from_json(other))),
        }))
    }

    pub fn holds(&self, context: &Context) -> Result<bool, RenderError> {
        match &self.0 {
            Kind::Constant(holds) => Ok(*holds),
            Kind::Template(template) => template.render(context).map(|value| is_truthy(&value)),
        }
    }
}
