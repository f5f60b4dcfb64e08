//! Whatever comes in, something sensible comes out.

use std::time::Instant;

use proptest::prelude::*;

use super::*;

fn turn<'a>(task: &'a [u8], continuation: &'a [u8], news: News) -> Turn<'a> {
    Turn { execution: 1, command: "s#1", time_ms: 0, task, continuation, news }
}

fn code(next: super::super::turn::Next) -> String {
    let Action::Done(done) = next.action else { panic!("it goes on with {:?}", next.action) };
    let report: Report = serde_json::from_slice(&done.report).expect("a report");
    report.error.map(|error| error.code).unwrap_or_default()
}

fn called(output: &str) -> News {
    let outcome = Ok(Answered { output: output.to_owned(), body: None });
    News::Called(Called { outcome, duration_ms: 1, plugin: "p".into(), digest: "d".into() })
}

#[test]
fn what_cannot_be_followed_is_an_error_of_the_command() {
    let good = format!("{}\n{}", object(tool("t", json!({"config": {"a": "{{ x }}"}}))), json!({"context": {}}));
    let bad_template = object(tool("t", json!({"config": {"a": "{{ x + }}"}}))).to_string();
    let bad_inputs = format!("{}\n[1", object(tool("t", json!({"config": {"a": "{{ x }}"}}))));
    let mut runner = Runner::new();
    let calling = runner.advance(turn(good.as_bytes(), b"", News::Begin)).continuation;
    let text = String::from_utf8(calling.clone()).expect("JSON");
    let newer = text.replacen("\"v\":1", "\"v\":2", 1);
    assert_ne!(newer, text);
    let elsewhere = text.replacen("\"v\":1", "\"v\":1,\"at\":7", 1);
    for (task, continuation, news, expected) in [
        (&b""[..], &b""[..], News::Begin, "invalid_task"),
        (b"{}", b"", News::Begin, "invalid_task"),
        (b"\xff\n\xff", b"", News::Begin, "invalid_task"),
        (br#"{"step":"s","tools":[],"pipeline":false}"#, b"", News::Begin, "invalid_task"),
        (bad_template.as_bytes(), b"", News::Begin, "invalid_task"),
        (bad_inputs.as_bytes(), b"", News::Begin, "invalid_task"),
        (good.as_bytes(), b"", News::Slept, "invalid_continuation"),
        (good.as_bytes(), b"garbage", called("1"), "invalid_continuation"),
        (good.as_bytes(), newer.as_bytes(), called("1"), "invalid_continuation"),
        (good.as_bytes(), elsewhere.as_bytes(), called("1"), "invalid_continuation"),
        (good.as_bytes(), &calling, News::Begin, "invalid_turn"),
        (good.as_bytes(), &calling, News::Slept, "invalid_turn"),
        (good.as_bytes(), &calling, News::Resolved(Vec::new()), "invalid_turn"),
        (good.as_bytes(), &calling, called("not json"), "invalid_output"),
        (good.as_bytes(), &calling, called("1"), ""),
    ] {
        assert_eq!(code(runner.advance(turn(task, continuation, news.clone()))), expected, "{news:?}");
    }
}

/// Prints what a turn costs; `cargo test --release -- --nocapture` says it best.
#[test]
fn a_command_of_one_small_tool() {
    let spec = object(tool(
        "get",
        json!({"kind": "noop", "config": {"message": "hello {{ name }}", "n": "{{ fetch.count }}"}}),
    ));
    let inputs =
        json!({"context": {"name": "ada", "fetch": {"count": 3, "rows": [1, 2, 3]}}, "results": [["fetch", false]]});
    let task = format!("{spec}\n{inputs}");
    let mut runner = Runner::new();
    let rounds = 2_000;
    let start = Instant::now();
    for _ in 0..rounds {
        let next = runner.advance(turn(task.as_bytes(), b"", News::Begin));
        assert!(matches!(&next.action, Action::Call(call) if call.arguments == r#"{"message":"hello ada","n":3}"#));
        let done = runner.advance(turn(task.as_bytes(), &next.continuation, called(r#"{"status":"ok"}"#)));
        assert!(matches!(done.action, Action::Done(_)));
    }
    println!("{} ns a command of two turns", start.elapsed().as_nanos() / rounds);
}

/// A runner may know its last continuation from making it; that must not be seen in what it does.
#[test]
fn a_runner_that_kept_a_large_continuation_does_what_one_does_that_reads_it() {
    let set = json!([{"action": "continue", "set": {"iter.rows": "{{ output.data.rows }}", "iter.odd": "{{ output.data.odd }}"}}]);
    let again = json!([{"when": "{{ _attempt < 3 }}", "action": {"retry": {"attempts": 3, "backoff": "fixed", "delay_ms": 5,
                        "max_delay_ms": 5, "jitter": 0.5}}}, {"when": "{{ iter.rows[0].n < 3 }}", "action": {"jump": {"to": "get"}}}]);
    let spec = list(vec![
        tool("get", json!({"rules": set})),
        tool("put", json!({"config": {"sql": "{{ iter.rows | tojson }}", "odd": "{{ iter.odd }}"}, "rules": again})),
    ]);
    let task = format!("{spec}\n{}", json!({"context": {}}));
    let (mut one, mut got, mut turns, mut large) = (Runner::new(), 0, 0, 0);
    let (mut news, mut continuation) = (News::Begin, Vec::new());
    loop {
        let now = turn(task.as_bytes(), &continuation, news);
        let next = one.advance(now.clone());
        assert_eq!(next, Runner::new().advance(now), "turn {turns}");
        (turns, large) = (turns + 1, large + usize::from(next.continuation.len() > 10_000));
        continuation = next.continuation;
        news = match next.action {
            Action::Call(call) if call.label == "get" => {
                got += 1;
                let rows: Vec<Json> = (0..200).map(|row| json!({"n": got, "row": row, "text": "é\"\\\u{1}"})).collect();
                let odd = json!([0.1, 1e300, -0.0, u64::MAX, i64::MIN, {"b": 1, "a": null}, ""]);
                called(&json!({"rows": rows, "odd": odd}).to_string())
            }
            Action::Call(_) => called("{}"),
            Action::Sleep(_) => News::Slept,
            Action::Done(_) => break,
            other => panic!("{other:?}"),
        };
    }
    assert!(large >= 6, "{large} of {turns} turns");
    // Bytes that are not what was kept are read for what they are.
    let first = one.advance(turn(task.as_bytes(), b"", News::Begin));
    let kept =
        one.advance(turn(task.as_bytes(), &first.continuation, called(&json!({"rows": vec!["x"; 1000]}).to_string())));
    assert_eq!(code(one.advance(turn(task.as_bytes(), &kept.continuation[1..], called("{}")))), "invalid_continuation");
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop::sample::select(vec![
        ",\"s\":\"calling\"",
        ",\"s\":\"sleeping\"",
        ",\"s\":\"preparing\"",
        ",\"at\":1",
        ",\"at\":4294967295",
        ",\"counts\":[[4294967295,4294967295]]",
        ",\"tried\":4294967295",
        ",\"calls\":4294967295",
        ",\"took\":18446744073709551615",
        ",\"results\":{\"a\":1}",
        ",\"running\":{\"iter\":3}",
        ",\"s\":{\"executing\":{\"path\":\"p\",\"wanted\":\"output\"}}",
        ",\"s\":{\"settling\":{\"data\":1,\"answered\":true}}",
    ]);
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        prop::collection::vec(pieces, 1..6).prop_map(|pieces| {
            let pieces: std::collections::BTreeSet<_> = pieces.into_iter().collect();
            format!("{{\"v\":1{}}}", pieces.into_iter().collect::<String>()).into_bytes()
        }),
    ]
}

fn tasks() -> impl Strategy<Value = Vec<u8>> {
    let rules = json!([{"when": "{{ output.status == 'error' }}", "action": {"retry": {
        "attempts": 4294967295u32, "backoff": "exponential", "delay_ms": u64::MAX, "max_delay_ms": u64::MAX, "jitter": 1e300}},
        "set": {"iter.a": 1, "ctx.": 2, "": 3}}, {"action": {"jump": {"to": "a"}}}]);
    let spec = list(vec![
        tool("a", json!({"config": {"x": "{{ big.x }}"}, "rules": rules})),
        tool("b", json!({"kind": "playbook"})),
    ]);
    let inputs = json!({"context": {"big": {"_omitted": 1}}, "partial": [["big", {"payload": {"sha256": "aa", "size": 1}}], ["", {"chunks": []}]]});
    let good = format!("{spec}\n{inputs}").into_bytes();
    let small = format!("{spec}\n{}", json!({"context": {"big": {"x": 1}}})).into_bytes();
    prop_oneof![prop::collection::vec(any::<u8>(), 0..60), Just(good), Just(small)]
}

fn news() -> impl Strategy<Value = News> {
    let text = prop_oneof![".{0,20}", Just("{\"output\":{\"value\":1}}".to_owned()), Just("1".to_owned())];
    let called = (text.clone(), any::<bool>(), any::<u64>()).prop_map(|(text, fails, duration_ms)| {
        let failed = Failed { code: text.clone(), message: text.clone(), retryable: fails, unknown: text.is_empty() };
        let answered = Answered { output: text, body: fails.then(|| ("s".to_owned(), u64::MAX, String::new())) };
        let outcome = if fails { Err(failed) } else { Ok(answered) };
        News::Called(Called { outcome, duration_ms, plugin: String::new(), digest: String::new() })
    });
    let executed = (text, prop::sample::select(vec!["started", "completed", "failed", "?"]))
        .prop_map(|(body, status)| News::Executed(Executed { execution: 1, status: status.to_owned(), body }));
    let resolved = prop::collection::vec(("aa|bb", prop::option::of(prop::collection::vec(any::<u8>(), 0..4))), 0..3);
    prop_oneof![Just(News::Begin), Just(News::Slept), called, executed, resolved.prop_map(News::Resolved)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_bytes_make_it_panic(task in tasks(), continuation in bytes(), news in news()) {
        let mut runner = Runner::new();
        let next = runner.advance(turn(&task, &continuation, news.clone()));
        prop_assert_eq!(&next, &Runner::new().advance(turn(&task, &continuation, news)), "the same turn, the same action");
        if let Action::Done(done) = next.action {
            prop_assert!(serde_json::from_slice::<Report>(&done.report).is_ok());
        }
    }
}
