//! The orchestrator of the platform with an oddity its feature names: `grow` keeps 8 MiB of every drive for ever,
//! `twice` issues every command twice. Everything it decides besides is right.
//!
//! It shares the conversions of `plugins/orchestrate`, so that it follows the contract as that does. Nobody registers a
//! playbook or has a schedule while it serves, so it answers the least about these.

#[path = "../../../../plugins/orchestrate/src/inputs.rs"]
mod inputs;
#[path = "../../../../plugins/orchestrate/src/outputs.rs"]
mod outputs;

use std::cell::RefCell;
use std::hint::black_box;

use noetl_flow::decide::Orchestrator;
use noetl_sdk::engine::orchestrator::{orchestration, scheduling};
use orchestration::{Decision, Footprint, Input, LoadError, Outcome, Owed, Segment};

const KEPT: usize = 8 << 20;

thread_local! {
    static ORCHESTRATOR: RefCell<Orchestrator> = RefCell::new(Orchestrator::new());
}

fn with<T>(act: impl FnOnce(&mut Orchestrator) -> T) -> T {
    ORCHESTRATOR.with(|orchestrator| act(&mut orchestrator.borrow_mut()))
}

struct Service;

noetl_sdk::orchestrator!(Service);

impl orchestration::Guest for Service {
    fn drive(batch: Vec<Input>) -> Vec<Decision> {
        if cfg!(feature = "grow") {
            std::mem::forget(black_box(vec![1_u8; KEPT]));
        }
        let batch = batch.into_iter().map(inputs::input).collect();
        let mut decisions: Vec<Decision> =
            with(|orchestrator| orchestrator.drive(batch)).into_iter().map(outputs::decision).collect();
        if cfg!(feature = "twice") {
            for decision in &mut decisions {
                if let Outcome::Decided(decided) = &mut decision.outcome {
                    decided.commands.extend_from_within(..);
                }
            }
        }
        decisions
    }

    fn learn(digest: String, text: String) -> Result<(), String> {
        with(|orchestrator| orchestrator.learn(&digest, &text))
    }

    fn load(execution: u64, checkpoint: Option<Vec<u8>>, segments: Vec<Segment>) -> Result<Owed, LoadError> {
        let segments = inputs::events(segments);
        with(|orchestrator| {
            let owed = orchestrator.load(execution, checkpoint.as_deref(), &segments).map_err(outputs::load_error)?;
            let state = orchestrator.state(execution).expect("an execution that was loaded is in memory");
            Ok(outputs::owed(owed, state))
        })
    }

    fn supply(execution: u64, digest: String, value: Vec<u8>) {
        with(|orchestrator| orchestrator.supply(execution, &digest, &value));
    }

    fn evict(executions: Vec<u64>) {
        with(|orchestrator| orchestrator.evict(&executions));
    }

    fn validate(_text: String, _strict: bool) -> String {
        r#"{"problems":[]}"#.to_owned()
    }

    fn usage() -> Footprint {
        let usage = with(|orchestrator| orchestrator.usage());
        Footprint { executions: usage.executions, playbooks: usage.playbooks }
    }
}

impl scheduling::Guest for Service {
    fn evaluate(_schedule: String, _last_ms: u64, _now_ms: u64) -> Result<scheduling::Due, String> {
        Err("this orchestrator knows no schedules".to_owned())
    }
}
