use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::event::{Event, Items};
use crate::view::samples::{self, any_chain};

/// A store as the header describes it.
#[derive(Default, Debug, PartialEq)]
struct Store {
    executions: BTreeMap<u64, ExecutionRow>,
    steps: BTreeMap<(String, u32), StepRow>,
    commands: BTreeMap<String, CommandRow>,
    loops: BTreeMap<(String, u32), LoopRow>,
}

macro_rules! apply {
    ($table:expr, $key:expr, $row:expr) => {
        match $table.get_mut(&$key) {
            Some(under) if under.version >= $row.version => {}
            Some(under) => under.lay($row),
            None => {
                $table.insert($key, $row);
            }
        }
    };
}

impl Store {
    fn apply(&mut self, changes: Vec<Change>) {
        for change in changes {
            match change {
                Change::Execution(row) => apply!(self.executions, row.execution, row),
                Change::Step(row) => apply!(self.steps, (row.step.clone(), row.run), row),
                Change::Command(row) => apply!(self.commands, row.command.clone(), row),
                Change::Loop(row) => apply!(self.loops, (row.step.clone(), row.run), row),
            }
        }
    }
}

#[test]
fn a_failing_loop_leaves_the_rows_people_ask_for() {
    let mut store = Store::default();
    store.apply(project(&samples::failing_loop()));
    let execution = &store.executions[&samples::EXECUTION];
    assert_eq!(execution.status.as_deref(), Some("FAILED"));
    assert_eq!(execution.error.as_deref(), Some("step_failed: load"));
    assert_eq!((execution.parent, execution.root, execution.playbook_version), (Some(7000), Some(7000), Some(3)));
    assert_eq!((execution.step.as_deref(), execution.version), (Some("load"), 5));
    let status = |step: &str, run| store.steps[&(step.to_owned(), run)].status.clone().expect("a status");
    assert_eq!([status("start", 1), status("other", 0), status("load", 1)], ["COMPLETED", "SKIPPED", "FAILED"]);
    let states: Vec<_> = store.commands.values().map(|row| (row.command.as_str(), row.status.as_deref())).collect();
    assert_eq!(
        states,
        [
            ("load#1[0]", Some("COMPLETED")),
            ("load#1[1]", Some("LOST")),
            ("load#1[1]~2", Some("FAILED")),
            ("start#1", Some("COMPLETED")),
        ]
    );
    let row = &store.loops[&("load".to_owned(), 1)];
    assert_eq!((row.total, row.succeeded, row.failed, row.status.as_deref()), (Some(2), 1, 1, Some("FAILED")));
}

#[test]
fn a_row_is_written_once_a_batch() {
    let changes = project(&samples::failing_loop());
    let executions = changes.iter().filter(|change| matches!(change, Change::Execution(_))).count();
    assert_eq!((executions, changes.len()), (1, 9));
    assert!(matches!(changes[0], Change::Execution(_)), "the execution comes before what belongs to it");
}

#[test]
fn the_claim_of_a_cursor_does_not_end_its_step() {
    let claimed = Event::Claimed { step: "a".to_owned(), run: 1, count: 2, items: Items::Cursor };
    let claim = vec![samples::entered("a", None), samples::done("a#1", json!([1, 2])), claimed];
    let mut store = Store::default();
    store.apply(project(&samples::chain(vec![claim])));
    assert_eq!(store.steps[&("a".to_owned(), 1)].status.as_deref(), Some("RUNNING"));
    assert_eq!(store.commands["a#1"].status.as_deref(), Some("COMPLETED"));
}

proptest! {
    #[test]
    fn batches_of_any_size_give_the_same_tables(segments in any_chain(), size in 1usize..9) {
        let mut whole = Store::default();
        whole.apply(project(&segments));
        let mut parts = Store::default();
        for batch in segments.chunks(size) {
            parts.apply(project(batch));
            // A batch that is given again is stale as a whole.
            parts.apply(project(batch));
        }
        prop_assert_eq!(parts, whole);
    }
}
