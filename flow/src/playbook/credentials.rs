//! Which credentials a document names, and where, for whoever has the wallet.
//!
//! A tool names one in `auth` or `credential`, by itself or in a map, a transfer at both of its ends; a template names one
//! as `keychain.NAME.FIELD`; and the `keychain` names those that its own names stand for. All are told by their alias.
//! Where a variable names a credential, its default in the workload is told, since that is what the step uses unless a
//! payload says otherwise. Code names credentials where it uses them, so fields of it are passed over.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::keychain;
use super::problem::{Place, Problems};
use super::uses::called;
use super::yaml::{Node, Value};
use crate::keychain::Keychain;
use crate::task::TOLD;
use crate::task::aliases::{ENDS, IN_MAP, NAMED};
use crate::template::{KEYCHAIN, References, is_template};

/// One place that names a credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedCredential {
    /// Its alias.
    pub name: String,
    /// The kind of tool that is to use it; empty if that is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    pub line: u32,
    pub column: u32,
    /// As in `workflow[2].tool.auth`.
    pub path: String,
}

/// Longest alias that is told.
const LONGEST: usize = 64;

/// All of a document, each where it is named first: by a tool, or else by a template, or else in the keychain.
pub(super) fn named(root: &Node) -> Vec<NamedCredential> {
    // What is wrong with the declarations is told where the playbook is built.
    let keychain = keychain::declared(root.get("keychain"), &mut Problems::new(false));
    let workload = root.get("workload");
    let mut found = Found { keychain, workload, told: BTreeSet::new(), list: Vec::new() };
    for one in called(root) {
        let kind = one.tool.get("kind").and_then(Node::text).unwrap_or_default();
        if !TOLD.contains(&kind) {
            found.tool(one.tool, kind, &one.path);
        }
    }
    for part in ["workbook", "workflow"] {
        if let Some(node) = root.get(part) {
            found.templates(node, part);
        }
    }
    found.declarations(root);
    found.list
}

struct Found<'doc> {
    keychain: Keychain,
    workload: Option<&'doc Node>,
    told: BTreeSet<String>,
    list: Vec<NamedCredential>,
}

impl Found<'_> {
    fn declarations(&mut self, root: &Node) {
        for (index, entry) in root.get("keychain").map(Node::items).unwrap_or_default().iter().enumerate() {
            let Some(name) = entry.get("name").and_then(Node::text) else { continue };
            // Of one that comes from elsewhere it is told already that the wallet has to have it.
            if !keychain::is_from_elsewhere(entry) {
                self.add(name, "", entry.place, format!("keychain[{index}]"));
            }
        }
    }

    fn tool(&mut self, tool: &Node, kind: &str, path: &str) {
        self.fields(tool, kind, path);
        if let Some(spec) = tool.get("spec") {
            self.fields(spec, kind, &format!("{path}.spec"));
        }
        if kind != "transfer" {
            return;
        }
        for (end, node) in ENDS.into_iter().filter_map(|end| Some((end, tool.get(end)?))) {
            let kind = node.get("type").or_else(|| node.get("kind")).and_then(Node::text).unwrap_or_default();
            self.fields(node, kind, &format!("{path}.{end}"));
        }
    }

    fn fields(&mut self, node: &Node, kind: &str, path: &str) {
        for field in NAMED {
            let Some(alias) = node.get(field).and_then(|given| alias(given, true)) else { continue };
            let Some(text) = alias.text() else { continue };
            let name = match is_template(text) {
                true => self.workload.and_then(|workload| default_of(text, workload)),
                false => Some(text),
            };
            if let Some(name) = name.map(str::to_owned) {
                self.add(&name, kind, alias.place, format!("{path}.{field}"));
            }
        }
    }

    /// What templates read of the keychain.
    fn templates(&mut self, node: &Node, path: &str) {
        match &node.value {
            Value::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.templates(item, &format!("{path}[{index}]"));
                }
            }
            Value::Map(entries) => {
                for (key, value) in entries {
                    self.templates(value, &format!("{path}.{}", key.name));
                }
            }
            Value::Scalar(scalar) => {
                let Some(text) = scalar.as_str().filter(|text| text.contains(KEYCHAIN)) else { return };
                let mut refers = References::default();
                refers.add_text(text);
                for read in refers.paths.iter().filter(|read| read.first().is_some_and(|name| name == KEYCHAIN)) {
                    if let Some(name) = read.get(1) {
                        self.add(name, "", node.place, path.to_owned());
                    }
                }
            }
        }
    }

    /// By the name it has in the playbook.
    fn add(&mut self, name: &str, kind: &str, place: Place, path: String) {
        let name = name.trim();
        let alias = self.keychain.get(name).map_or(name, |declared| declared.credential.as_str());
        if alias.is_empty() || alias.len() > LONGEST || !self.told.insert(alias.to_owned()) {
            return;
        }
        let (name, kind) = (alias.to_owned(), kind.to_owned());
        self.list.push(NamedCredential { name, kind, line: place.line, column: place.column, path });
    }
}

