//! An orchestrator that goes wrong whenever it is asked to decide, in the way its feature names.
//!
//! `trap` panics, `hang` never ends, `short` leaves one decision out, and without a feature it decides events that are
//! no JSON. No drive of it succeeds, so nothing else is ever asked of it; the other functions answer the least.

use std::hint::black_box;

use noetl_sdk::engine::orchestrator::{orchestration, scheduling};
use orchestration::{Decided, Decision, Footprint, Input, LoadError, Outcome, Owed, Segment};

struct Service;

noetl_sdk::orchestrator!(Service);

impl orchestration::Guest for Service {
    fn drive(batch: Vec<Input>) -> Vec<Decision> {
        if cfg!(feature = "trap") {
            panic!("this orchestrator panics at every drive");
        }
        if cfg!(feature = "hang") {
            loop {
                black_box(());
            }
        }
        let answered = batch.len().saturating_sub(usize::from(cfg!(feature = "short")));
        batch.into_iter().take(answered).map(garbage).collect()
    }

    fn learn(_digest: String, _text: String) -> Result<(), String> {
        Ok(())
    }

    fn load(_execution: u64, _checkpoint: Option<Vec<u8>>, _segments: Vec<Segment>) -> Result<Owed, LoadError> {
        Err(LoadError::Broken("this orchestrator can load nothing".to_owned()))
    }

    fn supply(_execution: u64, _digest: String, _value: Vec<u8>) {}

    fn evict(_executions: Vec<u64>) {}

    fn validate(_text: String, _strict: bool) -> String {
        r#"{"problems":[]}"#.to_owned()
    }

    fn usage() -> Footprint {
        Footprint { executions: 0, playbooks: 0 }
    }
}

impl scheduling::Guest for Service {
    fn evaluate(_schedule: String, _last_ms: u64, _now_ms: u64) -> Result<scheduling::Due, String> {
        Err("this orchestrator knows no schedules".to_owned())
    }
}

fn garbage(input: Input) -> Decision {
    let decided = Decided {
        events: b"these are no events\n".to_vec(),
        keep: Vec::new(),
        commands: Vec::new(),
        children: Vec::new(),
        withdrawn: Vec::new(),
        orphaned: Vec::new(),
        wake_at: None,
        ended: None,
    };
    Decision { execution: input.execution, outcome: Outcome::Decided(decided) }
}
