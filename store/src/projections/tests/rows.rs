//! What rows make of each other, and what is read back.

use bytes::Bytes;

use super::*;

#[test]
fn absent_values_leave_their_columns() {
    let place = Place::new();
    let projections = place.open();
    let first = started(7, "acme", "orders/enrich");
    projections.apply(vec![Change::Execution(first.clone())], &[], 1).expect("applied");
    let later = ExecutionRow { step: Some("fetch".to_owned()), version: 2, last_event: 16, ..became(7, "acme", "", 2) };
    projections.apply(vec![Change::Execution(ExecutionRow { status: None, ..later })], &[], 2).expect("applied");
    let expected = ExecutionRow { step: Some("fetch".to_owned()), version: 2, last_event: 16, ..first };
    assert_eq!(projections.execution(Some("acme"), 7).expect("readable"), Some(expected));
    assert_eq!(projections.execution(Some("other"), 7).expect("readable"), None);
    assert_eq!(projections.execution(None, 8).expect("readable"), None);
}

#[test]
fn a_stale_row_is_counted_and_changes_nothing_in_one_batch_or_in_two() {
    for batches in [1, 2] {
        let place = Place::new();
        let projections = place.open();
        let fresh = vec![
            Change::Execution(became(1, "acme", "PAUSED", 5)),
            Change::Step(StepRow { status: Some("PARKED".to_owned()), ..step(1, "a", 1, 5) }),
        ];
        let stale = vec![
            Change::Execution(became(1, "acme", "RUNNING", 4)),
            Change::Step(StepRow { status: Some("RUNNING".to_owned()), ..step(1, "a", 1, 4) }),
        ];
        let applied = if batches == 1 {
            projections.apply([fresh, stale].concat(), &[], 1).expect("applied")
        } else {
            projections.apply(fresh, &[], 1).expect("applied");
            let applied = projections.apply(stale, &[], 2).expect("applied");
            Applied { rows: applied.rows + 2, ..applied }
        };
        assert_eq!(applied, Applied { rows: 2, stale: 2 });
        let row = projections.execution(None, 1).expect("readable").expect("there");
        assert_eq!((row.status.as_deref(), row.version), (Some("PAUSED"), 5));
        assert_eq!(projections.steps(1, 10).expect("readable")[0].status.as_deref(), Some("PARKED"));
    }
}

#[test]
fn a_terminal_status_is_the_last_one() {
    let place = Place::new();
    let projections = place.open();
    let ended = ExecutionRow { ended_ms: Some(50), ..became(1, "acme", "COMPLETED", 2) };
    let turned = ExecutionRow { ended_ms: Some(60), error: Some("no".to_owned()), ..became(1, "acme", "FAILED", 3) };
    let done = StepRow { status: Some("completed".to_owned()), ..step(1, "a", 1, 2) };
    let again = StepRow { status: Some("running".to_owned()), error: Some("no".to_owned()), ..step(1, "a", 1, 3) };
    let work = CommandRow { status: Some("FAILED".to_owned()), ..command(1, "a", None, 1, 2) };
    let rework = CommandRow { status: Some("PENDING".to_owned()), ended_ms: Some(1), ..command(1, "a", None, 1, 3) };
    projections
        .apply(
            vec![Change::Execution(ended.clone()), Change::Step(done.clone()), Change::Command(work.clone())],
            &[],
            1,
        )
        .expect("applied");
    let late = vec![Change::Execution(turned), Change::Step(again), Change::Command(rework)];
    assert_eq!(projections.apply(late, &[], 2).expect("applied"), Applied { rows: 3, stale: 0 });
    let row = projections.execution(None, 1).expect("readable").expect("there");
    assert_eq!(row, ExecutionRow { last_event: 24, version: 3, ..ended });
    assert_eq!(projections.steps(1, 10).expect("readable"), vec![StepRow { version: 3, ..done }]);
    assert_eq!(all_commands(&projections, 1), vec![CommandRow { version: 3, ..work }]);
}

#[test]
fn counts_of_a_loop_are_added_once() {
    let place = Place::new();
    let projections = place.open();
    let more = |succeeded, failed, version| {
        let step = "each".to_owned();
        Change::Loop(LoopRow { execution: 1, step, run: 1, total: Some(10), succeeded, failed, status: None, version })
    };
    projections.apply(vec![more(3, 0, 2), more(1, 1, 3), more(1, 0, 3)], &[], 10).expect("applied");
    // The same segment again: by its cursor, or by its versions.
    assert_eq!(projections.apply(vec![more(1, 1, 3)], &[], 10).expect("known"), Applied { rows: 0, stale: 1 });
    let again = projections.apply(vec![more(1, 1, 3), more(1, 0, 3), more(2, 0, 4)], &[], 11).expect("applied");
    assert_eq!(again, Applied { rows: 1, stale: 2 });
    let row = projections.loops(1, 10).expect("readable").remove(0);
    assert_eq!((row.succeeded, row.failed, row.total, row.version), (7, 1, Some(10), 4));
}