/// Where the alias stands in what a field is: it is that, or in the map, or in the only map in that.
fn alias(given: &Node, may_be_below: bool) -> Option<&Node> {
    if !given.is_map() {
        return Some(given);
    }
    let named = IN_MAP.iter().filter_map(|name| given.get(name)).find(|node| node.text().is_some());
    match given.entries() {
        _ if named.is_some() => named,
        [(_, below)] if may_be_below && below.is_map() => alias(below, false),
        _ => None,
    }
}

/// What `{{ name }}` or `{{ workload.name }}` is unless a payload says otherwise.
fn default_of<'doc>(text: &str, workload: &'doc Node) -> Option<&'doc str> {
    let name = text.trim().strip_prefix("{{")?.strip_suffix("}}")?.split('|').next()?.trim();
    let name = ["workload.", "ctx."].iter().find_map(|scope| name.strip_prefix(scope)).unwrap_or(name);
    workload.get(name)?.text().filter(|default| !is_template(default))
}

#[cfg(test)]
mod tests {
    use crate::playbook::read;

    const TEXT: &str = r#"apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: a}
workload: {pg: orders, n: 1}
keychain:
  - {name: mydb, credential: main_pg}
  - {name: ai, provider: gcp}
  - {name: spare, credential: other_pg}
workbook:
  - name: one
    tool: {kind: nats, auth: {credential: bus}, operation: js_publish, subject: s}
workflow:
  - step: start
    tool:
      - {kind: postgres, auth: '{{ workload.pg }}', query: q}
      - {kind: postgres, auth: '{{ pg | default(1) }}', query: q}
      - {kind: postgres, auth: '{{ other }}', query: q}
      - {kind: postgres, auth: mydb, query: q}
      - {kind: http, url: x, headers: {authorization: 'Bearer {{ keychain.nope.token }}'}}
      - {kind: http, url: x, auth: {api: {type: bearer, key: outer}}, json: {auth: data}}
      - {kind: python, auth: code, code: x, input: {key: '{{ keychain.mydb.password }}'}}
      - {kind: transfer, source: {type: http, auth: src}, target: {type: postgres, auth: {credential: dst}, table: t}}
    next: each
  - step: each
    loop: {cursor: {kind: postgres, auth: queue, claim: c}, iterator: row}
    tool: {kind: noop}
"#;

    #[test]
    fn every_credential_is_told_by_its_alias_where_it_is_named() {
        let read = read(TEXT, false);
        let told: Vec<(&str, &str, &str)> =
            read.credentials.iter().map(|one| (one.name.as_str(), one.kind.as_str(), one.path.as_str())).collect();
        assert_eq!(
            told,
            [
                ("bus", "nats", "workbook[0].tool.auth"),
                ("orders", "postgres", "workflow[0].tool[0].auth"),
                ("main_pg", "postgres", "workflow[0].tool[3].auth"),
                ("outer", "http", "workflow[0].tool[5].auth"),
                ("src", "http", "workflow[0].tool[7].source.auth"),
                ("dst", "postgres", "workflow[0].tool[7].target.auth"),
                ("queue", "postgres", "workflow[1].loop.cursor.auth"),
                ("nope", "", "workflow[0].tool[4].headers.authorization"),
                ("other_pg", "", "keychain[2]"),
            ]
        );
        assert_eq!((read.credentials[0].line, read.credentials[1].line), (11, 15));
    }
}
