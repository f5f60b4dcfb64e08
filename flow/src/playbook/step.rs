//! Steps: from the document to the model.

use serde_json::{Map, Value as Json};

use super::model::{Admit, Arc, Cursor, Limit, Loop, Next, NextMode, OnError, OnNoMatch, Step, Work};
use super::problem::{Problems, Severity};
use super::shape::count;
use super::text;
use super::tool::{self, Surroundings};
use super::yaml::{Node, Value};
use crate::event::LoopMode;
use crate::keychain::Keychain;
use crate::task::{Spec, Tool};
use crate::template::is_template;

/// Names that templates know by themselves; a step called so would hide them.
const TAKEN: &[&str] =
    &["ctx", "workload", "iter", "event", "output", "execution_id", "job", "env", "keychain", "steps"];

/// A step, if it has a name.
pub(super) fn step(
    node: &Node,
    surroundings: &Surroundings,
    no_match: OnNoMatch,
    problems: &mut Problems,
) -> Option<Step> {
    let name = node.get("step")?;
    let word = name.text()?;
    if word.trim().is_empty() {
        problems.error(name.place, "the name of a step cannot be empty");
    }
    if TAKEN.contains(&word) {
        problems.warning(name.place, format!("a step called `{word}` hides the variable of that name in templates"));
    }
    for (_, value) in node.entries().iter().filter(|(key, _)| !matches!(key.name.as_str(), "desc" | "description")) {
        text::check(value, Severity::Error, problems);
    }
    let spec = node.get("spec");
    Some(Step {
        name: word.to_owned(),
        description: node.get("desc").or_else(|| node.get("description")).and_then(Node::text).map(str::to_owned),
        when: text::guard(node.get("when"), problems),
        admit: admit(spec, problems),
        work: work(node, word, surroundings, problems)?,
        repeat: node.get("loop").and_then(|node| repeat(node, problems)),
        set: node.get("set").map(Node::json_map).unwrap_or_default(),
        next: next(node, no_match, problems),
        timeout_ms: tool::time_limit(spec.and_then(|spec| spec.get("timeout")), problems),
        on_error: match spec.and_then(|spec| spec.get("on_error")).and_then(Node::text) {
            Some("fail") => Some(OnError::Fail),
            Some("continue") => Some(OnError::Continue),
            _ => None,
        },
        store: store(node),
    })
}

fn work(node: &Node, step: &str, surroundings: &Surroundings, problems: &mut Problems) -> Option<Work> {
    let Some(given) = node.get("tool") else {
        let Some(plugin) = &surroundings.plugin else {
            problems.error(node.place, format!("`tool` is missing in step `{step}`; use `kind: noop` to do nothing"));
            return None;
        };
        let config = Map::from_iter([("plugin".to_owned(), plugin.clone())]);
        let tools = vec![bare_tool(step, "wasm", config)];
        return Some(Work::Task(spec_of(node, step, tools, false)));
    };
    if given.get("kind").and_then(Node::text) == Some("park") {
        if let Some(repeat) = node.get("loop") {
            problems.error(repeat.place, "a step that parks cannot have a loop");
        }
        return Some(Work::Park(tool::park(given, problems)));
    }
    let pipeline = matches!(given.value, Value::List(_));
    let tools = match pipeline {
        true => surroundings.pipeline(given, problems),
        false => surroundings.single(given, step, problems),
    };
    let input = ["input", "args"].iter().filter_map(|name| node.get(name)).map(Node::weight).sum::<usize>();
    if !surroundings.may_copy(input.saturating_mul(tools.len()), node.place, problems) {
        return None;
    }
    Some(Work::Task(spec_of(node, step, tools, pipeline)))
}

/// `output.store`, or the `kind` of it.
fn store(node: &Node) -> Option<String> {
    let store = node.get("output")?.get("store")?;
    let kind = store.get("kind").unwrap_or(store).text()?;
    (!is_template(kind)).then(|| kind.to_owned())
}

