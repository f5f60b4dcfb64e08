//! One template, ready to be rendered.
//!
//! A template without statements is its expressions with text between them, each compiled by itself: that way a lone
//! expression gives its value, the length of the text is watched while it grows, and nothing has to be looked up by
//! name. Only a template with statements is one of the engine's own, in an environment of its own, which costs little
//! since environments share everything but their templates.

use std::collections::BTreeSet;
use std::io;

use minijinja::value::ValueKind;
use minijinja::{Environment, Error, Expression, Value};
use serde_json::Value as Json;

use super::environment::{TEMPLATE, base, with_template};
use super::error::{Cause, RenderError};
use super::path::Path;
use super::split::{Part, split};
use super::value::{from_json, to_json, write_text};
use super::written::{Written, written};
use super::{Context, TEXT_BYTES, is_template};

#[derive(Debug)]
pub struct Template {
    text: String,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// No template at all.
    Plain,
    /// `json`: its last filter is `tojson`, and what that gives is the value and not its text.
    Lone {
        code: Code,
        json: bool,
    },
    Mixed(Vec<Piece>),
    Statements(Box<Environment<'static>>),
}

#[derive(Debug)]
enum Piece {
    Text(String),
    Code(Code),
}

#[derive(Debug)]
enum Code {
    Path(Path),
    Expression {
        compiled: Box<Expression<'static, 'static>>,
        /// Lines of the template before it.
        lines: usize,
    },
}

impl Template {
    pub fn compile(text: &str) -> Result<Self, RenderError> {
        let kind = if is_template(text) { compile(text)? } else { Kind::Plain };
        Ok(Self { text: text.to_owned(), kind })
    }

    /// A text that is an expression without braces around it.
    pub fn expression(text: &str) -> Result<Self, RenderError> {
        Ok(Self { text: text.to_owned(), kind: Kind::Lone { code: compile_code(text, text, 0)?, json: false } })
    }

    /// Whether rendering gives the text itself.
    pub fn is_plain(&self) -> bool {
        matches!(self.kind, Kind::Plain)
    }

    /// Names that a template with statements takes from outside, as the engine tells them; those of functions are among
    /// them. Nothing for a template without, whose names [`References`](super::References) knows.
    pub(crate) fn names(&self) -> Option<BTreeSet<String>> {
        let Kind::Statements(environment) = &self.kind else { return None };
        let template = environment.get_template(TEMPLATE).ok()?;
        Some(template.undeclared_variables(false).into_iter().collect())
    }

    /// With its native type, if it is a lone expression.
    pub fn render(&self, context: &Context) -> Result<Value, RenderError> {
        match &self.kind {
            Kind::Plain => Ok(Value::from(self.text.as_str())),
            Kind::Lone { code, json } => self.evaluate(code, context).map(|value| native(value, *json)),
            Kind::Mixed(_) | Kind::Statements(_) => self.render_text(context).map(Value::from),
        }
    }

    /// What a lone expression gives, and its JSON text; nothing for other templates.
    pub fn render_lone(&self, context: &Context) -> Result<Option<(Value, Written)>, RenderError> {
        let Kind::Lone { code, json } = &self.kind else { return Ok(None) };
        let value = native(self.evaluate(code, context)?, *json);
        let written = written(&value).map_err(|cause| RenderError::new(&self.text, None, cause))?;
        Ok(Some((value, written)))
    }

    pub fn render_json(&self, context: &Context) -> Result<Json, RenderError> {
        match &self.kind {
            Kind::Lone { code, json } => {
                let value = native(self.evaluate(code, context)?, *json);
                to_json(&value).map_err(|cause| RenderError::new(&self.text, None, cause))
            }
            _ => self.render_text(context).map(Json::String),
        }
    }

    pub fn render_text(&self, context: &Context) -> Result<String, RenderError> {
        let mut out = String::new();
        match &self.kind {
            Kind::Plain => out.push_str(&self.text),
            Kind::Lone { code, .. } => self.write(code, context, &mut out)?,
            Kind::Mixed(pieces) => {
                for piece in pieces {
                    match piece {
                        Piece::Text(text) => out.push_str(text),
                        Piece::Code(code) => self.write(code, context, &mut out)?,
                    }
                }
                if out.len() > TEXT_BYTES {
                    return Err(RenderError::new(&self.text, None, Cause::Text));
                }
            }
            Kind::Statements(environment) => return self.render_statements(environment, context),
        }
        Ok(out)
    }

