//! A [`Spec`] with its templates compiled, and what they refer to.

use std::sync::Arc;

use serde_json::{Map, Value as Json};

use super::{Action, Rule, Spec, Tool, WHOLE, reads_context};
use crate::keychain::Keychain;
use crate::template::{Guard, References, RenderError, Template, Tree, Value, keychain};

#[derive(Debug)]
pub(super) struct Plan {
    pub step: String,
    pub tools: Vec<Planned>,
    pub pipeline: bool,
    pub select: Vec<String>,
    /// The result is kept as a payload in any case.
    pub keep: bool,
    /// What templates see as `keychain`, if the playbook declares anything.
    pub keychain: Option<Value>,
    /// Whether a rule can lead back: then tools may be called more often.
    pub jumps: bool,
}

#[derive(Debug)]
pub(super) struct Planned {
    pub label: String,
    pub kind: String,
    pub config: Tree,
    /// What names of credentials stand for.
    pub keychain: Arc<Keychain>,
    /// What gives all of the input, if that is how it is written.
    pub whole: Option<Tree>,
    pub input: Vec<(Template, Tree)>,
    pub set: Vec<Assignment>,
    pub rules: Vec<PlannedRule>,
    pub timeout_ms: Option<u64>,
    pub retry_safe: Option<bool>,
    /// Whether no tool of the step follows.
    pub last: bool,
    /// What is referred to before the call, and after it.
    pub before: References,
    pub after: References,
}

#[derive(Debug)]
pub(super) struct PlannedRule {
    /// Nothing for `else`.
    pub when: Option<Guard>,
    pub set: Vec<Assignment>,
    pub action: Option<Action>,
    /// The delay of a retry, if it is known only then.
    pub delay: Option<Template>,
}

/// One entry of a `set`.
#[derive(Debug)]
pub(super) struct Assignment {
    /// Where in the context it goes.
    pub path: Vec<String>,
    /// The name it is reported under, unless it stays within this run.
    pub reported: Option<String>,
    pub value: Tree,
}

impl Plan {
    pub(super) fn compile(line: &[u8]) -> Result<Self, String> {
        let spec: Spec = serde_json::from_slice(line).map_err(|error| format!("the task cannot be read: {error}"))?;
        if spec.tools.is_empty() {
            return Err(format!("step `{}` has no tool to call", spec.step));
        }
        let jumps =
            spec.tools.iter().flat_map(|tool| &tool.rules).any(|rule| matches!(rule.action, Some(Action::Jump { .. })));
        let declared = Arc::new(spec.keychain);
        let tools = spec.tools.into_iter().map(|tool| planned(tool, &declared)).collect::<Result<Vec<_>, _>>();
        let mut tools = tools.map_err(|error| error.to_string())?;
        tools.iter_mut().next_back().into_iter().for_each(|tool| tool.last = true);
        let keychain = (!declared.is_empty()).then(|| keychain(&declared));
        Ok(Self {
            step: spec.step,
            tools,
            pipeline: spec.pipeline,
            select: spec.output_select,
            keep: spec.keep,
            keychain,
            jumps,
        })
    }
}

fn planned(tool: Tool, keychain: &Arc<Keychain>) -> Result<Planned, RenderError> {
    let (mut before, mut after) = (References::default(), References::default());
    let (config, input) = (Json::Object(tool.config), Json::Object(tool.input));
    before.add_json(&config);
    before.add_json(&input);
    let code = config.get("code").and_then(Json::as_str);
    if reads_context(&tool.kind, code) {
        code.into_iter().for_each(|code| before.add_quoted(code));
    }
    add_values(&mut after, &tool.set);
    for rule in &tool.rules {
        rule.when.iter().for_each(|when| after.add_guard(when));
        add_values(&mut after, &rule.set);
        rule.delay().into_iter().for_each(|delay| after.add_text(delay));
    }
    let Json::Object(mut input) = input else { unreachable!("it was made of an object") };
    let whole = input.remove(WHOLE);
    Ok(Planned {
        config: Tree::compile(&config)?,
        keychain: keychain.clone(),
        whole: whole.as_ref().map(Tree::compile).transpose()?,
        input: input
            .into_iter()
            .map(|(name, value)| Ok((Template::compile(&name)?, Tree::compile(&value)?)))
            .collect::<Result<_, RenderError>>()?,
        set: assignments(&tool.set, false)?,
        rules: tool.rules.into_iter().map(planned_rule).collect::<Result<_, _>>()?,
        label: tool.label,
        kind: tool.kind,
        timeout_ms: tool.timeout_ms,
        retry_safe: tool.retry_safe,
        last: false,
        before,
        after,
    })
}

fn add_values(found: &mut References, set: &Map<String, Json>) {
    set.values().for_each(|value| found.add_json(value));
}

fn planned_rule(rule: Rule) -> Result<PlannedRule, RenderError> {
    let when = rule.when.as_ref().map(Guard::compile).transpose()?;
    let delay = rule.delay().map(Template::compile).transpose()?;
    Ok(PlannedRule { when, set: assignments(&rule.set, true)?, action: rule.action, delay })
}

/// `bare`: whether names without a scope are variables of the execution. Those of a rule are, those of a task's own
/// `set` stay within the run.
fn assignments(set: &Map<String, Json>, bare: bool) -> Result<Vec<Assignment>, RenderError> {
    set.iter()
        .map(|(name, value)| {
            let (path, reported) = match name.split_once('.') {
                Some(("ctx" | "step", rest)) => (rest, Some(rest)),
                Some(("iter", _)) => (name.as_str(), None),
                _ => (name.as_str(), bare.then_some(name.as_str())),
            };
            Ok(Assignment {
                path: path.split('.').map(str::to_owned).collect(),
                reported: reported.map(str::to_owned),
                value: Tree::compile(value)?,
            })
        })
        .collect()
}
