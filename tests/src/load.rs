//! Executions under way while something happens to the server.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::api::Api;
use crate::outside::Outside;

/// Playbooks of every shape: in series, fanned out and joined, retried, with a child.
const PLAYBOOKS: [(&str, &str); 3] = [
    ("load/linear", include_str!("../tests/playbooks/linear.yaml")),
    ("load/fanout", include_str!("../tests/playbooks/fanout.yaml")),
    ("load/retry", include_str!("../tests/playbooks/retry.yaml")),
];

pub async fn register(api: &Api) {
    for (_, text) in PLAYBOOKS {
        let answer = api.post("/api/catalog/register", json!({"content": text})).await;
        assert!(answer.status < 300, "{}", answer.text());
    }
}

/// Starts the execution with this number; a second time it is the same execution. Nothing when the server died.
pub async fn start(api: &Api, outside: &Outside, number: u32) -> Option<String> {
    let request = api.request(reqwest::Method::POST, "/api/execute").json(&wanted(outside, number));
    let answer = request.send().await.ok()?;
    let status = answer.status().as_u16();
    let text = answer.text().await.ok()?;
    assert!(status < 300, "execution {number}: {status} {text}");
    let answer: Value = serde_json::from_str(&text).expect("JSON");
    Some(answer["execution_id"].as_str().expect("an id").to_owned())
}

/// Starts the execution with this number, or finds it, and waits for its end.
pub async fn finish(api: &Api, outside: &Outside, number: u32) -> String {
    let answer = api.post("/api/execute?wait=300", wanted(outside, number)).await.is(200).json();
    assert_eq!(answer["status"], "completed", "execution {number}: {answer}");
    answer["execution_id"].as_str().expect("an id").to_owned()
}

fn wanted(outside: &Outside, number: u32) -> Value {
    let (path, _) = PLAYBOOKS[number as usize % PLAYBOOKS.len()];
    json!({
        "path": path,
        "payload": {"url": outside.url},
        "dedup": {"key": format!("load-{number}"), "window_secs": 604_800},
    })
}

/// How each execution ended; all of them must have.
pub async fn all_ended(api: &Api) -> BTreeMap<String, String> {
    let mut ended = BTreeMap::new();
    let mut next = String::new();
    loop {
        let cursor = if next.is_empty() { String::new() } else { format!("&cursor={next}") };
        let page = api.get(&format!("/api/executions?limit=500&consistency=strong{cursor}")).await.is(200).json();
        for row in page["executions"].as_array().expect("a list") {
            let text = |key: &str| row[key].as_str().expect("text").to_owned();
            ended.insert(text("execution_id"), text("status"));
        }
        match page["next"].as_str() {
            Some(cursor) => next = cursor.to_owned(),
            None => return ended,
        }
    }
}

/// All events of an execution.
pub async fn events(api: &Api, execution: &str) -> Vec<Value> {
    let mut events = Vec::new();
    let mut after = "0".to_owned();
    loop {
        let page =
            api.get(&format!("/api/executions/{execution}/events?after={after}&limit=1000")).await.is(200).json();
        let read = page["events"].as_array().expect("a list").clone();
        if read.is_empty() {
            return events;
        }
        after = page["last_event"].as_str().map(str::to_owned).unwrap_or_else(|| page["last_event"].to_string());
        events.extend(read);
    }
}

/// What must hold of an execution whatever happened: one beginning, one end, every link to the event before it, no
/// command reported twice, and nothing asked of the outside after its success was recorded.
pub fn check_execution(execution: &str, events: &[Value], seen: &BTreeMap<String, Vec<u64>>) {
    let kind = |event: &Value| event["event_type"].as_str().unwrap_or_default().to_owned();
    let count = |kinds: &[&str]| events.iter().filter(|event| kinds.contains(&kind(event).as_str())).count();
    assert_eq!(count(&["playbook.initialized"]), 1, "{execution} has one beginning: {events:#?}");
    let ends = ["playbook.completed", "playbook.failed", "execution.cancelled"];
    assert_eq!(count(&ends), 1, "{execution} has one end: {events:#?}");
    assert!(ends.contains(&kind(events.last().expect("events")).as_str()), "{execution} ends with its end");
    for pair in events.windows(2) {
        assert_eq!(pair[1]["prev_event_id"], pair[0]["event_id"], "{execution}: the chain has a gap");
    }
    let mut reported = BTreeMap::new();
    for event in events.iter().filter(|event| kind(event) == "command.completed") {
        let command = event["meta"]["command_id"].as_str().expect("a command").to_owned();
        let at = event["created_at"].as_str().expect("a time").to_owned();
        assert!(reported.insert(command.clone(), at).is_none(), "{execution}: {command} was reported twice");
    }
    for (command, at) in reported {
        let recorded = millis(&at);
        let base = command.split('~').next().unwrap_or(&command);
        let base = base.rsplit(':').next().unwrap_or(base);
        let prefix = format!("{execution}/{base}/");
        for (key, times) in seen.range(prefix.clone()..).take_while(|(key, _)| key.starts_with(&prefix)) {
            let late = times.iter().filter(|time| **time > recorded + 1).count();
            assert_eq!(late, 0, "{key} was asked for again after its success was recorded at {at}: {times:?}");
        }
    }
}

/// Milliseconds since 1970 of a time such as `2026-01-02T03:04:05.678Z`.
fn millis(text: &str) -> u64 {
    let number = |range: std::ops::Range<usize>| -> i64 { text[range].parse().expect("digits") };
    let (year, month, day) = (number(0..4), number(5..7), number(8..10));
    // Days since 1970 of a civil date; March is the first month, so that a leap day is the year's last.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719_468;
    let seconds = days * 86_400 + number(11..13) * 3_600 + number(14..16) * 60 + number(17..19);
    u64::try_from(seconds * 1_000 + number(20..23)).expect("after 1970")
}
