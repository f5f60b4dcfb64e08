use serde_json::json;

use super::*;
use crate::output::Paint;

/// An event as the API gives it, so many milliseconds after the first.
fn event(ms: u64, execution: &str, kind: &str, step: &str, more: Value) -> Value {
    let mut event = json!({
        "execution_id": execution, "event_type": kind, "node_name": step, "status": "COMPLETED",
        "created_at": format!("2026-03-01T12:00:{:02}.{:03}Z", ms / 1000, ms % 1000), "error": null, "meta": {},
    });
    let (Value::Object(event_fields), Value::Object(more)) = (&mut event, more) else {
        unreachable!("both are objects")
    };
    event_fields.extend(more);
    event
}

/// The lines that stay, as a pipe would see them.
fn lines(events: &[Value]) -> Vec<String> {
    let mut board = Board::default();
    let changes = events.iter().flat_map(|event| board.event(event));
    let shown = changes.filter_map(|change| match change {
        Change::Line(line) | Change::Began(_, line) => Some(line.render(Paint::plain())),
        Change::Moves(..) | Change::Ended(_) => None,
    });
    shown.collect()
}

#[test]
fn a_run_reads_from_its_lines() {
    let events = [
        event(0, "1", "playbook.initialized", "playbook", json!({"meta": {"path": "demo/a", "version": 3}})),
        event(0, "1", "workflow.initialized", "workflow", json!({})),
        event(0, "1", "step.enter", "start", json!({"meta": {"run": 1}})),
        event(0, "1", "command.issued", "start", json!({"meta": {"run": 1, "attempt": 1, "tools": ["noop"]}})),
        event(12, "1", "call.done", "start", json!({"meta": {"run": 1, "calls": 1}})),
        event(12, "1", "step.exit", "start", json!({"meta": {"run": 1}})),
        event(12, "1", "step.skipped", "other", json!({"status": "SKIPPED"})),
        event(12, "1", "step.enter", "load", json!({"meta": {"run": 2}})),
        event(
            13,
            "1",
            "call.error",
            "load",
            json!({"meta": {"run": 2, "calls": 3}, "status": "FAILED",
              "error": {"code": "timeout", "message": "no\n\u{1b}[31manswer"}}),
        ),
        event(
            15,
            "1",
            "step.exit",
            "load",
            json!({"meta": {"run": 2}, "status": "FAILED",
              "error": {"code": "timeout", "message": "no\n\u{1b}[31manswer"}}),
        ),
        event(
            1515,
            "1",
            "playbook.failed",
            "playbook",
            json!({"status": "FAILED",
              "error": {"code": "step_failed", "message": "`load` failed"}}),
        ),
    ];
    assert_eq!(
        lines(&events),
        [
            "▸ demo/a version 3  execution 1",
            "→ start",
            "✓ start 12 ms",
            "· other skipped",
            "→ load #2",
            "✗ load #2 3 ms  no [31manswer  (3 calls)",
            "✗ failed 1.5 s  `load` failed  (steps: 1 succeeded, 1 failed, 1 skipped)",
        ]
    );
}

#[test]
fn a_loop_moves_one_line_and_leaves_one() {
    let item = |ms, status: &str| event(ms, "1", "loop.item", "each", json!({"meta": {"run": 1}, "status": status}));
    let events = [
        event(0, "1", "step.enter", "each", json!({"meta": {"run": 1}})),
        event(0, "1", "loop.started", "each", json!({"meta": {"run": 1, "iterations_expected": 3}})),
        event(1, "1", "command.issued", "each", json!({"meta": {"run": 1, "iteration_index": 0, "attempt": 1}})),
        item(2, "COMPLETED"),
        event(2, "1", "command.issued", "each", json!({"meta": {"run": 1, "iteration_index": 1, "attempt": 2}})),
        item(3, "FAILED"),
        item(4, "COMPLETED"),
        event(
            4,
            "1",
            "loop.done",
            "each",
            json!({"meta": {"run": 1}, "status": "FAILED",
              "result": {"context": {"data": {"total": 3, "succeeded": 2, "failed": 1}}}}),
        ),
        event(4, "1", "step.exit", "each", json!({"meta": {"run": 1}, "status": "FAILED"})),
    ];
    let mut board = Board::default();
    let mut moves = Vec::new();
    for event in &events {
        moves.extend(board.event(event).into_iter().filter_map(|change| match change {
            Change::Moves(_, line) => line.note,
            _ => None,
        }));
    }
    assert_eq!(moves, ["0/3", "1/3", "2/3, 1 failed", "3/3, 1 failed"]);
    assert_eq!(lines(&events), ["→ each", "✗ each 4 ms  failed  (3/3, 1 failed)"]);
}

