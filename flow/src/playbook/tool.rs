//! Tools of a step, from either of their forms.
//!
//! Old spellings end here: `args` becomes `input`, keys below `spec` become the tool's own, a reference to the workbook
//! becomes the tool it refers to.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json, json};

use super::duration;
use super::keys::{KINDS, PLUGIN};
use super::model::Park;
use super::problem::{Place, Problems, Severity, nearest};
use super::rule;
use super::shape::labelled;
use super::yaml::{HEAVIEST, Node};
use crate::task::{Tool, WHOLE, acknowledges_early};
use crate::template::is_template;

/// What a tool can refer to outside of its step.
pub(super) struct Surroundings<'doc> {
    /// Tools of the workbook by name.
    pub workbook: BTreeMap<&'doc str, &'doc Node>,
    /// The plugin of a playbook whose runtime is `wasm`.
    pub plugin: Option<Json>,
    /// What has been written out so far: see [`Surroundings::may_copy`].
    pub copied: Cell<usize>,
}

/// Words for the tool before, in a jump.
const PREVIOUS: &[&str] = &["previous", "prev", "_previous", "@previous"];

/// Keys of a tool that are not part of its configuration.
const OURS: &[&str] = &["kind", "input", "set", "spec", "eval"];

impl Surroundings<'_> {
    /// Whether so much more may be copied. A reference is short and what it stands for may be long, so the whole is
    /// bounded, as it is for the aliases of a document.
    pub fn may_copy(&self, weight: usize, place: Place, problems: &mut Problems) -> bool {
        let copied = self.copied.get().saturating_add(weight);
        self.copied.set(copied);
        if copied > HEAVIEST {
            problems.error(place, "with the workbook and inputs of steps written out the playbook is too large");
        }
        copied <= HEAVIEST
    }

    /// The one tool of a step.
    pub fn single(&self, node: &Node, step: &str, problems: &mut Problems) -> Vec<Tool> {
        let tools: Vec<Tool> = self.tool(node, step.to_owned(), false, problems).into_iter().collect();
        check_jumps(&[node], &tools, problems);
        tools
    }

    /// The tools of a pipeline.
    pub fn pipeline(&self, list: &Node, problems: &mut Problems) -> Vec<Tool> {
        if list.items().is_empty() {
            problems.error(list.place, "the list has no tools; use `kind: noop` for a step that does nothing");
        }
        let mut tools: Vec<Tool> = Vec::new();
        let mut labels = BTreeSet::new();
        let (mut nodes, mut places) = (Vec::new(), Vec::new());
        for (index, item) in list.items().iter().enumerate().filter(|(_, item)| item.is_map()) {
            let (label, node, named) = match labelled(item) {
                Some((label, node)) => (label.to_owned(), node, false),
                None => match item.get("name").and_then(Node::text) {
                    Some(name) => (name.to_owned(), item, true),
                    None => (format!("task_{}", index + 1), item, false),
                },
            };
            if node.get("kind").and_then(Node::text) == Some("park") {
                problems.error(node.place, "`kind: park` has to be the only tool of its step");
            }
            if !labels.insert(label.clone()) {
                problems.error(node.place, format!("the label `{label}` is used twice; give each tool its own `name`"));
            }
            nodes.push(node);
            tools.extend(self.tool(node, label, named, problems));
            places.resize(tools.len(), node.place);
        }
        check_jumps(&nodes, &tools, problems);
        let before_others = tools.len().saturating_sub(1);
        for (tool, place) in tools.iter().zip(places).take(before_others) {
            if let Some(wrong) = acknowledges_early(&tool.kind, &tool.config, &tool.input) {
                problems.error(place, wrong);
            }
        }
        tools
    }

    /// `named`: the tool's `name` is its label and nothing else.
    fn tool(&self, node: &Node, label: String, named: bool, problems: &mut Problems) -> Option<Tool> {
        let kind = node.get("kind")?;
        let word = kind.text()?;
        check_kind(kind.place, word, problems);
        if word == "workbook" {
            return self.resolve(node, label, problems);
        }
        let mut tool = Tool {
            label,
            kind: word.to_owned(),
            config: config(node, named),
            input: input(node),
            set: node.get("set").map(Node::json_map).unwrap_or_default(),
            rules: rule::rules(node, problems),
            timeout_ms: timeout(node, problems),
            retry_safe: retry_safe(node),
        };
        // What else a kind of tool cannot do without is in its description, a playbook's path too, and told from there.
        if word == "wasm" {
            self.complete_wasm(node, &mut tool, problems);
        }
        Some(tool)
    }

    /// The tool a reference stands for: what the reference says besides comes on top.
    fn resolve(&self, node: &Node, label: String, problems: &mut Problems) -> Option<Tool> {
        let Some(name) = node.get("task").or_else(|| node.get("name")) else {
            problems.error(node.place, "`name` is missing: which tool of the workbook to use");
            return None;
        };
        let wanted = name.text()?;
        let Some(task) = self.workbook.get(wanted) else {
            let message = format!("the workbook has no `{wanted}`");
            problems.unknown_name(name.place, wanted, self.workbook.keys().copied(), message);
            return None;
        };
        if task.get("kind").and_then(Node::text) == Some("workbook") {
            problems.error(task.place, "a tool of the workbook cannot be a reference to the workbook");
            return None;
        }
        if !self.may_copy(task.weight(), name.place, problems) {
            return None;
        }
        let mut tool = self.tool(task, label, false, problems)?;
        tool.input.extend(input(node));
        tool.set.extend(node.get("set").map(Node::json_map).unwrap_or_default());
        let rules = rule::rules(node, problems);
        if !rules.is_empty() {
            tool.rules = rules;
        }
        tool.timeout_ms = timeout(node, problems).or(tool.timeout_ms);
        tool.retry_safe = retry_safe(node).or(tool.retry_safe);
        Some(tool)
    }

    /// The plugin as a map, whichever way it was given.
    fn complete_wasm(&self, node: &Node, tool: &mut Tool, problems: &mut Problems) {
        let plugin = match node.get("plugin") {
            Some(plugin) => plugin_of(plugin, problems),
            None => self.plugin.clone(),
        };
        match plugin {
            Some(plugin) => {
                tool.config.insert("plugin".to_owned(), plugin);
            }
            None if node.has("plugin") => {}
            None => problems.error(node.place, "`plugin` is missing: the path of the plugin to call"),
        }
    }
}

