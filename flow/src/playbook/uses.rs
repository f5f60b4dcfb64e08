//! Where a document calls which tool, with which fields, for whoever knows the tools.
//!
//! The language knows no tool: keys that are not its own are kept and handed on. A tool can describe itself, though, and
//! then a slip in its fields can be told when the playbook is registered. So all uses are listed with their places, and
//! the catalog, which has the descriptions, holds them against each other.
//!
//! A use is what the tool would be handed: keys below `spec` count as its own, `claim` of a cursor is its `command`, and
//! the label of a tool in a pipeline is no field. A reference to the workbook is listed where it refers to.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::keys::TOOL;
use super::shape::labelled;
use super::tool::gives_input;
use super::yaml::{Key, Node, Value};
use crate::template::is_template;

/// One place where a tool is called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Use {
    pub kind: String,
    pub line: u32,
    pub column: u32,
    /// As in `workflow[2].tool`.
    pub path: String,
    pub fields: Vec<UsedField>,
    /// Names the tool is handed in its `input`.
    pub inputs: Vec<String>,
    /// Whether it is handed others too, which are known only when the step runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open: bool,
    /// Whether it is a tool of the workbook that nothing refers to: what it lacks a reference would have to bring.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unused: bool,
}

/// One field that is written there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsedField {
    pub name: String,
    pub line: u32,
    pub column: u32,
    pub path: String,
    pub given: Given,
    /// The value itself, if it is a short one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub literal: Option<Json>,
    /// What is written in it, if it is a map that is not too large to be told; nothing of the maps in that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Vec<UsedField>>,
    /// Whether the language gives the field a meaning of its own, or knows that it has none.
    pub ours: bool,
}

/// What stands there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Given {
    /// Known only when the step runs.
    Template,
    Nothing,
    Text,
    Integer,
    Number,
    Boolean,
    List,
    Map,
}

/// Longest text that is told as a value: no word a tool chooses by is longer.
const LONGEST: usize = 64;

/// Largest map that is told: no tool has more fields than this.
const MOST_WITHIN: usize = 100;

/// Words of older playbooks that no tool reads and that are there for people.
const FOR_READERS: &[&str] = &["assert", "desc", "description", "iterator", "output", "sink"];

/// Keys below `spec` that are no fields of the tool.
const OF_SPEC: &[&str] = &["policy", "timeout", "input", "retry_safe"];

/// Every use in a document, in the order of the text.
pub(super) fn uses(root: &Node) -> Vec<Use> {
    let referred = referred(root);
    let found = called(root).into_iter().filter_map(|called| {
        let unused = called.task.is_some_and(|name| !referred.contains(&name));
        single(called).map(|used| Use { unused, ..used })
    });
    found.collect()
}

/// One tool of a document.
pub(super) struct Called<'doc> {
    pub tool: &'doc Node,
    pub path: String,
    /// Whether the tool's `name` is its label and nothing else.
    named: bool,
    /// What its step hands it besides.
    inputs: Vec<&'doc Node>,
    /// The name it has in the workbook.
    task: Option<&'doc str>,
}

/// Every tool, in the order of the text.
pub(super) fn called(root: &Node) -> Vec<Called<'_>> {
    let mut found = Vec::new();
    for (index, task) in root.get("workbook").map(Node::items).unwrap_or_default().iter().enumerate() {
        let name = task.get("name").and_then(Node::text).unwrap_or_default();
        let path = format!("workbook[{index}].tool");
        let called = |tool| Called { tool, path, named: false, inputs: Vec::new(), task: Some(name) };
        found.extend(task.get("tool").map(called));
    }
    for (index, step) in root.get("workflow").map(Node::items).unwrap_or_default().iter().enumerate() {
        of_step(step, &format!("workflow[{index}]"), &mut found);
    }
    found
}

