//! Policy rules of a tool.
//!
//! `{when, then: {do, ...}}` or `{else: {then: {do, ...}}}`. Where there is no `then`, what it would hold may stand in
//! its place, and what `else` would hold beside it: all three are written in practice, and dropping one of them
//! silently turned retries and failures off.

use serde_json::Value as Json;

use super::duration;
use super::problem::Problems;
use super::shape::count;
use super::text;
use super::yaml::Node;
use crate::task::{Action, Backoff, Rule};
use crate::template::is_template;

const ATTEMPTS: u32 = 3;
const DELAY_MS: u64 = 1000;
const MAX_DELAY_MS: u64 = 3_600_000;

/// The rules of a tool.
pub(super) fn rules(tool: &Node, problems: &mut Problems) -> Vec<Rule> {
    let nodes = rule_nodes(tool);
    let last = nodes.len().saturating_sub(1);
    let mut rules = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        if node.has("else") && node.has("when") {
            problems.error(node.place, "a rule has either `when` or `else`; make two rules of it");
        }
        if node.has("else") && index != last {
            problems.warning(node.place, "the rules after `else` never apply; put it last");
        }
        let body = consequence(node);
        rules.push(Rule {
            when: text::guard(node.get("when"), problems),
            action: action(body, problems),
            set: body.get("set").map(Node::json_map).unwrap_or_default(),
        });
    }
    rules
}

/// Where the tool's rules jump to.
pub(super) fn jump_targets(tool: &Node) -> impl Iterator<Item = &Node> {
    let bodies = rule_nodes(tool).iter().map(consequence);
    bodies.filter(|body| body.get("do").and_then(Node::text) == Some("jump")).filter_map(|body| body.get("to"))
}

fn rule_nodes(tool: &Node) -> &[Node] {
    let rules = tool.get("spec").and_then(|spec| spec.get("policy")).and_then(|policy| policy.get("rules"));
    rules.map(Node::items).unwrap_or_default()
}

/// The part of a rule that says what to do.
fn consequence(rule: &Node) -> &Node {
    let rule = rule.get("else").unwrap_or(rule);
    rule.get("then").unwrap_or(rule)
}

fn action(body: &Node, problems: &mut Problems) -> Option<Action> {
    let word = body.get("do")?;
    match word.text()? {
        "continue" => Some(Action::Continue),
        "break" => Some(Action::Break),
        "fail" => Some(Action::Fail),
        "retry" => Some(retry(body)),
        "jump" => match body.get("to").and_then(Node::text) {
            Some(to) => Some(Action::Jump { to: to.to_owned() }),
            None => {
                problems.error(word.place, "`to` is missing: the label of the tool to jump to");
                None
            }
        },
        // The table of keys has complained.
        _ => None,
    }
}

fn retry(body: &Node) -> Action {
    let milliseconds = |name| body.get(name).and_then(Node::scalar).and_then(duration::milliseconds);
    let delay = milliseconds("delay");
    let template = body.get("delay").and_then(Node::text).filter(|text| is_template(text)).map(str::to_owned);
    let backoff = match body.get("backoff").and_then(Node::text) {
        Some("fixed") => Backoff::Fixed,
        Some("linear") => Backoff::Linear,
        Some("exponential") => Backoff::Exponential,
        // Whoever gives a delay and no word for its growth wants the delay.
        None if delay.is_some() || template.is_some() => Backoff::Fixed,
        _ => Backoff::None,
    };
    Action::Retry {
        attempts: body.get("attempts").and_then(count).unwrap_or(ATTEMPTS),
        backoff,
        delay_ms: delay.unwrap_or(DELAY_MS),
        delay: template,
        max_delay_ms: milliseconds("max_delay").unwrap_or(MAX_DELAY_MS),
        jitter: body.get("jitter").and_then(Node::scalar).and_then(Json::as_f64).unwrap_or(0.0),
    }
}
