//! What the client's many errors come to.

use std::fmt::Display;

/// Why NATS did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NatsError {
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    NotFound(String),
    #[error("no answer in time")]
    Timeout,
    #[error("{0} bytes are too many")]
    TooLarge(u64),
    #[error("{0}")]
    Unavailable(String),
    #[error("{0}")]
    Refused(String),
}

impl NatsError {
    /// Each function of the client has an error type of its own, and what the server said is only in its text, which is
    /// stable: the server's own descriptions.
    pub(super) fn of(doing: &str, error: &dyn Display) -> Self {
        let text = error.to_string();
        let lower = text.to_ascii_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        let told = format!("{doing}: {text}");
        if says(&["stream not found", "consumer not found", "bucket not found", "object not found"]) {
            Self::NotFound(told)
        } else if says(&["timed out", "timeout"]) {
            Self::Timeout
        } else if says(&["invalid"]) {
            Self::Invalid(told)
        } else if says(&["no responders", "disconnected", "connection", "broken pipe"]) {
            Self::Unavailable(told)
        } else {
            Self::Refused(told)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_says_decides_what_an_error_is() {
        let of = |text: &str| NatsError::of("read `a`", &text);
        let gone = "failed to get the bucket: JetStream error: 404 (stream not found)";
        assert_eq!(of(gone), NatsError::NotFound(format!("read `a`: {gone}")));
        assert_eq!(of("request timed out"), NatsError::Timeout);
        assert!(matches!(of("invalid key"), NatsError::Invalid(_)));
        assert!(matches!(of("no responders"), NatsError::Unavailable(_)));
        assert!(matches!(of("wrong last sequence"), NatsError::Refused(_)));
    }
}
