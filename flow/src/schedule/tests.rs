use serde_json::json;

use super::*;

fn at(text: &str) -> u64 {
    let moment: Timestamp = text.parse().expect(text);
    u64::try_from(moment.as_millisecond()).expect(text)
}

fn shown(milliseconds: u64) -> String {
    Timestamp::from_millisecond(milliseconds.try_into().expect("in range")).expect("in range").to_string()
}

/// The times of a schedule between two moments, one look after the other.
fn times(cron: &str, zone: &str, from: &str, to: &str) -> Vec<String> {
    let schedule = json!({ "cron": cron, "timezone": zone });
    let (mut now, end) = (at(from), at(to));
    let mut found = Vec::new();
    loop {
        let next = evaluate(&schedule, now, now).expect(cron).next_ms.expect("it goes on");
        if next > end {
            return found;
        }
        found.push(shown(next));
        now = next;
    }
}

#[test]
fn fields_are_read_as_cron_does() {
    for (cron, from, next) in [
        ("*/15 * * * *", "2024-01-01T00:00:00Z", "2024-01-01T00:15:00Z"),
        ("0 9-17/4 * * 1-5", "2024-01-05T17:00:00Z", "2024-01-08T09:00:00Z"),
        ("*/10 * * * * *", "2024-01-01T00:00:55Z", "2024-01-01T00:01:00Z"),
        ("0 0 29 2 *", "2024-03-01T00:00:00Z", "2028-02-29T00:00:00Z"),
        ("0 0 13 * fri", "2024-01-01T00:00:00Z", "2024-01-05T00:00:00Z"),
        ("0 0 13 * ?", "2024-01-01T00:00:00Z", "2024-01-13T00:00:00Z"),
        ("0 0 * JAN,jul 7", "2024-02-01T00:00:00Z", "2024-07-07T00:00:00Z"),
        ("5/20 * * * *", "2024-01-01T00:05:00Z", "2024-01-01T00:25:00Z"),
        ("@daily", "2024-12-31T12:00:00Z", "2025-01-01T00:00:00Z"),
        ("59 23 31 12 *", "2024-12-31T23:59:00Z", "2025-12-31T23:59:00Z"),
    ] {
        let moment = at(from);
        let due = evaluate(&json!({ "cron": cron }), moment, moment).expect(cron);
        assert_eq!(due.next_ms.map(shown).as_deref(), Some(next), "{cron}");
    }
}

#[test]
fn what_is_not_a_schedule_says_which_key_is_wrong() {
    for (schedule, key, message) in [
        (json!({ "cron": "* * * *" }), "cron", "found 4"),
        (json!({ "cron": "60 * * * *" }), "cron", "minute"),
        (json!({ "cron": "* 25 * * *" }), "cron", "hour"),
        (json!({ "cron": "*/0 * * * *" }), "cron", "minute"),
        (json!({ "cron": "5-1 * * * *" }), "cron", "minute"),
        (json!({ "cron": "* * * foo *" }), "cron", "month"),
        (json!({ "cron": "0 0 30 2 *" }), "cron", "never comes"),
        (json!({ "cron": 5 }), "cron", "expected text"),
        (json!({}), "cron", "expected text"),
        (json!({ "cron": "@daily", "timezone": "Europe/Berln" }), "timezone", "did you mean `Europe/Berlin`"),
        (json!({ "cron": "@daily", "timezone": 1 }), "timezone", "no time zone"),
        (json!({ "cron": "@daily", "missed": "never" }), "missed", "run_once"),
    ] {
        let fault = Schedule::read(&schedule).expect_err(&schedule.to_string());
        assert_eq!(fault.key, key, "{schedule}");
        assert!(fault.message.contains(message), "{schedule}: {}", fault.message);
    }
}

#[test]
fn a_skipped_time_runs_once_after_the_gap() {
    // Berlin goes from 02:00 to 03:00 at 01:00 UTC, New York at 07:00 UTC.
    assert_eq!(
        times("30 2 * * *", "Europe/Berlin", "2024-03-30T00:00:00Z", "2024-04-01T12:00:00Z"),
        ["2024-03-30T01:30:00Z", "2024-03-31T01:00:00Z", "2024-04-01T00:30:00Z"]
    );
    assert_eq!(
        times("0,15,30,45 2 * * *", "America/New_York", "2024-03-10T00:00:00Z", "2024-03-10T12:00:00Z"),
        ["2024-03-10T07:00:00Z"]
    );
    // Of two, the one that falls on the moment after the gap is the same run.
    assert_eq!(
        times("0 2,3 * * *", "Europe/Berlin", "2024-03-31T00:00:00Z", "2024-03-31T12:00:00Z"),
        ["2024-03-31T01:00:00Z"]
    );
    // Whoever looks a second before it still sees it.
    assert_eq!(
        times("30 2 * * *", "Europe/Berlin", "2024-03-31T00:59:59Z", "2024-03-31T12:00:00Z"),
        ["2024-03-31T01:00:00Z"]
    );
}

