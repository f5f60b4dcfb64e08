//! Whatever order things happen in, and however often: the same end.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{Kernel, Todo};
use noetl_flow::decide::{Happening, Outcome};
use noetl_flow::event::Event;
use noetl_flow::state::{self, Phase, State};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

/// A step of a made-up playbook: its arcs (target, whether its guard holds), its mode, how often it is repeated, whether it fails.
#[derive(Debug, Clone)]
struct Made {
    arcs: Vec<(usize, bool)>,
    inclusive: bool,
    repeat: Option<u8>,
    fails: bool,
}

fn made(count: usize, back: bool) -> impl Strategy<Value = Vec<Made>> {
    let step = move |place: usize| {
        let from = if back { 0 } else { place + 1 };
        let arcs = proptest::collection::vec((from..=count, any::<bool>()), 0..4);
        (arcs, any::<bool>(), proptest::option::weighted(0.3, 0_u8..5), proptest::bool::weighted(0.1)).prop_map(
            move |(arcs, inclusive, repeat, fails)| Made {
                arcs: arcs.into_iter().filter(|(to, _)| *to < count && *to != 0).collect(),
                inclusive,
                repeat,
                fails,
            },
        )
    };
    (0..count).map(step).collect::<Vec<_>>()
}

/// With `rounds`, arcs are taken only while the step was run at most so often.
fn text(steps: &[Made], lenient: bool, rounds: Option<u32>) -> String {
    let name = |place: usize| if place == 0 { "start".to_owned() } else { format!("s{place}") };
    let workflow = steps.iter().enumerate().map(|(place, step)| {
        let own = name(place);
        let arcs: Vec<Json> = step
            .arcs
            .iter()
            .map(|(to, holds)| match rounds {
                None => json!({ "step": name(*to), "when": format!("{{{{ {holds} }}}}") }),
                Some(rounds) => {
                    json!({ "step": name(*to), "when": format!("{{{{ {holds} and ctx.n_{own} < {rounds} }}}}") })
                }
            })
            .collect();
        let mode = if step.inclusive { "inclusive" } else { "exclusive" };
        let mut made = json!({ "step": own, "next": { "spec": { "mode": mode }, "arcs": arcs } });
        made["set"] = json!({ format!("ctx.n_{own}"): format!("{{{{ (ctx.n_{own} | default(0)) + 1 }}}}") });
        made["tool"] = json!({ "kind": "noop", "result": format!("of {own}"), "fail": step.fails });
        if let Some(times) = step.repeat {
            made["loop"] = json!({ "in": times, "iterator": "i", "spec": { "mode": "parallel", "max_in_flight": 2 } });
            made["tool"]["result"] = json!("{{ i * i }}");
        }
        made
    });
    let workflow: Vec<Json> = workflow.collect();
    let failures = if lenient { "lenient" } else { "strict" };
    json!({ "apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": { "name": "made", "path": "made" },
        "executor": { "spec": { "policy": { "failures": failures } } }, "workflow": workflow })
    .to_string()
}

/// What must not depend on the order of things.
fn surface(state: &State) -> Json {
    let steps: BTreeMap<&String, Json> = state
        .steps
        .iter()
        .map(|(name, step)| (name, json!({ "phase": step.phase, "run": step.run, "result": step.result })))
        .collect();
    let failed: BTreeSet<&String> = state.failed_steps.iter().collect();
    let status = state.finished.as_ref().map(|finished| finished.status.name());
    json!({ "steps": steps, "variables": state.variables, "failed": failed, "status": status })
}

/// Plays to the end, choosing what is next, what is told twice and what is forgotten by the numbers.
fn play(text: &str, choices: &[u16]) -> (Kernel, u64) {
    let mut kernel = Kernel::with(text);
    let id = kernel.start("{}");
    let mut told = Vec::new();
    for round in 0.. {
        let choice = choices.get(round % choices.len().max(1)).copied().unwrap_or(0) as usize;
        if kernel.todo.is_empty() {
            break;
        }
        assert!(round < 3_000, "it does not come to an end");
        let place = choice % kernel.todo.len();
        if let Todo::Run(execution, command) = &kernel.todo[place] {
            let (execution, command) = (*execution, command.clone());
            let report = kernel.work(execution, &command);
            told.push(report);
        }
        if choice % 5 == 3 {
            kernel.orchestrator.evict(&[id]);
            check_owed(&mut kernel, id);
        }
        kernel.perform(place);
        if choice % 3 == 1 {
            let again = told[choice % told.len()].clone();
            let outcome = kernel.feed(id, Happening::Report(again));
            assert!(matches!(outcome, Outcome::Ignored(_)), "a report was taken twice: {outcome:?}");
        }
    }
    (kernel, id)
}

/// A loaded execution asks for exactly the commands that are in flight, byte by byte.
fn check_owed(kernel: &mut Kernel, id: u64) {
    let owed: BTreeMap<String, Vec<u8>> =
        kernel.load(id).commands.into_iter().map(|command| (command.id, command.task)).collect();
    let in_flight = kernel.todo.iter().map(|todo| match todo {
        Todo::Run(_, command) => (command.id.clone(), command.task.clone()),
        other => panic!("there are commands only: {other:?}"),
    });
    assert_eq!(owed, in_flight.collect());
}