    fn evaluate(&self, code: &Code, context: &Context) -> Result<Value, RenderError> {
        match code {
            Code::Path(path) => match path.get(context) {
                value if value.kind() == ValueKind::Invalid => {
                    Err(RenderError::new(&self.text, None, Cause::Failed(value.to_string())))
                }
                value => Ok(value),
            },
            Code::Expression { compiled, lines } => {
                compiled.eval(context.root()).map_err(|error| RenderError::engine(&self.text, *lines, &error))
            }
        }
    }

    fn write(&self, code: &Code, context: &Context, out: &mut String) -> Result<(), RenderError> {
        let value = self.evaluate(code, context)?;
        write_text(&value, out, TEXT_BYTES).map_err(|cause| RenderError::new(&self.text, None, cause))
    }

    fn render_statements(&self, environment: &Environment<'static>, context: &Context) -> Result<String, RenderError> {
        let mut out = Bounded(Vec::new());
        environment
            .get_template(TEMPLATE)
            .and_then(|template| template.render_captured_to(context.root(), &mut out).map(drop))
            .map_err(|error| RenderError::engine(&self.text, 0, &error))?;
        String::from_utf8(out.0).map_err(|_| {
            RenderError::new(&self.text, None, Cause::Failed("it gives bytes that are no text".to_owned()))
        })
    }
}

fn compile(text: &str) -> Result<Kind, RenderError> {
    let parts = split(text).map_err(|(line, cause)| RenderError::new(text, Some(line), cause))?;
    if parts.iter().any(|part| matches!(part, Part::Statement(_))) {
        let environment = with_template(text).map_err(|error| RenderError::engine(text, 0, &error))?;
        return Ok(Kind::Statements(Box::new(environment)));
    }
    let is_blank = |part: &&Part| matches!(part, Part::Text(text) if text.trim().is_empty());
    let mut code = parts.iter().filter(|part| !is_blank(part));
    if let (Some(Part::Expression(lone, lines)), None) = (code.next(), code.next()) {
        return Ok(Kind::Lone { code: compile_code(text, lone, *lines)?, json: ends_in_json(lone) });
    }
    let pieces = parts.into_iter().map(|part| {
        Ok(match part {
            Part::Text(text) | Part::Statement(text) => Piece::Text(text.to_owned()),
            Part::Expression(code, lines) => Piece::Code(compile_code(text, code, lines)?),
        })
    });
    pieces.collect::<Result<_, _>>().map(Kind::Mixed)
}

/// Whether code is a variable, perhaps with filters, whose last one is `tojson` without a word on how it is to look. In
/// longer code it may be about a part of it only.
fn ends_in_json(code: &str) -> bool {
    let code = code.trim_end();
    let code = code.strip_suffix("()").unwrap_or(code);
    let before = ["tojson", "to_json"].iter().find_map(|filter| code.strip_suffix(filter));
    let Some(value) = before.and_then(|before| before.trim_end().strip_suffix('|')) else { return false };
    let mut filters = value.split('|');
    let is_filter = |name: &str| name.trim().bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    filters.next().is_some_and(|first| Path::parse(first).is_some()) && filters.all(is_filter)
}

/// A value for its JSON, unless that is the JSON of a text: whoever asks for that wants its quotes.
fn native(value: Value, json: bool) -> Value {
    if !json {
        return value;
    }
    match value.as_str().map(serde_json::from_str::<Json>) {
        None | Some(Err(_) | Ok(Json::String(_))) => value,
        Some(Ok(read)) => from_json(&read),
    }
}

fn compile_code(text: &str, code: &str, lines: usize) -> Result<Code, RenderError> {
    if let Some(path) = Path::parse(code) {
        return Ok(Code::Path(path));
    }
    let compiled = base().compile_expression_owned(code.trim_end().to_owned());
    let compiled = compiled.map_err(|error: Error| RenderError::engine(text, lines, &error))?;
    Ok(Code::Expression { compiled: Box::new(compiled), lines })
}

/// Text that refuses to grow too long.
struct Bounded(Vec<u8>);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > TEXT_BYTES {
            return Err(io::Error::other("too long"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