#[test]
fn a_time_that_comes_twice_runs_once() {
    // Berlin goes from 03:00 back to 02:00 at 01:00 UTC, New York from 02:00 to 01:00 at 06:00 UTC.
    assert_eq!(
        times("30 2 * * *", "Europe/Berlin", "2024-10-26T12:00:00Z", "2024-10-28T12:00:00Z"),
        ["2024-10-27T00:30:00Z", "2024-10-28T01:30:00Z"]
    );
    assert_eq!(
        times("15,45 1 * * *", "America/New_York", "2024-11-03T00:00:00Z", "2024-11-03T12:00:00Z"),
        ["2024-11-03T05:15:00Z", "2024-11-03T05:45:00Z"]
    );
    // Asked within the second of the two hours.
    assert_eq!(
        times("30 2 * * *", "Europe/Berlin", "2024-10-27T01:10:00Z", "2024-10-28T12:00:00Z"),
        ["2024-10-28T01:30:00Z"]
    );
    assert_eq!(
        times("30 2 * * *", "Europe/Berlin", "2024-10-27T01:00:00Z", "2024-10-28T12:00:00Z"),
        ["2024-10-28T01:30:00Z"]
    );
}

#[test]
fn every_hour_goes_by_the_time_that_passes() {
    let half_hours = |from, to| times("*/30 * * * *", "Europe/Berlin", from, to).len();
    assert_eq!(half_hours("2024-03-31T00:00:00Z", "2024-03-31T04:00:00Z"), 8);
    assert_eq!(half_hours("2024-10-27T00:00:00Z", "2024-10-27T04:00:00Z"), 8);
    assert_eq!(
        times("15 * * * *", "Europe/Berlin", "2024-03-31T00:00:00Z", "2024-03-31T02:00:00Z"),
        ["2024-03-31T00:15:00Z", "2024-03-31T01:15:00Z"]
    );
}

#[test]
fn missed_times_are_run_as_the_schedule_says() {
    let (last, now) = (at("2024-01-01T00:00:00Z"), at("2024-01-01T05:30:00Z"));
    let due = |missed: &str, last, now| {
        let due = evaluate(&json!({ "cron": "0 * * * *", "missed": missed }), last, now).expect(missed);
        assert!(due.next_ms.is_some_and(|next| next > now), "{missed}");
        due.runs.into_iter().map(shown).collect::<Vec<_>>()
    };
    assert_eq!(due("run_once", last, now), ["2024-01-01T05:00:00Z"]);
    let all = due("run_all", last, now);
    assert_eq!((all.len(), all[0].as_str()), (5, "2024-01-01T01:00:00Z"));
    assert!(due("skip", last, now).is_empty());
    // A little late is not missed, and what was decided does not come again.
    let now = at("2024-01-01T05:00:02Z");
    assert_eq!(due("skip", last, now), ["2024-01-01T05:00:00Z"]);
    assert_eq!(due("run_once", at("2024-01-01T04:00:00Z"), now), ["2024-01-01T05:00:00Z"]);
    assert!(due("run_all", at("2024-01-01T05:00:00Z"), now).is_empty());
    assert!(due("run_all", at("2024-01-01T06:00:00Z"), now).is_empty());
}

#[test]
fn a_century_of_missed_seconds_is_made_up_for_by_the_latest_hundred() {
    let schedule = json!({ "cron": "* * * * * *", "missed": "run_all", "timezone": "Europe/Berlin" });
    let due = evaluate(&schedule, 0, at("2070-01-01T00:00:00Z")).expect("readable");
    assert_eq!(due.runs.len(), MOST_RUNS);
    assert_eq!(due.runs.last().copied().map(shown).as_deref(), Some("2070-01-01T00:00:00Z"));
    assert_eq!(due.runs.first().copied().map(shown).as_deref(), Some("2069-12-31T23:58:21Z"));
    assert!(due.runs.is_sorted());
    let due = evaluate(&schedule, 0, u64::MAX);
    assert!(due.is_err(), "{due:?}");
}

#[test]
fn the_clock_going_back_does_not_repeat_runs() {
    let schedule = json!({ "cron": "0 * * * *" });
    let due = evaluate(&schedule, at("2024-01-01T05:00:00Z"), at("2024-01-01T03:59:00Z")).expect("readable");
    assert_eq!(due.runs, Vec::<u64>::new());
    assert_eq!(due.next_ms, Some(at("2024-01-01T06:00:00Z")));
}