/// Tools of the workbook that steps refer to.
fn referred(root: &Node) -> Vec<&str> {
    let tools = root.get("workflow").map(Node::items).unwrap_or_default().iter().filter_map(|step| step.get("tool"));
    let each = tools.flat_map(|tool| {
        let listed = tool.items().iter().map(|item| labelled(item).map_or(item, |(_, tool)| tool));
        std::iter::once(tool).chain(listed)
    });
    let references = each.filter(|tool| tool.get("kind").and_then(Node::text) == Some("workbook"));
    references.filter_map(|tool| tool.get("task").or_else(|| tool.get("name"))?.text()).collect()
}

fn of_step<'doc>(step: &'doc Node, path: &str, found: &mut Vec<Called<'doc>>) {
    let inputs: Vec<&Node> = [step.get("input"), step.get("args")].into_iter().flatten().collect();
    if let Some(cursor) = step.get("loop").and_then(|repeat| repeat.get("cursor")) {
        let path = format!("{path}.loop.cursor");
        found.push(Called { tool: cursor, path, named: false, inputs: Vec::new(), task: None });
    }
    let Some(tool) = step.get("tool") else { return };
    if tool.is_map() {
        let path = format!("{path}.tool");
        found.push(Called { tool, path, named: false, inputs: inputs.clone(), task: None });
    }
    for (index, item) in tool.items().iter().enumerate() {
        let path = format!("{path}.tool[{index}]");
        let (tool, path, named) = match labelled(item) {
            Some((label, tool)) => (tool, format!("{path}.{label}"), false),
            None => (item, path, true),
        };
        found.push(Called { tool, path, named, inputs: inputs.clone(), task: None });
    }
}

fn single(called: Called<'_>) -> Option<Use> {
    let Called { tool: node, path, named, inputs, .. } = called;
    let kind = node.get("kind")?.text()?.to_owned();
    let mut fields: Vec<UsedField> = Vec::new();
    for (key, value) in node.entries() {
        let is_input = key.name == "args" && gives_input(value);
        // In a reference to the workbook the label is also what is referred to, unless `task` says that.
        let is_label = named && key.name == "name" && (kind != "workbook" || node.has("task"));
        if !matches!(key.name.as_str(), "kind" | "input" | "set" | "spec" | "eval") && !is_input && !is_label {
            fields.push(field(key, value, &path));
        }
    }
    let spec = node.get("spec");
    for (key, value) in spec.map(Node::entries).unwrap_or_default() {
        let known = OF_SPEC.contains(&key.name.as_str()) || fields.iter().any(|field| field.name == key.name);
        if !known {
            fields.push(field(key, value, &format!("{path}.spec")));
        }
    }
    let own = [spec.and_then(|spec| spec.get("input")), node.get("args"), node.get("input")];
    let given = || inputs.iter().copied().chain(own.into_iter().flatten());
    let handed = given().flat_map(Node::entries).map(|(key, _)| key.name.clone()).collect();
    let open = given().any(|input| !input.is_map() && gives_input(input));
    let place = node.place;
    Some(Use { kind, line: place.line, column: place.column, path, fields, inputs: handed, open, unused: false })
}

fn field(key: &Key, value: &Node, above: &str) -> UsedField {
    let path = format!("{above}.{}", key.name);
    let entries = Some(value.entries()).filter(|entries| value.is_map() && entries.len() <= MOST_WITHIN);
    let within = entries.map(|entries| entries.iter().map(|(key, value)| flat(key, value, &path)).collect());
    UsedField { within, ..flat(key, value, above) }
}

/// Without what is in it.
fn flat(key: &Key, value: &Node, above: &str) -> UsedField {
    // The tool of a cursor finds its claim where it finds any command.
    let name = if key.name == "claim" { "command" } else { &key.name };
    UsedField {
        name: name.to_owned(),
        line: key.place.line,
        column: key.place.column,
        path: format!("{above}.{}", key.name),
        given: given(value),
        literal: literal(value),
        within: None,
        ours: FOR_READERS.contains(&name) || TOOL.keys.iter().any(|known| known.name == name),
    }
}

