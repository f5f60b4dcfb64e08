//! What a result says of the HTTP answer it is, for those who ask how a step ended.
//!
//! A result with a `status_code` is an answer; of a pipeline it is the last of its tools' results that is one. Rules, guards
//! and templates all ask here, so that a failure has the same fields wherever it is looked at.

use serde_json::{Map, Value as Json, json};

/// The answer in a result.
pub fn response(data: &Json) -> Option<&Map<String, Json>> {
    let is_answer = |value: &Json| value.get("status_code").is_some_and(Json::is_number);
    if is_answer(data) {
        return data.as_object();
    }
    data.as_object()?.values().rev().find(|value| is_answer(value))?.as_object()
}

/// `http` of an answer: its status and headers.
pub fn http(response: &Map<String, Json>) -> Json {
    json!({"status": response.get("status_code"), "headers": response.get("headers")})
}

/// What an error says of the answer it was: `http_status`, and `retry_after` if the server asks for it.
pub fn details(response: &Map<String, Json>) -> Map<String, Json> {
    let mut fields = Map::new();
    fields.extend(response.get("status_code").map(|status| ("http_status".to_owned(), status.clone())));
    fields.extend(retry_after(response).map(|seconds| ("retry_after".to_owned(), seconds)));
    fields
}

/// The seconds a server asks to be left alone for. A date says nothing to whoever has no clock.
pub fn retry_after(response: &Map<String, Json>) -> Option<Json> {
    let text = response.get("headers")?.get("retry-after")?.as_str()?.trim();
    let seconds: f64 = text.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0)?;
    Some(if seconds.fract() == 0.0 && seconds < 1e15 { Json::from(seconds as u64) } else { Json::from(seconds) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_found_in_a_result_and_in_that_of_a_pipeline() {
        let busy = json!({"status_code": 429, "headers": {"retry-after": "2"}, "data": null});
        let several = json!({"first": {"status_code": 200}, "ask": busy, "after": {"rows": []}});
        for data in [&busy, &several] {
            let found = response(data).expect("an answer");
            assert_eq!(http(found), json!({"status": 429, "headers": {"retry-after": "2"}}));
            assert_eq!(Json::Object(details(found)), json!({"http_status": 429, "retry_after": 2}));
        }
        for data in [json!(null), json!([1]), json!({"status_code": "x"}), json!({"a": 1, "b": {"status": 200}})] {
            assert_eq!(response(&data), None, "{data}");
        }
    }

    #[test]
    fn only_seconds_are_waited() {
        let asked = |text: &str| {
            let data = json!({"headers": {"retry-after": text}});
            retry_after(data.as_object().expect("an object"))
        };
        assert_eq!((asked(" 3 "), asked("0.5")), (Some(json!(3)), Some(json!(0.5))));
        assert_eq!((asked("-1"), asked("Mon, 16 Nov 2026 16:00:00 GMT")), (None, None));
    }
}