fn bare_tool(label: &str, kind: &str, config: Map<String, Json>) -> Tool {
    Tool {
        label: label.to_owned(),
        kind: kind.to_owned(),
        config,
        input: Map::new(),
        set: Map::new(),
        rules: Vec::new(),
        timeout_ms: None,
        retry_safe: None,
    }
}

/// The task of a step, with the step's input under that of its tools.
fn spec_of(node: &Node, step: &str, mut tools: Vec<Tool>, pipeline: bool) -> Spec {
    let given = node.get("input").map(tool::input_of).unwrap_or_default();
    let older = node.get("args").map(tool::input_of).unwrap_or_default();
    for tool in &mut tools {
        let mut input = if tool.input.is_empty() { older.clone() } else { Map::new() };
        input.extend(given.clone());
        input.extend(std::mem::take(&mut tool.input));
        tool.input = input;
    }
    let output = |name: &str| node.get("output").and_then(|output| output.get(name));
    let selected = output("output_select").map(Node::items).unwrap_or_default();
    let output_select: Vec<String> = selected.iter().filter_map(Node::text).map(str::to_owned).collect();
    let stored = output("store").is_some_and(|store| !matches!(store.scalar(), Some(Json::Null | Json::Bool(false))));
    // Of a loop it is the list of results that is referred to, and that is kept by its size.
    let keep = (stored || !output_select.is_empty()) && node.get("loop").is_none();
    Spec { step: step.to_owned(), tools, pipeline, output_select, keep, keychain: Keychain::new() }
}

fn admit(spec: Option<&Node>, problems: &mut Problems) -> Vec<Admit> {
    let rules = spec.and_then(|spec| spec.get("policy")?.get("admit")?.get("rules")).map(Node::items);
    let mut admit = Vec::new();
    for rule in rules.unwrap_or_default() {
        let body = rule.get("else").unwrap_or(rule);
        let Some(allow) = body.get("then").unwrap_or(body).get("allow") else {
            problems.error(rule.place, "`allow` is missing: whether the step runs");
            continue;
        };
        let when = text::guard(rule.get("when"), problems);
        admit.push(Admit { when, allow: allow.scalar() == Some(&Json::Bool(true)) });
    }
    admit
}

fn repeat(node: &Node, problems: &mut Problems) -> Option<Loop> {
    let spec = node.get("spec");
    let setting = |name| spec.and_then(|spec| spec.get(name));
    let cursor = node.get("cursor");
    let mode = match (setting("mode").and_then(Node::text), cursor) {
        (Some("parallel"), None) => LoopMode::Parallel,
        (Some("cursor") | None, Some(_)) => LoopMode::Cursor,
        (_, Some(cursor)) => {
            problems.error(cursor.place, "a loop with a `cursor` has the mode `cursor`");
            LoopMode::Cursor
        }
        (Some("cursor"), None) => {
            problems.error(node.place, "`cursor` is missing: the tool that hands out items");
            LoopMode::Cursor
        }
        _ => LoopMode::Sequential,
    };
    let over = match (node.get("in"), cursor) {
        (Some(over), Some(_)) => {
            problems.error(over.place, "a loop goes over `in` or over a `cursor`, not both");
            Json::Null
        }
        (Some(over), None) if over.scalar().is_some_and(Json::is_boolean) => {
            problems.error(over.place, "expected a list, or a template that gives one");
            Json::Null
        }
        (Some(over), None) => over.json(),
        (None, Some(_)) => Json::Null,
        (None, None) => {
            problems.error(node.place, "`in` is missing: what the loop goes over");
            Json::Null
        }
    };
    let max_in_flight = setting("max_in_flight").and_then(|limit| match limit.text() {
        Some(text) => Some(Limit::Template(text.to_owned())),
        None => count(limit).map(Limit::Number),
    });
    let cursor = cursor.map(|cursor| claim(cursor, setting("frame")));
    Some(Loop { mode, over, iterator: iterator(node, problems)?, max_in_flight, cursor })
}