#[test]
fn a_cursor_has_as_many_iterations_as_it_claimed() {
    let mut board = Board::default();
    board.event(&event(0, "1", "step.enter", "each", json!({})));
    board.event(&event(0, "1", "loop.started", "each", json!({"meta": {"mode": "cursor"}})));
    let changes = board.event(&event(0, "1", "loop.claimed", "each", json!({"meta": {"count": 5}})));
    let changes =
        [changes, board.event(&event(0, "1", "loop.claimed", "each", json!({"meta": {"count": 2}})))].concat();
    let notes: Vec<_> = changes
        .into_iter()
        .filter_map(|change| match change {
            Change::Moves(_, line) => line.note,
            _ => None,
        })
        .collect();
    assert_eq!(notes, ["0/5", "0/7"]);
}

#[test]
fn children_stand_below_their_parent_and_parks_and_retries_are_told() {
    let events = [
        event(0, "1", "step.enter", "call", json!({})),
        event(0, "1", "child.started", "call", json!({"meta": {"child_execution_id": "2", "path": "demo/b"}})),
        event(1, "2", "playbook.initialized", "playbook", json!({"meta": {"path": "demo/b", "version": 1}})),
        event(1, "2", "step.enter", "ask", json!({})),
        event(1, "2", "command.issued", "ask", json!({"meta": {"attempt": 2}})),
        event(2, "2", "step.parked", "ask", json!({"meta": {"message": "ship it?"}})),
        event(3, "2", "step.resumed", "ask", json!({})),
        event(3, "2", "step.exit", "ask", json!({})),
        event(4, "2", "playbook.completed", "playbook", json!({})),
        event(5, "1", "step.exit", "call", json!({})),
        event(6, "1", "execution.cancel_requested", "playbook", json!({"meta": {"reason": "too late"}})),
        event(7, "1", "execution.cancelled", "playbook", json!({})),
    ];
    assert_eq!(
        lines(&events),
        [
            "→ call",
            "  ▸ demo/b version 1  execution 2",
            "  → ask",
            "  ↻ ask attempt 2",
            "  ‖ ask parked: ship it?",
            "  ✓ ask 2 ms  attempt 2",
            "  ✓ completed 3 ms  steps: 1 succeeded",
            "✓ call 5 ms",
            "! cancelling: too late",
            "✗ cancelled 7 ms  steps: 1 succeeded",
        ]
    );
}

#[test]
fn every_moving_line_goes_away_and_odd_events_change_nothing() {
    let mut board = Board::default();
    board.event(&event(0, "1", "step.enter", "a", json!({})));
    board.event(&event(0, "1", "step.enter", "b", json!({})));
    assert!(board.began_ms(&("1".into(), "a".into(), 1)).is_some());
    let changes = board.event(&event(9, "1", "execution.cancelled", "playbook", json!({})));
    let ended = changes.iter().filter(|change| matches!(change, Change::Ended(_))).count();
    assert_eq!(ended, 2);
    for odd in [json!(null), json!([]), json!({"event_type": 5}), json!({"event_type": "step.exit"})] {
        board.event(&odd);
    }
    assert!(board.event(&event(0, "1", "brand.new", "x", json!({}))).is_empty());
}