/// What holds for every chain of a playbook without loops of arcs: a step is entered when nobody can lead to it any more,
/// and one that nobody came to is skipped.
fn check_without_loops(kernel: &Kernel, id: u64, steps: &[Made]) {
    let place = |name: &str| if name == "start" { 0 } else { name[1..].parse().expect("a place") };
    let name = |place: usize| if place == 0 { "start".to_owned() } else { format!("s{place}") };
    let mut events = kernel.events(id).into_iter();
    let mut state = State::begin(events.next().expect("an event")).expect("it begins");
    for recorded in events {
        if let Event::Entered { step, .. } = &recorded.event {
            let entered = place(step);
            let mut todo: Vec<usize> = state.live.iter().chain(&state.waiting).map(|name| place(name)).collect();
            todo.retain(|place| *place != entered);
            while let Some(from) = todo.pop() {
                for (to, _) in &steps[from].arcs {
                    assert_ne!(*to, entered, "{step} was entered while {} could lead to it", name(from));
                    if state.phase(&name(*to)) == Phase::Idle {
                        todo.push(*to);
                    }
                }
            }
        }
        state::fold(&mut state, recorded).expect("it folds");
    }
    for (from, step) in steps.iter().enumerate() {
        for (to, _) in &step.arcs {
            let came = state.phase(&name(from)).is_ended();
            assert!(!came || state.phase(&name(*to)).is_ended(), "{} was neither entered nor skipped", name(*to));
        }
    }
}

/// What holds for every chain.
fn check(kernel: &Kernel, id: u64) {
    let events = kernel.events(id);
    let ends = events.iter().filter(|recorded| matches!(recorded.event, Event::Finished(_))).count();
    assert_eq!(ends, 1, "one end: {:#?}", kernel.journal);
    assert!(matches!(events.last().map(|last| &last.event), Some(Event::Finished(_))));
    let mut done = BTreeSet::new();
    for recorded in &events {
        assert!(recorded.cause < recorded.id, "causes come first");
        match &recorded.event {
            Event::Reported(reported) if reported.error.is_none() => {
                assert!(done.insert(reported.command.to_string()), "{} was done twice", reported.command);
            }
            Event::Issued { command, .. } => {
                assert!(!done.contains(&command.to_string()), "{command} was issued after it was done");
            }
            _ => {}
        }
    }
    let state = kernel.state_of(id);
    assert_eq!(state.in_flight, 0, "nothing is left in flight");
    assert!(state.waiting.is_empty() || state.failing.is_some(), "nobody waits: {:?}", state.waiting);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn any_order_gives_the_same_end(
        steps in (2..9_usize).prop_flat_map(|count| made(count, false)),
        choices in proptest::collection::vec(any::<u16>(), 1..60),
    ) {
        let text = text(&steps, true, None);
        let (usual, id) = play(&text, &[0]);
        check(&usual, id);
        let (other, id) = play(&text, &choices);
        check(&other, id);
        check_without_loops(&other, id, &steps);
        prop_assert_eq!(other.status(id), "completed");
        prop_assert_eq!(surface(&usual.state_of(id)), surface(&other.state_of(id)));
        for (name, step) in &other.state_of(id).steps {
            prop_assert!(step.run <= 1, "{} ran {} times", name, step.run);
            prop_assert!(step.phase != Phase::Idle, "{} was led to and forgotten", name);
        }
    }

    #[test]
    fn strict_executions_end_once_in_any_order(
        steps in (2..9_usize).prop_flat_map(|count| made(count, false)),
        choices in proptest::collection::vec(any::<u16>(), 1..60),
    ) {
        let (kernel, id) = play(&text(&steps, false, None), &choices);
        check(&kernel, id);
        let state = kernel.state_of(id);
        prop_assert_eq!(kernel.status(id) == "failed", !state.failed_steps.is_empty());
    }

    #[test]
    fn loops_of_arcs_come_to_an_end(
        steps in (2..7_usize).prop_flat_map(|count| made(count, true)),
        choices in proptest::collection::vec(any::<u16>(), 1..60),
    ) {
        let (kernel, id) = play(&text(&steps, true, Some(3)), &choices);
        check(&kernel, id);
        prop_assert_eq!(kernel.status(id), "completed");
    }

    #[test]
    fn a_checkpoint_anywhere_changes_nothing(
        steps in (2..7_usize).prop_flat_map(|count| made(count, true)),
        choices in proptest::collection::vec(any::<u16>(), 1..40),
    ) {
        let (kernel, id) = play(&text(&steps, true, Some(2)), &choices);
        let whole = kernel.state_of(id);
        let chain = &kernel.chains[&id];
        for cut in 1..chain.len() {
            let mut before = None;
            chain[..cut].iter().for_each(|segment| state::fold_lines(&mut before, segment).expect("it folds"));
            let saved = state::checkpoint(&before.expect("there are events"));
            let mut after = Some(state::restore(&saved).expect("a checkpoint"));
            chain[cut..].iter().for_each(|segment| state::fold_lines(&mut after, segment).expect("it folds"));
            let after = after.expect("there are events");
            prop_assert_eq!(state::checksum(&after), state::checksum(&whole));
        }
    }
}