fn iterator(node: &Node, problems: &mut Problems) -> Option<String> {
    let iterator = node.get("iterator")?;
    let name = iterator.text()?;
    let is_name = name.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    if !is_name || name.is_empty() || name.starts_with(|letter: char| letter.is_numeric()) {
        problems.error(iterator.place, format!("`{name}` cannot be a variable: letters, digits and `_` make one"));
    }
    Some(name.to_owned())
}

fn claim(node: &Node, frame: Option<&Node>) -> Cursor {
    let mut config = node.json_map();
    let kind = config.shift_remove("kind").and_then(|kind| kind.as_str().map(str::to_owned)).unwrap_or_default();
    if let Some(command) = config.shift_remove("claim") {
        config.insert("command".to_owned(), command);
    }
    let number = |name| frame.and_then(|frame| frame.get(name)).and_then(count).unwrap_or(1);
    Cursor {
        claim: bare_tool("claim", &kind, config),
        max_rows: number("max_rows"),
        row_concurrency: number("row_concurrency"),
    }
}

fn next(step: &Node, no_match: OnNoMatch, problems: &mut Problems) -> Next {
    let older_mode = step.get("spec").and_then(|spec| spec.get("next_mode")).and_then(Node::text);
    let Some(next) = step.get("next") else {
        return Next { mode: NextMode::Exclusive, arcs: Vec::new(), on_no_match: no_match };
    };
    let spec = next.get("spec");
    let (nodes, mode) = match &next.value {
        Value::Map(_) => {
            let mode = spec.and_then(|spec| spec.get("mode")).and_then(Node::text).or(older_mode);
            (next.get("arcs").map(Node::items).unwrap_or_default(), mode)
        }
        // Plain names all fire, and a name alone is a list of one.
        Value::List(items) if items.iter().all(|item| item.text().is_some()) => (items.as_slice(), Some("inclusive")),
        Value::List(items) => (items.as_slice(), older_mode),
        Value::Scalar(_) => (std::slice::from_ref(next), None),
    };
    let mode = if mode == Some("inclusive") { NextMode::Inclusive } else { NextMode::Exclusive };
    let arcs: Vec<Arc> = nodes.iter().filter_map(|node| arc(node, problems)).collect();
    let open = arcs.iter().position(|arc| arc.when.is_none());
    if let (NextMode::Exclusive, Some(node)) = (mode, open.and_then(|open| nodes.get(open + 1))) {
        problems.warning(node.place, "never taken, because the arc before it has no `when`");
    }
    let on_no_match = match spec.and_then(|spec| spec.get("on_no_match")).and_then(Node::text) {
        Some("fail") => OnNoMatch::Fail,
        Some(_) => OnNoMatch::End,
        None => no_match,
    };
    Next { mode, arcs, on_no_match }
}

fn arc(node: &Node, problems: &mut Problems) -> Option<Arc> {
    if let Some(step) = node.text() {
        return Some(Arc { step: step.to_owned(), when: None, set: Map::new() });
    }
    // Below `arcs` the older word is refused by the table of keys, so it is only met in plain lists.
    let mut set = node.get("args").map(Node::json_map).unwrap_or_default();
    set.extend(node.get("set").map(Node::json_map).unwrap_or_default());
    Some(Arc { step: node.get("step")?.text()?.to_owned(), when: text::guard(node.get("when"), problems), set })
}

/// Where a step's arcs lead, in the document.
pub(super) fn targets(step: &Node) -> Vec<&Node> {
    let Some(next) = step.get("next") else { return Vec::new() };
    match &next.value {
        Value::Scalar(_) => vec![next],
        Value::List(items) => items.iter().filter_map(target).collect(),
        Value::Map(_) => next.get("arcs").map(Node::items).unwrap_or_default().iter().filter_map(target).collect(),
    }
}

fn target(arc: &Node) -> Option<&Node> {
    if arc.text().is_some() { Some(arc) } else { arc.get("step") }
}
