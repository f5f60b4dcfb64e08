//! The service `system/orchestrate`: glue between the world `orchestrator` and `noetl_flow`.
//!
//! One orchestrator lives as long as the instance. It can be dropped at any moment: what it holds is a function of
//! chains and playbooks, and is asked for again.

mod inputs;
mod outputs;

use std::cell::RefCell;

use noetl_flow::decide::Orchestrator;
use noetl_flow::playbook::{self, Problem, Reading, Severity};
use noetl_flow::schedule;
use noetl_sdk::engine::orchestrator::{orchestration, scheduling};
use serde_json::{Value as Json, json};

thread_local! {
    static ORCHESTRATOR: RefCell<Orchestrator> = RefCell::new(Orchestrator::new());
}

fn with<T>(act: impl FnOnce(&mut Orchestrator) -> T) -> T {
    ORCHESTRATOR.with(|orchestrator| act(&mut orchestrator.borrow_mut()))
}

struct Service;

noetl_sdk::orchestrator!(Service);

impl orchestration::Guest for Service {
    fn drive(batch: Vec<orchestration::Input>) -> Vec<orchestration::Decision> {
        let batch = batch.into_iter().map(inputs::input).collect();
        with(|orchestrator| orchestrator.drive(batch)).into_iter().map(outputs::decision).collect()
    }

    fn learn(digest: String, text: String) -> Result<(), String> {
        with(|orchestrator| orchestrator.learn(&digest, &text))
    }

    fn load(
        execution: u64,
        checkpoint: Option<Vec<u8>>,
        segments: Vec<orchestration::Segment>,
    ) -> Result<orchestration::Owed, orchestration::LoadError> {
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

    fn validate(text: String, strict: bool) -> String {
        checked(&text, strict).to_string()
    }

    fn usage() -> orchestration::Footprint {
        let usage = with(|orchestrator| orchestrator.usage());
        orchestration::Footprint { executions: usage.executions, playbooks: usage.playbooks }
    }
}

impl scheduling::Guest for Service {
    fn evaluate(schedule: String, last_ms: u64, now_ms: u64) -> Result<scheduling::Due, String> {
        let schedule = serde_json::from_str(&schedule).map_err(|error| format!("the schedule is not JSON: {error}"))?;
        let due = schedule::evaluate(&schedule, last_ms, now_ms)?;
        Ok(scheduling::Due { runs: due.runs, next_ms: due.next_ms })
    }
}

/// Everything that keeps the text from being a playbook, and what its author should know besides. A playbook that can
/// be read is also made ready to run, by an orchestrator that is dropped again.
///
/// Of a playbook without errors the catalog is told the path, the description, the labels and the schedule. Of any, it is
/// told where which tool is called, for what the tools have to say about it, which credentials it names, and which tools
/// the engine runs itself.
fn checked(text: &str, strict: bool) -> Json {
    let Reading { playbook, mut problems, uses, credentials } = playbook::read(text, strict);
    let kinds = own_kinds();
    let Some(playbook) = playbook else {
        return json!({ "problems": problems, "uses": uses, "credentials": credentials, "kinds": kinds });
    };
    if let Err(message) = Orchestrator::new().learn("", text) {
        let path = String::new();
        problems.push(Problem { severity: Severity::Error, line: 0, column: 0, path, message, suggestion: None });
    }
    let metadata = &playbook.metadata;
    let described = json!({
        "path": metadata.path,
        "description": metadata.description,
        "labels": metadata.labels,
        "schedule": playbook.schedule,
    });
    json!({
        "problems": problems, "playbook": described, "uses": uses, "credentials": credentials, "kinds": kinds,
    })
}

/// What the engine itself runs, as tools describe themselves.
fn own_kinds() -> Json {
    let read = |(kind, text): &(&str, &str)| {
        let document = serde_json::from_str(text).expect("the documents are compiled in and tested");
        ((*kind).to_owned(), document)
    };
    Json::Object(playbook::OWN_KINDS.iter().map(read).collect())
}

#[cfg(test)]
mod tests;
