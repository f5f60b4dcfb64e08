//! How rendering fails.

use std::fmt;

use minijinja::{Error, ErrorKind};

use super::{FUEL, TEXT_BYTES, VALUE_BYTES};

/// Longest part of a template that is quoted in an error.
const QUOTED: usize = 120;

/// A template that does not compile or cannot be rendered with a context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderError {
    /// The template, shortened.
    pub template: String,
    /// The line in it, from 1, when it is known.
    pub line: Option<usize>,
    pub cause: Cause,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// It is not a template of this language.
    Syntax(String),
    /// It takes too long.
    Fuel,
    /// Its text would be too long.
    Text,
    /// Its value would be too large, or too deep.
    Value,
    /// It cannot be done with these values.
    Failed(String),
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Syntax(text) | Cause::Failed(text) => f.write_str(text),
            Cause::Fuel => write!(f, "takes more than {FUEL} instructions; do the work in a tool"),
            Cause::Text => write!(f, "gives more than {TEXT_BYTES} bytes of text"),
            Cause::Value => write!(f, "gives a value of more than {VALUE_BYTES} bytes, or nested too deeply"),
        }
    }
}

impl fmt::Display for RenderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "template `{}`: {}", self.template, self.problem())
    }
}

impl std::error::Error for RenderError {}

impl RenderError {
    pub(crate) fn new(template: &str, line: Option<usize>, cause: Cause) -> Self {
        Self { template: shorten(template), line, cause }
    }

    /// From an error of the engine in a part of a template that begins after so many lines of it.
    pub(crate) fn engine(template: &str, lines_before: usize, error: &Error) -> Self {
        Self::new(template, error.line().map(|line| line + lines_before), cause(error))
    }

    /// Without the template's text, for those who show it anyway.
    pub fn problem(&self) -> String {
        match self.line {
            Some(line) if line > 1 => format!("line {line}: {}", self.cause),
            _ => self.cause.to_string(),
        }
    }
}

fn cause(error: &Error) -> Cause {
    let text = match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    };
    match error.kind() {
        ErrorKind::SyntaxError => Cause::Syntax(text),
        ErrorKind::OutOfFuel => Cause::Fuel,
        ErrorKind::WriteFailure => Cause::Text,
        _ => Cause::Failed(text),
    }
}

/// The beginning of a text, on one line.
pub(crate) fn shorten(text: &str) -> String {
    let mut short: String = text.chars().take(QUOTED).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(QUOTED).is_some() {
        short.push('…');
    }
    short
}