/// `path`, or a map that has it, as `{path, version?, capabilities?}`.
pub(super) fn plugin_of(node: &Node, problems: &mut Problems) -> Option<Json> {
    if let Some(path) = node.text() {
        return Some(json!({ "path": path }));
    }
    if !node.is_map() {
        problems.error(node.place, "expected the path of a plugin, or a map with `path`");
        return None;
    }
    PLUGIN.check(node, problems);
    let mut plugin = node.json_map();
    if let Some(version) = node.get("version").and_then(Node::scalar).filter(|version| !version.is_string()) {
        plugin.insert("version".to_owned(), version.to_string().into());
    }
    Some(Json::Object(plugin))
}

/// What a step that parks says.
pub(super) fn park(node: &Node, problems: &mut Problems) -> Park {
    let message = node.get("message").and_then(|message| {
        if message.text().is_none() {
            problems.error(message.place, "expected text");
        }
        message.text().map(str::to_owned)
    });
    Park { message, timeout_ms: timeout(node, problems) }
}

fn check_kind(place: Place, kind: &str, problems: &mut Problems) {
    let mut letters = kind.chars();
    let begins = letters.next().is_some_and(|letter| letter.is_ascii_lowercase());
    if !begins || !letters.all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "_-".contains(letter))
    {
        let message = format!("`{kind}` cannot be a kind of tool: small letters, digits, `_` and `-` make one");
        problems.unknown_name(place, kind, KINDS.iter().copied(), message);
    } else if !KINDS.contains(&kind)
        && let Some(known) = nearest(kind, KINDS.iter().copied())
    {
        let suggestion = Some(format!("did you mean `{known}`?"));
        problems.add(Severity::Warning, place, format!("`{kind}` is not a well-known kind of tool"), suggestion);
    }
}

/// Everything that is the tool's own.
fn config(node: &Node, named: bool) -> Map<String, Json> {
    let mut config = Map::new();
    for (key, value) in node.entries() {
        let is_input = key.name == "args" && gives_input(value);
        let is_label = named && key.name == "name";
        if !OURS.contains(&key.name.as_str()) && !is_input && !is_label {
            config.insert(key.name.clone(), value.json());
        }
    }
    for (key, value) in node.get("spec").map(Node::entries).unwrap_or_default() {
        let is_ours = match key.name.as_str() {
            "policy" | "input" | "retry_safe" => true,
            "timeout" => !value.text().is_some_and(is_template) || config.contains_key("timeout_seconds"),
            _ => false,
        };
        if !is_ours && !config.contains_key(&key.name) {
            config.insert(key.name.clone(), value.json());
        }
    }
    config
}

/// `spec.input` under `args` under `input`.
fn input(node: &Node) -> Map<String, Json> {
    let mut input = Map::new();
    for given in [node.get("spec").and_then(|spec| spec.get("input")), node.get("args"), node.get("input")] {
        input.extend(given.map(input_of).unwrap_or_default());
    }
    input
}

/// Whether a value is the input of a tool: a map, or an expression that gives one.
pub(super) fn gives_input(node: &Node) -> bool {
    node.is_map() || node.text().is_some_and(is_template)
}

/// The fields of an input; those of an expression are known only when it is rendered.
pub(super) fn input_of(node: &Node) -> Map<String, Json> {
    match node.text() {
        Some(text) if is_template(text) => Map::from_iter([(WHOLE.to_owned(), text.into())]),
        _ => node.json_map(),
    }
}

/// Whether the call may be made again when nobody knows what became of it.
fn retry_safe(node: &Node) -> Option<bool> {
    node.get("spec")?.get("retry_safe")?.json().as_bool()
}

/// The tool's time limit. One that is a template stays in the configuration, and is read when the call is prepared.
fn timeout(node: &Node, problems: &mut Problems) -> Option<u64> {
    let in_spec = node.get("spec").and_then(|spec| spec.get("timeout"));
    time_limit(node.get("timeout").or_else(|| node.get("timeout_seconds")).or(in_spec), problems)
}

pub(super) fn time_limit(node: Option<&Node>, problems: &mut Problems) -> Option<u64> {
    let node = node?;
    let limit = duration::milliseconds(node.scalar()?)?;
    if limit == 0 {
        problems.error(node.place, "a time limit of 0 leaves no time; leave it out for none");
    }
    Some(limit)
}

/// Every jump leads to a tool of the same step.
fn check_jumps(nodes: &[&Node], tools: &[Tool], problems: &mut Problems) {
    let labels: BTreeSet<&str> = tools.iter().map(|tool| tool.label.as_str()).collect();
    for target in nodes.iter().flat_map(|node| rule::jump_targets(node)) {
        let label = target.text().unwrap_or_default();
        if !PREVIOUS.contains(&label) && !labels.contains(label) {
            let known = labels.iter().copied();
            problems.unknown_name(target.place, label, known, format!("the step has no tool with the label `{label}`"));
        }
    }
}
