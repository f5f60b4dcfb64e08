//! What a tool is asked and what it answers: options and output as JSON, bulk by reference.

pub use crate::bindings::noetl::worlds::tooling::{Request, Response};
use crate::payload::Payload;

#[cfg(feature = "json")]
impl Request {
    /// The arguments as a value of your own; what does not fit is the failure `invalid_input`.
    pub fn parse<T: serde::de::DeserializeOwned>(&self) -> Result<T, crate::Failure> {
        serde_json::from_str(&self.arguments)
            .map_err(|error| crate::Failure::invalid_input(format_args!("the arguments are not right: {error}")))
    }
}

impl Response {
    /// Answer with text that is JSON already.
    pub fn raw(output: impl Into<String>) -> Self {
        Self { output: output.into(), body: None }
    }

    /// Answer with a value.
    #[cfg(feature = "json")]
    pub fn json<T: serde::Serialize + ?Sized>(output: &T) -> Result<Self, crate::Failure> {
        crate::json::to_text(output).map(Self::raw)
    }

    /// Add bulk output. It is handed on by reference; the bytes do not enter the guest.
    #[must_use]
    pub fn with_body(mut self, body: Payload) -> Self {
        self.body = Some(body);
        self
    }
}

#[cfg(all(test, feature = "json"))]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_do_not_fit_say_where() {
        let request =
            Request { arguments: r#"{"count":"x"}"#.into(), body: None, idempotency_key: "k".into(), attempt: 1 };
        let failure = request.parse::<std::collections::BTreeMap<String, u32>>().expect_err("a text is no number");
        assert_eq!(failure.code, "invalid_input");
        assert!(failure.message.contains("column"), "{failure}");
    }
}
