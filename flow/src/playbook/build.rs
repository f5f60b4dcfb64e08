//! The model of a whole document, and what only the whole can show: names that must exist, steps nobody reaches.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::keychain;
use super::model::{Executor, Failures, Metadata, OnNoMatch, Playbook, Requires, Step};
use super::problem::{Place, Problems, Severity};
use super::step::{self, targets};
use super::text;
use super::tool::{self, Surroundings};
use super::yaml::Node;
use crate::schedule;

const ENTRY: &str = "start";

/// The playbook, as far as the document goes; it is good only if no problem is an error.
pub(super) fn playbook(root: &Node, digest: String, problems: &mut Problems) -> Playbook {
    let executor = root.get("executor");
    let spec = executor.and_then(|executor| executor.get("spec"));
    let is_error = spec.and_then(|spec| spec.get("no_next_is_error")).and_then(Node::scalar);
    let no_match = if is_error == Some(&Json::Bool(true)) { OnNoMatch::Fail } else { OnNoMatch::End };
    let surroundings =
        Surroundings { workbook: workbook(root, problems), plugin: plugin(executor, problems), copied: Cell::new(0) };
    let nodes = root.get("workflow").map(Node::items).unwrap_or_default();
    let steps: Vec<Step> =
        nodes.iter().filter_map(|node| step::step(node, &surroundings, no_match, problems)).collect();
    let entry = spec.and_then(|spec| spec.get("entry_step"));
    check_graph(root, nodes, entry, problems);
    if let Some(workload) = root.get("workload") {
        text::check(workload, Severity::Warning, problems);
    }
    Playbook {
        digest,
        metadata: metadata(root.get("metadata")),
        workload: root.get("workload").map(Node::json_map).unwrap_or_default(),
        executor: settings(executor, problems),
        entry: entry.and_then(Node::text).unwrap_or(ENTRY).to_owned(),
        steps,
        keychain: keychain::declared(root.get("keychain"), problems),
        schedule: root.get("schedule").map(|schedule| checked_schedule(schedule, problems)),
    }
}

fn metadata(node: Option<&Node>) -> Metadata {
    let text = |name| node.and_then(|node| node.get(name)).and_then(Node::text).map(str::to_owned);
    let name = text("name").unwrap_or_default();
    let labels = node.and_then(|node| node.get("labels")).map(Node::entries).unwrap_or_default();
    Metadata {
        path: text("path").unwrap_or_else(|| name.clone()),
        name,
        description: text("description"),
        labels: labels.iter().map(|(key, value)| (key.name.clone(), word(&value.json()))).collect(),
    }
}

fn word(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn settings(executor: Option<&Node>, problems: &mut Problems) -> Executor {
    let get = |name| executor.and_then(|executor| executor.get(name));
    let required = |name| get("requires").and_then(|requires| requires.get(name)).map(Node::items).unwrap_or_default();
    let words = |name| required(name).iter().filter_map(Node::text).map(str::to_owned).collect();
    let spec = get("spec");
    let failures = spec.and_then(|spec| spec.get("policy")?.get("failures")).and_then(Node::text);
    Executor {
        profile: get("profile").and_then(Node::text).map(str::to_owned),
        version: get("version").map(|version| word(&version.json())),
        requires: Requires { tools: words("tools"), features: words("features") },
        timeout_ms: tool::time_limit(spec.and_then(|spec| spec.get("timeout")), problems),
        failures: match failures {
            Some("lenient") => Some(Failures::Lenient),
            Some("strict") => Some(Failures::Strict),
            _ => None,
        },
    }
}

/// The plugin that steps without a tool call.
fn plugin(executor: Option<&Node>, problems: &mut Problems) -> Option<Json> {
    let executor = executor?;
    let plugin = executor.get("plugin");
    match (executor.get("runtime").and_then(Node::text), plugin) {
        (Some("wasm"), Some(plugin)) => tool::plugin_of(plugin, problems),
        (Some("wasm"), None) => {
            problems.error(executor.place, "`plugin` is missing: the path of the plugin that steps call");
            None
        }
        (_, Some(plugin)) => {
            problems.warning(plugin.place, "`plugin` has no effect without `runtime: wasm`");
            None
        }
        (_, None) => None,
    }
}

fn workbook<'doc>(root: &'doc Node, problems: &mut Problems) -> BTreeMap<&'doc str, &'doc Node> {
    let mut tools = BTreeMap::new();
    for task in root.get("workbook").map(Node::items).unwrap_or_default() {
        let (Some(name), Some(tool)) = (task.get("name"), task.get("tool")) else { continue };
        text::check(tool, Severity::Error, problems);
        let Some(word) = name.text() else { continue };
        if tools.insert(word, tool).is_some() {
            problems.error(name.place, format!("the workbook has `{word}` twice"));
        }
    }
    tools
}

fn checked_schedule(node: &Node, problems: &mut Problems) -> Json {
    let json = node.json();
    // Without a text for `cron` the table of keys has complained.
    if node.get("cron").and_then(Node::text).is_some()
        && let Err(fault) = schedule::Schedule::read(&json)
    {
        problems.error(node.get(fault.key).map_or(node.place, |node| node.place), fault.message);
    }
    json
}

/// Names are unique, arcs lead somewhere, the first step is there, and every step can be reached from it.
fn check_graph(root: &Node, nodes: &[Node], entry: Option<&Node>, problems: &mut Problems) {
    let mut steps: BTreeMap<&str, &Node> = BTreeMap::new();
    for node in nodes {
        let Some(name) = node.get("step") else { continue };
        let Some(word) = name.text() else { continue };
        if let Some(first) = steps.get(word) {
            let line = first.place.line;
            problems.error(name.place, format!("the step `{word}` is already on line {line}; names are unique"));
            continue;
        }
        steps.insert(word, node);
    }
    for target in nodes.iter().flat_map(targets) {
        let Some(word) = target.text() else { continue };
        if !steps.contains_key(word) {
            problems.unknown_name(target.place, word, steps.keys().copied(), format!("there is no step `{word}`"));
        }
    }
    let first = entry.and_then(Node::text).unwrap_or(ENTRY);
    if steps.contains_key(first) {
        warn_of_unreached(first, &steps, problems);
    } else if let Some(workflow) = root.get("workflow") {
        let place = entry.map_or(workflow.place, |entry| entry.place);
        let message = format!("there is no step `{first}`, with which an execution begins");
        problems.unknown_name(place, first, steps.keys().copied(), message);
    }
}

fn warn_of_unreached(first: &str, steps: &BTreeMap<&str, &Node>, problems: &mut Problems) {
    let mut reached = BTreeSet::from([first]);
    let mut open = vec![first];
    while let Some(name) = open.pop() {
        let onward = steps.get(name).map(|node| targets(node)).unwrap_or_default();
        for word in onward.into_iter().filter_map(Node::text) {
            if steps.contains_key(word) && reached.insert(word) {
                open.push(word);
            }
        }
    }
    let unreached: Vec<(Place, &str)> = steps
        .iter()
        .filter(|(name, _)| !reached.contains(*name))
        .map(|(name, node)| (node.get("step").map_or(node.place, |node| node.place), *name))
        .collect();
    for (place, name) in unreached {
        problems.warning(place, format!("the step `{name}` never runs: no path of arcs leads to it from `{first}`"));
    }
}
