//! The glue alone: what it means is tested in `noetl_flow`.

use orchestration::{Guest, Happening, Input, Need, Outcome};
use scheduling::Guest as _;

use super::*;

const PLAYBOOK: &str = "
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: one, path: acme/one}
workflow:
  - step: start
    tool: {kind: noop}
";

fn start(digest: &str) -> Input {
    let start = orchestration::Start {
        tenant: "acme".to_owned(),
        path: "acme/one".to_owned(),
        version: 1,
        digest: digest.to_owned(),
        payload: "{}".to_owned(),
        parent: None,
        root: 7,
        pool: None,
        environment: Vec::new(),
        lenient: false,
        trace: None,
        requested_by: "alice".to_owned(),
        again: None,
        returns: None,
    };
    Input { execution: 7, time_ms: 1, what: Happening::Start(start) }
}

fn drive(input: Input) -> Outcome {
    let mut decisions = Service::drive(vec![input]);
    assert_eq!((decisions.len(), decisions[0].execution), (1, 7));
    decisions.remove(0).outcome
}

#[test]
fn an_execution_is_asked_for_started_evicted_and_loaded() {
    assert!(matches!(drive(start("d")), Outcome::Needs(Need::Playbook(digest)) if digest == "d"));
    Service::learn("d".to_owned(), PLAYBOOK.to_owned()).expect("a playbook");
    let Outcome::Decided(decided) = drive(start("d")) else { panic!("not decided") };
    assert_eq!(decided.commands.len(), 1);
    assert_eq!(Service::usage().executions, 1);

    Service::evict(vec![7]);
    let wake = || Input { execution: 7, time_ms: 2, what: Happening::Wake };
    assert!(matches!(drive(wake()), Outcome::Needs(Need::State)));
    let segment = orchestration::Segment {
        execution: 7,
        tenant: "acme".to_owned(),
        version: 1,
        position: 1,
        time_ms: 1,
        decided_by: String::new(),
        events: decided.events,
    };
    let owed = Service::load(7, None, vec![segment]).expect("a chain");
    assert_eq!(owed.commands.len(), 1);
    assert_eq!(owed.commands[0].id, decided.commands[0].id);
    assert_eq!((owed.path.as_str(), owed.last_event, owed.parent.is_none()), ("acme/one", 3, true));
    assert!(!matches!(drive(wake()), Outcome::Needs(_)));
}

#[test]
fn problems_of_a_playbook_are_a_list() {
    assert_eq!(Service::validate(PLAYBOOK.to_owned(), true), "[]");
    let problems: Vec<Problem> =
        serde_json::from_str(&Service::validate("workflow: 1".to_owned(), false)).expect("a list");
    assert!(problems.iter().any(|problem| problem.severity == Severity::Error));
}

#[test]
fn a_schedule_is_json() {
    let due = Service::evaluate(r#"{"cron": "0 * * * *"}"#.to_owned(), 0, 3_600_000).expect("a schedule");
    assert_eq!(due.runs, [3_600_000]);
    assert!(Service::evaluate("nonsense".to_owned(), 0, 1).is_err());
}
