//! A runner of a few lines. Whatever the kind of a tool, it answers its `result`, rendered; it fails when its `fail` holds;
//! it writes its `set`; `_attempt` is the attempt of the command; with `repeat` the result is made that many times longer, to be a payload.

use std::collections::BTreeMap;

use noetl_flow::decide::Command;
use noetl_flow::event::{Data, Failure, INLINE_BYTES};
use noetl_flow::extract::extract;
use noetl_flow::ids::CommandId;
use noetl_flow::state::told_beside;
use noetl_flow::task::{Inputs, Partial, Report, Spec, Tool};
use noetl_flow::template::{Context, Reading, Templates, from_json, keychain, read_value};
use serde_json::{Map, Value as Json, json};

type Payloads = BTreeMap<String, Vec<u8>>;

/// What the command came to, and the bulk that goes with it.
pub fn run(execution: u64, at: u64, command: &Command, payloads: &Payloads) -> (Report, Option<Vec<u8>>) {
    let mut lines = command.task.split(|byte| *byte == b'\n');
    let spec: Spec = serde_json::from_slice(lines.next().expect("two lines")).expect("a spec");
    let inputs: Inputs = serde_json::from_slice(lines.next().expect("two lines")).expect("inputs");
    let attempt = command.id.parse::<CommandId>().expect("an id").attempt;
    let context = context(execution, at, &inputs, payloads).with([("_attempt", attempt.into())]);
    let declared = (!spec.keychain.is_empty()).then(|| ("keychain", keychain(&spec.keychain)));
    let context = context.with(declared);
    let templates = Templates::new();
    let mut results = Map::new();
    let (mut error, mut set) = (None, Map::new());
    for tool in &spec.tools {
        let rendered = |value: &Json| templates.render_json(value, &context).expect("a test's template renders");
        let result = result(tool, &rendered);
        for (name, value) in &tool.set {
            set.insert(name.clone(), rendered(value));
        }
        results.insert(tool.label.clone(), result);
        if tool.config.get("fail").is_some_and(|fail| templates.truthy(fail, &context).expect("a guard")) {
            let code = tool.config.get("code").and_then(Json::as_str).unwrap_or("boom").to_owned();
            error = Some(Failure { code, message: format!("{} went wrong", tool.label), retryable: false });
            break;
        }
    }
    let value = match spec.pipeline {
        true => Json::Object(results),
        false => results.into_iter().next().map(|(_, value)| value).unwrap_or_default(),
    };
    let whole = serde_json::to_vec(&value).expect("JSON");
    let extract = extract(&value, INLINE_BYTES, &spec.output_select);
    let bulk = extract.truncated.then_some(whole);
    let data = Data { value: extract.value, ..Data::default() };
    let calls = spec.tools.len() as u32;
    // A tool that says that it could not be called at all.
    let hard = error.as_ref().is_some_and(|error| error.code == "unknown_tool");
    (Report { data, error, hard, set, plugin: None, digest: None, calls, took: 1 }, bulk)
}

fn result(tool: &Tool, rendered: &dyn Fn(&Json) -> Json) -> Json {
    let value = tool.config.get("result").map(rendered).unwrap_or_else(|| json!({ "status": "ok" }));
    match tool.config.get("repeat").map(rendered).and_then(|times| times.as_u64()) {
        Some(times) => json!({ "rows": vec![value; times as usize], "count": times }),
        None => value,
    }
}

fn context(execution: u64, at: u64, inputs: &Inputs, payloads: &Payloads) -> Context {
    let mut values = inputs.context.clone();
    let mut bound = inputs.bind.clone();
    for (name, partial) in &inputs.partial {
        let whole = match partial {
            Partial::Payload(reference) => {
                let whole = load(payloads, &reference.sha256);
                values.get(name).and_then(|extract| told_beside(extract, &whole)).unwrap_or(whole)
            }
            Partial::Chunks(chunks) => {
                let mut entries: Vec<Json> = chunks
                    .iter()
                    .flat_map(|chunk| load(payloads, &chunk.sha256).as_array().cloned())
                    .flatten()
                    .collect();
                entries.sort_by_key(|entry| entry[0].as_u64());
                let results: Vec<Json> = entries.into_iter().map(|entry| entry[1].clone()).collect();
                let mut value = values.get(name).cloned().unwrap_or_default();
                value["results"] = results.clone().into();
                value["data"] = results.into();
                value
            }
        };
        match name.strip_prefix("iter.") {
            Some(inner) => {
                if let Some(iter) = values.get_mut("iter") {
                    iter[inner] = whole;
                }
            }
            None => {
                if let Some(value) = bound.get_mut(name) {
                    *value = whole.clone();
                }
                values.insert(name.clone(), whole);
            }
        }
    }
    let own = json!({ "execution_id": execution.to_string() });
    let base = Context::sealed(at, inputs.seal.as_deref())
        .with(own.as_object().into_iter().flatten().map(|(n, v)| (n.as_str(), from_json(v))))
        .with(bound.iter().map(|(n, v)| (n.as_str(), from_json(v))));
    base.with(values.iter().map(|(name, value)| {
        let is_result = inputs.results.iter().find(|(result, _)| result == name);
        let value = match is_result {
            Some((name, pipeline)) => {
                let (by_shape, each) = (inputs.handed_on.contains(name), inputs.each.contains(name));
                read_value(value, &Reading { pipeline: *pipeline, by_shape, each, ..Reading::default() })
            }
            None => from_json(value),
        };
        (name.as_str(), value)
    }))
}

fn load(payloads: &Payloads, digest: &str) -> Json {
    serde_json::from_slice(payloads.get(digest).expect("payloads are kept before they are referred to")).expect("JSON")
}
