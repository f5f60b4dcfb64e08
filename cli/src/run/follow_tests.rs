use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::*;

/// Executions with their events; a number before an event is how many milliseconds it takes to come.
#[derive(Clone)]
struct Recorded(Arc<BTreeMap<&'static str, Vec<(u64, Value)>>>);

impl Feed for Recorded {
    async fn follow(self, execution: String, teller: Teller) -> Outcome {
        let events = self.0.get(execution.as_str()).ok_or_else(|| Failure::failed("unknown"))?;
        for (delay, event) in events {
            if *delay > 0 {
                tokio::time::sleep(Duration::from_millis(*delay)).await;
            }
            teller.event(event.clone()).await;
        }
        Ok(())
    }
}

fn event(name: &str, kind: &str, child: Option<&str>) -> Value {
    json!({"name": name, "event_type": kind, "meta": {"child_execution_id": child}})
}

/// Longer than any machine takes for a test.
const LONG: Duration = Duration::from_secs(600);

async fn seen(executions: Vec<(&'static str, Vec<(u64, Value)>)>, patience: Duration) -> (Vec<String>, Outcome) {
    let mut names = Vec::new();
    let feed = Recorded(Arc::new(executions.into_iter().collect()));
    let ended =
        follow_with(feed, "1", patience, |event| names.push(event["name"].as_str().unwrap_or("?").to_owned())).await;
    (names, ended)
}

#[tokio::test]
async fn what_a_child_came_to_is_told_after_the_child() {
    let parent = vec![
        (0, event("calls", "child.started", Some("2"))),
        (1, event("called", "call.done", Some("2"))),
        (0, event("ended", "playbook.completed", None)),
    ];
    let child =
        vec![(50, event("child works", "step.exit", None)), (50, event("child ended", "playbook.completed", None))];
    let (names, ended) = seen(vec![("1", parent), ("2", child)], LONG).await;
    assert!(ended.is_ok());
    assert_eq!(names, ["calls", "child works", "child ended", "called", "ended"]);
}

#[tokio::test]
async fn a_child_that_nobody_waits_for_holds_nobody_up() {
    let parent = vec![
        (0, event("calls", "child.started", Some("2"))),
        (0, event("called", "call.done", Some("2"))),
        (0, event("ended", "playbook.completed", None)),
    ];
    let child = vec![(3_600_000, event("child ended", "playbook.completed", None))];
    let (names, ended) = seen(vec![("1", parent), ("2", child)], Duration::from_millis(20)).await;
    assert!(ended.is_ok());
    assert_eq!(names, ["calls", "called", "ended"]);
}

#[tokio::test]
async fn a_child_that_cannot_be_followed_is_left_out_and_the_first_one_is_not() {
    let parent = vec![(0, event("calls", "child.started", Some("9"))), (1, event("called", "call.done", Some("9")))];
    let (names, ended) = seen(vec![("1", parent)], LONG).await;
    assert!(ended.is_ok());
    assert_eq!(names, ["calls", "called"]);
    assert!(seen(Vec::new(), LONG).await.1.is_err());
}

#[tokio::test]
async fn a_crowd_of_children_is_followed_in_part() {
    let children: Vec<&'static str> = (2..200).map(|id| &*Box::leak(id.to_string().into_boxed_str())).collect();
    let announce = children.iter().map(|child| (0, event("calls", "child.started", Some(child))));
    let mut parent: Vec<_> = announce.collect();
    // Waits for the first child, which ends when all others have long said what they say before they sleep.
    parent.push((0, event("called", "call.done", Some("2"))));
    let sleeper = vec![(0, event("child", "step.exit", None)), (3_600_000, event("late", "playbook.completed", None))];
    let mut executions = vec![("1", parent), ("2", vec![(200, event("child", "step.exit", None))])];
    executions.extend(children.iter().skip(1).map(|child| (*child, sleeper.clone())));
    let (names, ended) = seen(executions, LONG).await;
    assert!(ended.is_ok());
    assert_eq!(names.iter().filter(|name| *name == "child").count(), MOST_CHILDREN);
    assert_eq!(names.last().map(String::as_str), Some("called"));
}