fn given(node: &Node) -> Given {
    match &node.value {
        Value::List(_) => Given::List,
        Value::Map(_) => Given::Map,
        Value::Scalar(Json::Null) => Given::Nothing,
        Value::Scalar(Json::Bool(_)) => Given::Boolean,
        Value::Scalar(Json::Number(number)) if number.is_f64() => Given::Number,
        Value::Scalar(Json::Number(_)) => Given::Integer,
        Value::Scalar(Json::String(text)) if is_template(text) => Given::Template,
        Value::Scalar(_) => Given::Text,
    }
}

fn literal(node: &Node) -> Option<Json> {
    match node.scalar()? {
        Json::Null => None,
        Json::String(text) if text.len() > LONGEST || is_template(text) => None,
        scalar => Some(scalar.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::playbook::read;

    const TEXT: &str = r#"apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: a}
workbook:
  - name: greet
    tool: {kind: python, code: "result = 1"}
workflow:
  - step: start
    input: {page: 1}
    tool:
      kind: http
      url: "{{ api }}/x"
      retries: 3
      input: {token: a}
      spec: {method: POST, timeout: 3, policy: {rules: []}}
    next: each
  - step: each
    loop:
      cursor: {kind: postgres, auth: pg, claim: "SELECT 1"}
      iterator: row
    tool:
      - {name: one, kind: noop, result: {a: 1}}
      - two: {kind: shell, command: [ls], timeout: 1.5}
    next: {arcs: [{step: nowhere}]}
"#;

    #[test]
    fn a_tool_of_the_workbook_is_used_when_a_step_refers_to_it() {
        let text = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: a}\nworkbook:\n\
                    - {name: one, tool: {kind: noop}}\n- {name: two, tool: {kind: noop}}\n\
                    - {name: three, tool: {kind: noop}}\n- {name: four, tool: {kind: playbook, return_step: end}}\n\
                    workflow:\n- {step: start, tool: {kind: workbook, name: one}, next: b}\n\
                    - step: b\n  tool: [{name: x, kind: workbook, task: two}, {three: {kind: workbook, name: three}}]\n";
        let read = read(text, false);
        assert!(read.playbook.is_some(), "{:?}", read.problems);
        let unused: Vec<bool> = read.uses.iter().map(|one| one.unused).collect();
        assert_eq!(unused, [false, false, false, true, false, false, false]);
    }

    #[test]
    fn every_use_is_listed_even_when_the_document_has_errors() {
        let read = read(TEXT, false);
        assert!(read.playbook.is_none(), "an arc leads nowhere");
        let kinds: Vec<(&str, &str)> = read.uses.iter().map(|one| (one.kind.as_str(), one.path.as_str())).collect();
        assert_eq!(
            kinds,
            [
                ("python", "workbook[0].tool"),
                ("http", "workflow[0].tool"),
                ("postgres", "workflow[1].loop.cursor"),
                ("noop", "workflow[1].tool[0]"),
                ("shell", "workflow[1].tool[1].two"),
            ]
        );
        let http = &read.uses[1];
        assert_eq!(http.inputs, ["page", "token"]);
        let names: Vec<_> = http.fields.iter().map(|field| (field.name.as_str(), field.given, field.line)).collect();
        assert_eq!(names, [("url", Given::Template, 12), ("retries", Given::Integer, 13), ("method", Given::Text, 15)]);
        assert_eq!(http.fields[2].path, "workflow[0].tool.spec.method");
        assert_eq!(http.fields[2].literal, Some("POST".into()));
        let postgres = &read.uses[2].fields[1];
        assert_eq!((postgres.name.as_str(), postgres.path.as_str()), ("command", "workflow[1].loop.cursor.claim"));
        assert_eq!(read.uses[3].fields.len(), 1, "a label is no field");
        let shell: Vec<_> = read.uses[4].fields.iter().map(|field| (field.given, field.ours)).collect();
        assert_eq!(shell, [(Given::List, false), (Given::Number, true)]);
    }
}
