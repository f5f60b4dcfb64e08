//! The graph, and what a loop goes over.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use super::graph::{Graph, Place, Standing};
use super::items::{Collection, collection, rows};
use crate::playbook::parse;

/// The graph of `a>b c` lines: steps and what they lead to.
fn graph(lines: &str) -> Graph {
    let steps = lines.lines().map(|line| {
        let (name, next) = line.split_once('>').unwrap_or((line, ""));
        let arcs: Vec<Json> = next.split_whitespace().map(|step| json!({ "step": step })).collect();
        json!({ "step": name, "tool": { "kind": "noop" }, "next": { "arcs": arcs } })
    });
    let steps: Vec<Json> = steps.collect();
    let text = json!({ "apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": { "name": "g", "path": "g" },
        "workflow": steps });
    Graph::new(&parse(&text.to_string(), false).expect("a playbook").playbook)
}

struct Stand {
    live: BTreeSet<Place>,
    ended: BTreeSet<Place>,
}

impl Standing for Stand {
    fn is_live(&self, place: Place) -> bool {
        self.live.contains(&place)
    }

    fn is_ended(&self, place: Place) -> bool {
        self.ended.contains(&place)
    }
}

fn stand(live: &[Place], ended: &[Place]) -> Stand {
    Stand { live: live.iter().copied().collect(), ended: ended.iter().copied().collect() }
}

#[test]
fn a_merge_waits_for_branches_that_can_still_come() {
    let graph = graph("start>b c\nb>d\nc>e\ne>d\nd");
    assert!(graph.is_fan_in(4) && !graph.is_fan_in(1));
    let merge = 4;
    assert_eq!(graph.awaited(merge, &stand(&[2], &[0, 1])), Some(3), "`e` comes after `c`");
    assert_eq!(graph.awaited(merge, &stand(&[3], &[0, 1, 2])), Some(3));
    assert_eq!(graph.awaited(merge, &stand(&[], &[0, 1])), None, "nobody leads to `c` any more");
}

#[test]
fn arcs_that_lead_back_hold_nobody_up() {
    // The merge `d` is inside of a loop of arcs: it waits for both branches in every round.
    let graph = graph("start>a\na>b c\nb>d\nc>d\nd>a end\nend");
    let (a, merge) = (1, 4);
    assert!(!graph.is_fan_in(a), "`d` leads to `a` by a back edge");
    assert_eq!(graph.awaited(merge, &stand(&[3], &[0, 1, 2])), Some(3));
    assert_eq!(graph.awaited(merge, &stand(&[3], &[0, 1, 2, 4])), Some(3), "in the second round too");
    assert_eq!(graph.awaited(merge, &stand(&[], &[0, 1, 2, 3, 4])), None);
    assert!(graph.same_knot(merge, a) && !graph.same_knot(merge, 5));
}

#[test]
fn a_step_is_dead_when_no_live_step_leads_there() {
    let graph = graph("start>a b\na>c\nb>c\nc>d\nd>c end\nend");
    let (c, end) = (3, 5);
    assert!(graph.can_come(c, &stand(&[1], &[0])));
    assert!(!graph.can_come(2, &stand(&[1], &[0])), "`b` was not taken");
    assert!(graph.can_come(end, &stand(&[4], &[0, 1, 3])));
    assert!(graph.can_come(c, &stand(&[4], &[0, 1, 3])), "by the arc back from `d`");
    assert!(!graph.can_come(c, &stand(&[1], &[0, 3, 4])), "what has ended is not entered again from outside");
}

#[test]
fn a_loop_goes_over_many_things() {
    let list = |value: Json| match collection(value) {
        Ok(Collection::List(items)) => Json::Array(items),
        other => panic!("{other:?}"),
    };
    assert_eq!(list(json!([1, null])), json!([1, null]));
    assert_eq!(list(json!({"a": 1, "b": 2})), json!([{"key": "a", "value": 1}, {"key": "b", "value": 2}]));
    assert_eq!(list(json!("[1, \"x\"]")), json!([1, "x"]));
    assert_eq!(list(json!("a, b\nc,,\n")), json!(["a", "b", "c"]));
    assert_eq!(list(json!("")), json!([]));
    assert_eq!(collection(json!(3)), Ok(Collection::Count(3)));
    assert_eq!(collection(json!(3.0)), Ok(Collection::Count(3)));
    assert_eq!(collection(json!(-1)), Ok(Collection::Count(0)));
    for bad in [json!(null), json!(true), json!(2.5), json!(1e300), json!(5_000_000_000_i64)] {
        assert!(collection(bad.clone()).is_err(), "{bad}");
    }
}

#[test]
fn a_claim_answers_rows_in_several_shapes() {
    let one = Some(vec![json!({"id": 1})]);
    for answer in [
        json!([{"id": 1}]),
        json!({"rows": [{"id": 1}], "row_count": 1}),
        json!({"rows": [{"id": 1}], "row_count": 1, "columns": ["id"], "affected_rows": 1,
            "command_0": {"rows": [{"id": 1}], "row_count": 1, "columns": ["id"], "affected_rows": 1, "status": "UPDATE 1"}}),
        json!({"data": {"rows": [{"id": 1}]}}),
        json!({"command_0": {"rows": [{"id": 1}]}}),
    ] {
        assert_eq!(rows(&answer), one, "{answer}");
    }
    assert_eq!(rows(&json!(null)), Some(vec![]));
    assert_eq!(rows(&json!({"affected_rows": 3})), None);
    assert_eq!(rows(&json!("text")), None);
}

