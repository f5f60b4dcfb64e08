//! What options come to.

use serde_json::json;

use super::*;

fn plan(options: Value) -> Result<Plan, Failure> {
    with_body(options, false)
}

fn with_body(options: Value, has_body: bool) -> Result<Plan, Failure> {
    Options::read(&options.to_string())?.plan(has_body)
}

fn good(options: Value) -> Plan {
    plan(options.clone()).unwrap_or_else(|failure| panic!("{options}: {failure}"))
}

fn sent_text(plan: &Plan) -> (&str, &str) {
    match &plan.sent {
        Sent::Text { media_type, text } => (media_type, text),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_method_follows_from_what_is_sent() {
    assert_eq!(good(json!({"url": "http://a/"})).method, "GET");
    assert_eq!(good(json!({"endpoint": "http://a/", "text": "x"})).method, "POST");
    assert_eq!(good(json!({"url": "http://a/", "method": "patch", "json": 1})).method, "PATCH");
    let by_reference = with_body(json!({"url": "http://a/"}), true).expect("a plan");
    assert_eq!((by_reference.method.as_str(), by_reference.sent), ("POST", Sent::Body));
}

#[test]
fn each_kind_of_body_is_written_its_own_way() {
    let url = "http://a/";
    for (options, media_type, text) in [
        (json!({"json": {"a": [1, null]}}), "application/json", r#"{"a":[1,null]}"#),
        (json!({"body": {"a": 1}}), "application/json", r#"{"a":1}"#),
        (json!({"body": "{\"a\": 1}"}), "application/json", "{\"a\": 1}"),
        (json!({"body": "plain"}), "text/plain; charset=utf-8", "plain"),
        (json!({"text": 7}), "text/plain; charset=utf-8", "7"),
        (
            json!({"form": {"a": "b c", "n": null, "l": [1, true]}}),
            "application/x-www-form-urlencoded",
            "a=b%20c&l=1&l=true",
        ),
        (json!({"form": {"a": {"b": 1}}}), "application/x-www-form-urlencoded", "a=%7B%22b%22%3A1%7D"),
        (json!({"data": {"a": 1}}), "application/json", r#"{"a":1}"#),
        (json!({"payload": [1]}), "application/json", "[1]"),
        (json!({"data": "a=1"}), "text/plain; charset=utf-8", "a=1"),
        (
            json!({"data": {"a": "x&y"}, "headers": {"Content-Type": "application/x-www-form-urlencoded"}}),
            "application/x-www-form-urlencoded",
            "a=x%26y",
        ),
    ] {
        let mut whole = json!({"url": url, "method": "POST"});
        whole.as_object_mut().expect("an object").extend(options.as_object().cloned().expect("an object"));
        let plan = good(whole);
        assert_eq!(sent_text(&plan), (media_type, text), "{options}");
        let types = plan.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("content-type")).count();
        assert_eq!(types, 1, "{options}");
    }
}

#[test]
fn a_get_with_data_asks_for_it() {
    let plan = good(json!({"url": "http://a/?x=1", "method": "GET", "data": {"q": "a b", "x": 2}, "params": {"x": 3}}));
    assert_eq!((plan.url.as_str(), &plan.sent), ("http://a/?x=1&q=a%20b&x=3", &Sent::Nothing));
    assert_eq!(sent_text(&good(json!({"url": "http://a/", "method": "GET", "json": {"q": 1}}))).1, r#"{"q":1}"#);
}

#[test]
fn parameters_are_encoded_and_nulls_left_out() {
    let params = json!({"page": 2, "q": "ä&=?#", "none": null, "tag": ["a", 1, null, false], "r": 1.5});
    let plan = good(json!({"url": "http://a/p#part", "params": params}));
    assert_eq!(plan.url, "http://a/p?page=2&q=%C3%A4%26%3D%3F%23&tag=a&tag=1&tag=false&r=1.5#part");
    assert_eq!(good(json!({"url": "http://a/", "params": "a=1"})).url, "http://a/?a=1");
    assert_eq!(good(json!({"url": "http://a/?", "params": {}})).url, "http://a/?");
    assert_eq!(good(json!({"url": "http://a/", "params": "{\"a\": 1}"})).url, "http://a/?a=1");
    let secret = "NOETL~SECRET~api.2F1~token~END";
    assert!(good(json!({"url": "http://a/", "params": {"key": secret}})).url.contains(secret));
    let of_map = good(json!({"url": "http://a/", "params": {"a": {"b": 1}, "c": ["x", {"d": 2}]}}));
    assert_eq!(of_map.url, "http://a/?a=%7B%22b%22%3A1%7D&c=x&c=%7B%22d%22%3A2%7D");
    assert!(plan_fails(json!({"url": "http://a/", "params": {"a": [[1]]}})));
}

fn plan_fails(options: Value) -> bool {
    plan(options).is_err_and(|failure| failure.code == "invalid_input")
}

#[test]
fn two_things_to_send_are_refused() {
    assert!(plan_fails(json!({"url": "http://a/", "json": 1, "text": "x"})));
    assert!(plan_fails(json!({"url": "http://a/", "data": {}, "payload": {}})));
    assert!(with_body(json!({"url": "http://a/", "json": 1}), true).is_err());
    assert_eq!(good(json!({"url": "http://a/", "json": null, "text": "x"})).method, "POST");
}

#[test]
fn times_are_seconds_or_milliseconds_and_may_be_text() {
    let time = |options: Value| {
        let mut whole = json!({"url": "http://a/"});
        whole.as_object_mut().expect("an object").extend(options.as_object().cloned().expect("an object"));
        plan(whole).map(|plan| plan.timeout.map(|time| time.as_millis()))
    };
    for (options, expected) in [
        (json!({}), None),
        (json!({"timeout": null}), None),
        (json!({"timeout": 2}), Some(2000)),
        (json!({"timeout_seconds": "1.5"}), Some(1500)),
        (json!({"timeout": "250ms"}), Some(250)),
        (json!({"timeout": "2m"}), Some(120_000)),
        (json!({"timeout_ms": 70, "timeout": 9}), Some(70)),
        (json!({"timeout_ms": "70"}), Some(70)),
    ] {
        assert_eq!(time(options.clone()), Ok(expected), "{options}");
    }
    assert!(time(json!({"timeout": "soon"})).is_err() && time(json!({"timeout": 0})).is_err());
}

#[test]
fn redirects_and_certificates_are_as_they_are_asked_for() {
    let redirects =
        |value: Value| plan(json!({"url": "http://a/", "follow_redirects": value})).map(|plan| plan.redirects);
    let usual = good(json!({"url": "http://a/"}));
    assert_eq!((usual.redirects, usual.shows_redirects), (5, false));
    let stays = good(json!({"url": "http://a/", "allow_redirects": "false"}));
    assert_eq!((stays.redirects, stays.shows_redirects, redirects(json!(0))), (0, true, Ok(0)));
    assert_eq!((redirects(json!(true)), redirects(json!("true")), redirects(json!(3))), (Ok(5), Ok(5), Ok(3)));
    assert!(redirects(json!(21)).is_err() && redirects(json!("yes")).is_err());
    let verified = |options: &str| good(serde_json::from_str(options).expect("JSON")).verified;
    assert!(verified(r#"{"url": "https://a/"}"#));
    assert!(!verified(r#"{"url": "https://a/", "verify_ssl": false}"#));
    assert!(!verified(r#"{"url": "HTTPS://a/", "verify": "false"}"#));
    assert!(verified(r#"{"url": "https://a/", "verify_tls": null, "verify": null}"#));
    assert!(verified(r#"{"url": "http://a/", "verify_ssl": false}"#), "there is no certificate");
    assert!(verified(r#"{"url": "HTTP://a/", "verify_ssl": false}"#));
}

#[test]
fn a_method_or_the_step_says_whether_a_request_may_be_made_again() {
    let repeatable =
        |method: &str, said: Value| good(json!({"url": "http://a/", "method": method, "retry_safe": said})).repeatable;
    for (method, expected) in [("get", true), ("PUT", true), ("delete", true), ("POST", false), ("PATCH", false)] {
        assert_eq!(repeatable(method, json!(null)), expected, "{method}");
        assert!(repeatable(method, json!(true)) && !repeatable(method, json!(false)), "{method}");
    }
    assert!(!good(json!({"url": "http://a/", "json": {}})).repeatable, "what sends something is a POST");
}

#[test]
fn a_credential_is_named_by_its_alias() {
    let alias = |options: Value| good(options).credential;
    assert_eq!(alias(json!({"url": "http://a/", "auth": "api"})).as_deref(), Some("api"));
    assert_eq!(alias(json!({"url": "http://a/", "credential": "api"})).as_deref(), Some("api"));
    assert_eq!(alias(json!({"url": "http://a/", "auth": {"credential": "api"}})).as_deref(), Some("api"));
    assert_eq!(alias(json!({"url": "http://a/", "auth": ""})), None);
    assert!(plan_fails(json!({"url": "http://a/", "auth": {"type": "bearer"}})));
}

#[test]
fn an_unknown_option_is_passed_over_and_a_missing_address_refused() {
    assert_eq!(good(json!({"url": "http://a/", "time_out": 3, "retry": {"max_attempts": 3}})).timeout, None);
    assert!(plan_fails(json!({"method": "GET"})) && plan_fails(json!({"url": "  "})));
    good(json!({"url": "http://a/", "input": {"a": 1}, "args": {}, "assert": {}, "desc": "x", "description": "x"}));
}

#[test]
fn headers_are_an_object_or_the_json_of_one() {
    let headers = |value: Value| plan(json!({"url": "http://a/", "headers": value})).map(|plan| plan.headers);
    let one = || Ok(vec![("b".to_owned(), "1".to_owned())]);
    assert_eq!(headers(json!({"a": null, "b": 1})), one());
    assert_eq!(headers(json!("{\"b\": 1}")), one());
    assert_eq!(headers(json!({"Accept-Encoding": "gzip", "b": 1})), one(), "which is the host's business");
    assert_eq!((headers(json!(null)), headers(json!(" "))), (Ok(Vec::new()), Ok(Vec::new())));
    assert!(headers(json!(["a"])).is_err() && headers(json!("a: b")).is_err());
    for (value, text) in [(json!({"c": "d"}), r#"{"c":"d"}"#), (json!([1, "e"]), r#"[1,"e"]"#)] {
        assert_eq!(headers(json!({"b": value})), Ok(vec![("b".to_owned(), text.to_owned())]));
    }
}
