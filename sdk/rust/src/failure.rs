//! Why a plugin could not do its work, as an answer.
//!
//! A failure is not a crash: it does not count against the component, and the code is for rules to match. The errors
//! of the capabilities turn into failures with `?`, each with a code of its own and an honest `retryable`.

use std::fmt;

use crate::bindings::noetl::worlds::failures;

/// The answer of a plugin that could not do its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Stable, for rules to match: `invalid_input`, `not_found`, ...
    pub code: String,
    /// For people.
    pub message: String,
    /// Whether trying the same call again can help.
    pub retryable: bool,
}

impl Failure {
    /// A failure that trying again does not mend. Codes are lower case with `_` between words.
    pub fn new(code: impl Into<String>, message: impl fmt::Display) -> Self {
        Self { code: code.into(), message: message.to_string(), retryable: false }
    }

    /// A failure that may be gone at the next attempt.
    pub fn retryable(code: impl Into<String>, message: impl fmt::Display) -> Self {
        Self { retryable: true, ..Self::new(code, message) }
    }

    /// The caller sent something the plugin cannot work with.
    pub fn invalid_input(message: impl fmt::Display) -> Self {
        Self::new("invalid_input", message)
    }

    /// What the caller asked for is not there.
    pub fn not_found(message: impl fmt::Display) -> Self {
        Self::new("not_found", message)
    }

    /// Something the plugin depends on did not answer; trying again may help.
    pub fn unavailable(message: impl fmt::Display) -> Self {
        Self::retryable("unavailable", message)
    }

    /// Put words in front of the message: what was being done when it failed.
    #[must_use]
    pub fn context(mut self, doing: impl fmt::Display) -> Self {
        self.message = format!("{doing}: {}", self.message);
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Failure {}

impl From<Failure> for failures::Failure {
    fn from(Failure { code, message, retryable }: Failure) -> Self {
        Self { code, message, retryable }
    }
}

macro_rules! invalid_input_from {
    ($($error:ty),* $(,)?) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::invalid_input(error)
            }
        })*
    };
}

// Errors of parsing: in a plugin they nearly always speak about what the caller sent.
invalid_input_from!(
    std::string::FromUtf8Error,
    std::str::Utf8Error,
    std::num::ParseIntError,
    std::num::ParseFloatError,
    std::num::TryFromIntError,
    std::str::ParseBoolError,
    std::char::ParseCharError,
);

#[cfg(feature = "json")]
invalid_input_from!(serde_json::Error);

impl From<std::io::Error> for Failure {
    /// A payload's error that went through `Read` or `Write` keeps its own code.
    fn from(error: std::io::Error) -> Self {
        match error.downcast::<crate::payload::Error>() {
            Ok(error) => error.into(),
            Err(error) => Self::new("io", error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<u32, Failure> {
        Ok(text.parse::<u32>()?)
    }

    #[test]
    fn what_does_not_parse_is_the_callers_fault() {
        let failure = parse("many").expect_err("not a number").context("reading `count`");
        assert_eq!(failure.code, "invalid_input");
        assert!(failure.message.starts_with("reading `count`: "), "{failure}");
        assert!(!failure.retryable);
    }

    #[test]
    fn a_payload_error_keeps_its_code_through_io() {
        let error = std::io::Error::other(crate::payload::Error::Unavailable("store is closed".into()));
        let failure = Failure::from(error);
        assert_eq!((failure.code.as_str(), failure.retryable), ("unavailable", true));
        assert_eq!(Failure::from(std::io::Error::other("disk")).code, "io");
    }
}