#[test]
fn a_loop_entered_at_two_steps_joins_them_in_every_round() {
    // However the arcs are ordered, `j` waits for `a` and `b`, and neither of these waits for the other.
    for lines in ["start>a b\na>j\nb>j\nj>a b z\nz", "start>b a\na>j\nb>j\nj>z b a\nz"] {
        let graph = graph(lines);
        let (a, b, join) = (1, 2, 3);
        assert!(graph.is_fan_in(join) && !graph.is_fan_in(a) && !graph.is_fan_in(b));
        assert_eq!(graph.awaited(join, &stand(&[b], &[0, a, join])), Some(b), "{lines}");
    }
}

#[test]
fn a_step_behind_a_loop_waits_until_the_loop_is_left() {
    // `z` joins a plain branch and a loop whose exit is at its head.
    let graph = graph("start>h p\nh>body z\nbody>h\np>z\nz");
    let (head, body, end) = (1, 2, 4);
    assert_eq!(graph.awaited(end, &stand(&[body], &[0, head, 3])), Some(head), "`body` leads to `h` once more");
    assert!(!graph.is_fan_in(head));
}

#[test]
fn a_step_of_an_outer_loop_waits_for_an_inner_one() {
    let graph = graph("start>o\no>i q\ni>w\nw>i m\nq>m\nm>o end\nend");
    let (outer, inner, wait, merge) = (1, 2, 3, 5);
    assert_eq!(graph.awaited(merge, &stand(&[inner], &[0, outer, wait, 4])), Some(wait));
    assert!(!graph.is_fan_in(outer) && !graph.is_fan_in(inner));
    assert!(graph.same_knot(inner, outer) && !graph.same_knot(merge, 6));
}

#[test]
fn code_is_given_the_variables_unless_it_is_seen_not_to_read_them() {
    for (tool, given) in [
        (json!({"kind": "python", "code": "result = variables['a']"}), true),
        (json!({"kind": "python", "code": "{{ workload.code }}"}), true),
        (json!({"kind": "javascript", "code": "{% if fast %}result = 1{% endif %}"}), true),
        (json!({"kind": "python", "code": "result = {'a': {'b': 1}}"}), false),
        (json!({"kind": "python", "script": "s.py"}), true),
        (json!({"kind": "noop", "code": "{{ workload.code }}"}), false),
    ] {
        let text = json!({"apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": {"name": "g", "path": "g"},
            "workflow": [{"step": "start", "tool": tool}]});
        let playbook = parse(&text.to_string(), false).expect("a playbook").playbook;
        let program = super::program::Program::new(playbook).expect("it compiles");
        let task = program.task_of(0, None).expect("a task");
        assert_eq!(task.refers.names().any(|name| name == "variables"), given, "{tool}");
    }
}

#[test]
fn a_request_may_be_made_again_if_its_method_says_so() {
    let command = |tool: Json| {
        let text = json!({"apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": {"name": "g", "path": "g"},
            "workflow": [{"step": "start", "tool": tool}]});
        let playbook = parse(&text.to_string(), false).expect("a playbook").playbook;
        let program = super::program::Program::new(playbook).expect("it compiles");
        match &program.prepared(0).work {
            super::program::PreparedWork::Task(task) => (task.retry_safe, task.kinds.clone()),
            _ => panic!("a task"),
        }
    };
    let kinds = |kinds: &[&str]| kinds.iter().map(|kind| (*kind).to_owned()).collect::<Vec<_>>();
    for (tool, safe, named) in [
        (json!({"kind": "http", "url": "u"}), Some(true), &["http:again"][..]),
        (json!({"kind": "http", "url": "u", "method": "put", "json": 1}), Some(true), &["http:again"]),
        (json!({"kind": "http", "url": "u", "method": "POST"}), None, &["http"]),
        (json!({"kind": "http", "url": "u", "json": {}}), None, &["http"]),
        (json!({"kind": "http", "url": "u", "method": "{{ how }}"}), None, &["http"]),
        (json!({"kind": "http", "url": "u", "spec": {"retry_safe": false}}), Some(false), &["http"]),
        (
            json!({"kind": "http", "url": "u", "method": "POST", "spec": {"retry_safe": true}}),
            Some(true),
            &["http:again"],
        ),
        (json!([{"kind": "http", "url": "u"}, {"kind": "noop"}]), None, &["http:again", "noop"]),
        (
            json!([{"kind": "http", "url": "u"}, {"kind": "http", "method": "POST", "url": "u"}]),
            None,
            &["http", "http:again"],
        ),
    ] {
        assert_eq!(command(tool.clone()), (safe, kinds(named)), "{tool}");
    }
}
