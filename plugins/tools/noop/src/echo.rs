//! The answer that says what was asked.

use noetl_sdk::tool::{Request, Response};

/// The arguments are valid JSON already, because the host checked them; they go back as the same text.
pub fn answer(request: Request) -> Response {
    Response { output: request.arguments, body: request.body }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_come_back_as_they_were() {
        let arguments = r#"{ "b": 1.0, "a": [null] }"#;
        let request = Request { arguments: arguments.into(), body: None, idempotency_key: "key".into(), attempt: 2 };
        let response = answer(request);
        assert_eq!(response.output, arguments);
        assert!(response.body.is_none());
    }
}
