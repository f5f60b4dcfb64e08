//! The end of a command: its report, and the bulk that does not fit into an event.

use serde_json::Value as Json;

use super::Report;
use super::held::{Names, object};
use super::memory::Memory;
use super::outcome::Outcome;
use super::plan::Plan;
use super::turn::{Action, Done, Next};
use crate::event::{Data, Failure, INLINE_BYTES};
use crate::extract::{extract, size};

/// The last answer for a command. `last`: the outcome it ends with, if a tool was settled at all.
pub(super) fn finished(plan: Option<&Plan>, memory: Memory, last: Option<Outcome>, error: Option<Failure>) -> Next {
    let select = plan.map(|plan| select(plan, &memory.results)).unwrap_or_default();
    let hard = error.is_some() && last.as_ref().is_none_or(Outcome::is_hard);
    let value = match last {
        _ if plan.is_some_and(|plan| plan.pipeline) => Json::Object(object(memory.results)),
        // Why it failed is in the report already.
        Some(outcome) if outcome.answered || error.is_none() => outcome.data.into_json(),
        _ => Json::Null,
    };
    let fits = size(&value, INLINE_BYTES).is_some();
    let kept = !fits || (plan.is_some_and(|plan| plan.keep) && matches!(value, Json::Object(_) | Json::Array(_)));
    let bulk = kept.then(|| serde_json::to_vec(&value).expect("JSON values are written without fail"));
    let value = if fits { value } else { extract(&value, INLINE_BYTES, &select).value };
    let report = Report {
        data: Data { value, ..Data::default() },
        error,
        hard,
        set: object(memory.set),
        plugin: memory.plugin,
        digest: memory.digest,
        calls: memory.calls,
        took: memory.took,
    };
    let report = serde_json::to_vec(&report).expect("everything in it has text keys and finite numbers");
    Next { action: Action::Done(Done { report, bulk }), continuation: Vec::new() }
}

/// The fields to keep inline. For a pipeline they are also looked for in the outputs of its tools, as templates do.
fn select(plan: &Plan, results: &Names) -> Vec<String> {
    let mut found = Vec::new();
    for path in &plan.select {
        let head = path.split('.').next().unwrap_or_default();
        if !plan.pipeline || results.contains_key(head) {
            found.push(path.clone());
            continue;
        }
        let holders = results.iter().filter(|(_, output)| output.json().get(head).is_some());
        found.extend(holders.map(|(label, _)| format!("{label}.{path}")));
    }
    found
}