#[test]
fn commands_come_in_pages_by_step_iteration_and_attempt() {
    let place = Place::new();
    let projections = place.open();
    let mut expected = vec![command(1, "a.b", None, 1, 1), command(1, "a.b", None, 2, 1)];
    expected.extend((0..12).map(|at| command(1, "each", Some(at), 1, 1)));
    let shuffled = expected.iter().rev().cloned().chain([command(2, "a", None, 1, 1)]).map(Change::Command);
    projections.apply(shuffled.collect(), &[], 1).expect("applied");
    assert_eq!(all_commands(&projections, 1), expected);
    for bad in ["", "1", "1.2.x.a", "1.2.3"] {
        let error = projections.commands(1, Some(bad), 3).expect_err("no page");
        assert!(matches!(error, ProjectionError::Cursor(_)), "{error}");
    }
}

#[test]
fn steps_come_in_the_order_of_their_entering() {
    let place = Place::new();
    let projections = place.open();
    let entered = |name: &str, at| StepRow { entered_ms: Some(at), ..step(1, name, 1, 1) };
    let rows = [entered("z", 1), entered("b", 3), entered("m", 2)];
    projections.apply(rows.iter().cloned().map(Change::Step).collect(), &[], 1).expect("applied");
    let names: Vec<String> =
        projections.steps(1, 2).expect("readable").into_iter().map(|row: StepRow| row.step).collect();
    assert_eq!(names, ["z", "m"]);
}

#[test]
fn a_deleted_execution_is_gone_from_everywhere() {
    for in_its_own_batch in [false, true] {
        let place = Place::new();
        let projections = place.open();
        let bytes = Bytes::from_static(b"state");
        let mut changes: Vec<Change> = (1..=3).map(|id| Change::Execution(started(id, "acme", "a"))).collect();
        changes.extend([Change::Step(step(2, "s", 1, 1)), Change::Command(command(2, "s", None, 1, 1))]);
        let open = (1..=3).map(|id| OpenChange::Opened { execution: id, tenant: "acme".to_owned(), root: id });
        if in_its_own_batch {
            projections.apply(changes, &open.collect::<Vec<_>>(), 1).expect("applied");
            projections
                .put_checkpoints(&[Checkpoint { execution: 2, version: 1, fold_position: 1, bytes }])
                .expect("kept");
            projections.apply(vec![Change::Deleted(2)], &[], 2).expect("applied");
            projections.apply(vec![Change::Deleted(2)], &[], 3).expect("nothing to delete");
        } else {
            projections.apply(Vec::new(), &open.collect::<Vec<_>>(), 1).expect("applied");
            changes.push(Change::Deleted(2));
            projections.apply(changes, &[], 2).expect("applied");
        }
        let ids: Vec<u64> = contents(&projections).into_iter().map(|(row, ..)| row.execution).collect();
        assert_eq!(ids, [1, 3]);
        assert_eq!(projections.counts_by_status(None).expect("readable"), [("RUNNING".to_owned(), 2)]);
        assert_eq!(projections.checkpoint(2).expect("readable"), None);
        assert_eq!(projections.open_executions().expect("readable").len(), 2);
        assert!(projections.steps(2, 9).expect("readable").is_empty() && all_commands(&projections, 2).is_empty());
    }
}

#[test]
fn an_execution_is_open_from_its_first_segment_to_its_last() {
    let place = Place::new();
    let projections = place.open();
    let opened = |execution| OpenChange::Opened { execution, tenant: "acme".to_owned(), root: 1 };
    projections.apply(Vec::new(), &[opened(2), opened(1)], 1).expect("applied");
    // The same again, as after a restart from an older cursor, and an end of what was never seen.
    let ended = |execution| OpenChange::Ended { execution };
    projections.apply(Vec::new(), &[opened(2), opened(3), ended(3), ended(7)], 2).expect("applied");
    drop(projections);
    let projections = place.open();
    let open = |id| (id, "acme".to_owned(), 1);
    assert_eq!(projections.open_executions().expect("readable"), [open(1), open(2)]);
}

#[test]
fn a_cursor_that_is_no_cursor_is_refused() {
    let place = Place::new();
    let projections = place.open();
    for bad in ["", "17", "x.1", "1.y"] {
        let query = ListQuery { cursor: Some(bad.to_owned()), ..ListQuery::default() };
        let error = projections.executions(&query).expect_err("no page");
        assert!(matches!(error, ProjectionError::Cursor(_)), "{error}");
    }
}
