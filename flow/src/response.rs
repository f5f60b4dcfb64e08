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

/// The seconds a server asks to be left alone for: as it counts them, or until a date, which is counted from the date of
/// the answer itself, so that nobody's clock but the server's has to be right. What is over is 0.
pub fn retry_after(response: &Map<String, Json>) -> Option<Json> {
    let header = |name: &str| response.get("headers")?.get(name)?.as_str().map(str::trim);
    let text = header("retry-after")?;
    let seconds: f64 = match text.parse() {
        Ok(seconds) => seconds,
        Err(_) => (date(text)? - date(header("date")?)?).max(0) as f64,
    };
    let seconds = Some(seconds).filter(|seconds| seconds.is_finite() && *seconds >= 0.0)?;
    Some(if seconds.fract() == 0.0 && seconds < 1e15 { Json::from(seconds as u64) } else { Json::from(seconds) })
}

/// A date of a header, in seconds since 1970.
fn date(text: &str) -> Option<i64> {
    jiff::fmt::rfc2822::parse(text).ok().map(|date| date.timestamp().as_second())
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
    fn a_server_asks_for_seconds_or_for_a_time_by_its_own_clock() {
        let asked = |text: &str, date: Option<&str>| {
            let data = json!({"headers": {"retry-after": text, "date": date}});
            retry_after(data.as_object().expect("an object"))
        };
        assert_eq!((asked(" 3 ", None), asked("0.5", None)), (Some(json!(3)), Some(json!(0.5))));
        let (now, later) = ("Mon, 16 Nov 2026 16:00:00 GMT", "Mon, 16 Nov 2026 16:01:30 GMT");
        assert_eq!((asked(later, Some(now)), asked(now, Some(later))), (Some(json!(90)), Some(json!(0))));
        assert_eq!((asked(later, None), asked(later, Some("today"))), (None, None), "nobody knows what time it was");
        for wrong in ["-1", "inf", "NaN", "soon", ""] {
            assert_eq!(asked(wrong, Some(now)), None, "{wrong}");
        }
    }
}
