//! The documents of a folder, and what they say they need.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use noetl_flow::playbook::{Playbook, parse};
use noetl_flow::task::Tool;
use noetl_flow::template::References;
use serde_json::Value as Json;
use walkdir::WalkDir;

/// Kinds that the engine does by itself.
const ENGINE: [&str; 4] = ["park", "playbook", "wasm", "workbook"];

pub(super) struct Document {
    /// Below the folder, with slashes.
    pub file: String,
    pub text: String,
    /// Nothing for a text that is no playbook, or one with mistakes: the server says which.
    playbook: Option<Playbook>,
    /// `Playbook`, `Subscription`, ...
    pub kind: String,
}

/// Fields of tools that say where they go.
const ADDRESSES: [&str; 6] = ["url", "endpoint", "base_url", "source", "target", "script"];

/// What a credential is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Use {
    Postgres,
    Nats,
    Http,
}

/// Something on a NATS server that has to be there before.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Needed {
    Bucket(String),
    Objects(String),
    Stream { stream: String, consumer: String },
}

/// All documents below a folder: those that others start come before those.
pub(super) fn read(folder: &Path) -> Result<Vec<Document>, String> {
    let mut documents = Vec::new();
    for entry in WalkDir::new(folder).sort_by_file_name() {
        let entry = entry.map_err(|error| format!("{}: {error}", folder.display()))?;
        let extension = entry.path().extension().and_then(|extension| extension.to_str());
        if !entry.file_type().is_file() || !matches!(extension, Some("yaml" | "yml")) {
            continue;
        }
        let text =
            std::fs::read_to_string(entry.path()).map_err(|error| format!("{}: {error}", entry.path().display()))?;
        let file = entry.path().strip_prefix(folder).unwrap_or(entry.path()).to_string_lossy().replace('\\', "/");
        let top = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(|rest| rest.trim().to_owned());
        let kind = top("kind:").unwrap_or_default();
        let playbook = parse(&text, false).ok().map(|parsed| parsed.playbook);
        documents.push(Document { file, text, playbook, kind });
    }
    let started: BTreeSet<String> = documents.iter().flat_map(Document::children).collect();
    // Stable: within each half the order is that of the files.
    documents.sort_by_key(|document| !document.path().is_some_and(|path| started.contains(path)));
    Ok(documents)
}

impl Document {
    /// As the catalog has it.
    pub fn path(&self) -> Option<&str> {
        self.playbook.as_ref().map(|playbook| in_catalog(&playbook.metadata.path))
    }

    /// Tools of the catalog that have to be there.
    pub fn kinds(&self) -> BTreeSet<&str> {
        self.tools().map(|tool| tool.kind.as_str()).filter(|kind| !ENGINE.contains(kind)).collect()
    }

    fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.playbook.iter().flat_map(|playbook| playbook.tools())
    }

    /// Paths of playbooks that it starts.
    pub fn children(&self) -> Vec<String> {
        let calls = self.tools().filter(|tool| tool.kind == "playbook");
        calls.filter_map(|tool| Some(in_catalog(&self.word(tool.config.get("path")?)?).to_owned())).collect()
    }

    /// Texts with the addresses that tools go to: what they say themselves, and variables of the workload that they name. A
    /// variable that nothing goes to may hold any address.
    pub fn addresses(&self) -> Vec<&str> {
        let mut texts = Vec::new();
        for tool in self.tools() {
            let named = tool.config.iter().filter(|(name, _)| ADDRESSES.contains(&name.as_str()));
            named.for_each(|(_, value)| collect(value, &mut texts));
        }
        let workload = self.playbook.as_ref().map(|playbook| &playbook.workload);
        let (mut refers, mut read, mut known) = (References::default(), 0, BTreeSet::new());
        // What a variable says may name others.
        while read < texts.len() {
            texts[read..].iter().for_each(|text| refers.add_text(text));
            read = texts.len();
            for path in &refers.paths {
                let name = if path[0] == "workload" { path.get(1) } else { path.first() };
                let Some((name, value)) = name.and_then(|name| workload?.get_key_value(name.as_str())) else {
                    continue;
                };
                if known.insert(name.as_str()) {
                    collect(value, &mut texts);
                }
            }
        }
        texts
    }

    /// Aliases of credentials, and what for.
    pub fn aliases(&self) -> BTreeMap<String, Use> {
        let mut found = BTreeMap::new();
        let mut add = |alias: String, used: Use| {
            let known = found.entry(alias).or_insert(used);
            *known = (*known).min(used);
        };
        for tool in self.tools() {
            for (option, value) in &tool.config {
                // An end of a transfer is of a kind by itself.
                let words = ["type", "tool", "kind"];
                let own = words.iter().find_map(|word| value.get(*word)?.as_str()).filter(|_| tool.kind == "transfer");
                let used = match own.unwrap_or(tool.kind.as_str()) {
                    "postgres" => Use::Postgres,
                    "nats" | "subscription" => Use::Nats,
                    _ => Use::Http,
                };
                let mut named = Vec::new();
                credentials(option, value, &mut named);
                named.into_iter().filter_map(|value| self.word(value)).for_each(|alias| add(alias, used));
            }
        }
        // A playbook that is given an alias by another has a default of it in its workload.
        for (name, value) in self.playbook.iter().flat_map(|playbook| &playbook.workload) {
            let Some(alias) = value.as_str().filter(|text| is_word(text)) else { continue };
            if !name.contains("auth") && !name.contains("credential") {
                continue;
            }
            if name.contains("pg") || name.contains("postgres") || alias.starts_with("pg_") {
                add(alias.to_owned(), Use::Postgres);
            } else if name.contains("nats") || alias.contains("nats") {
                add(alias.to_owned(), Use::Nats);
            }
        }
        found
    }

    pub fn on_nats(&self) -> BTreeSet<Needed> {
        let mut needed = BTreeSet::new();
        for tool in self.tools().filter(|tool| matches!(tool.kind.as_str(), "nats" | "subscription")) {
            let word = |name: &str| tool.config.get(name).and_then(|value| self.word(value));
            let of_objects = word("operation").is_some_and(|operation| operation.starts_with("object_"));
            needed.extend(word("bucket").map(|bucket| match of_objects {
                true => Needed::Objects(bucket),
                false => Needed::Bucket(bucket),
            }));
            if let (Some(stream), Some(consumer)) = (word("stream"), word("consumer")) {
                needed.insert(Needed::Stream { stream, consumer });
            }
        }
        needed
    }

    /// A word, or the variable of the workload that a lone `{{ name }}` means.
    fn word(&self, value: &Json) -> Option<String> {
        let text = value.as_str()?;
        if is_word(text) {
            return Some(text.to_owned());
        }
        let inner = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
        let mut parts = inner.split('|');
        let name = parts.next()?.trim();
        let name = ["workload.", "ctx."].iter().find_map(|scope| name.strip_prefix(scope)).unwrap_or(name);
        let own = self.playbook.as_ref()?.workload.get(name).and_then(Json::as_str).filter(|text| is_word(text));
        let usual = parts.next().and_then(|filter| filter.trim().strip_prefix("default(")?.strip_suffix(')'));
        let usual = usual.map(|text| text.trim().trim_matches(['\'', '"'])).filter(|text| is_word(text));
        own.or(usual).map(str::to_owned)
    }
}

fn in_catalog(path: &str) -> &str {
    path.trim_start_matches('/')
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-./".contains(letter))
}

fn collect<'a>(value: &'a Json, texts: &mut Vec<&'a str>) {
    match value {
        Json::String(text) => texts.push(text),
        Json::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Json::Object(fields) => fields.values().for_each(|field| collect(field, texts)),
        _ => {}
    }
}

/// Values under `auth` and `credential`, however deep.
fn credentials<'a>(name: &str, value: &'a Json, found: &mut Vec<&'a Json>) {
    match value {
        Json::String(_) if matches!(name, "auth" | "credential") => found.push(value),
        Json::Object(fields) => fields.iter().for_each(|(name, value)| credentials(name, value, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(rest: &str) -> Document {
        let text = format!("apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: t, path: t}}\n{rest}");
        let playbook = parse(&text, false).map(|parsed| parsed.playbook).expect("a playbook");
        Document { file: "t.yaml".to_owned(), text, playbook: Some(playbook), kind: "Playbook".to_owned() }
    }

    #[test]
    fn needs_are_read_from_the_document() {
        let document = document(
            "
workload: {pg_auth: pg_local, nats_credential: nats_here, bucket: sessions, message: hello}
workflow:
- step: start
  tool:
  - {name: a, kind: postgres, auth: '{{ pg_auth }}', command: SELECT 1}
  - {name: b, kind: nats, auth: '{{ workload.nats_credential }}', operation: kv_get, bucket: '{{ bucket }}', key: k}
  - {name: c, kind: http, url: 'http://x.example/y', auth: some_api}
  - {name: d, kind: playbook, path: lib/child}
  - name: e
    kind: transfer
    source: {type: http, url: 'http://x.example/z', auth: rows_api}
    target: {type: postgres, auth: pg_rows, table: rows}
",
        );
        let aliases: Vec<_> = document.aliases().into_iter().collect();
        let wanted = [
            ("nats_here", Use::Nats),
            ("pg_local", Use::Postgres),
            ("pg_rows", Use::Postgres),
            ("rows_api", Use::Http),
            ("some_api", Use::Http),
        ];
        assert_eq!(aliases, wanted.map(|(alias, used)| (alias.to_owned(), used)));
        assert_eq!(document.on_nats().into_iter().collect::<Vec<_>>(), [Needed::Bucket("sessions".to_owned())]);
        assert_eq!(document.children(), ["lib/child"]);
        assert_eq!(document.kinds().into_iter().collect::<Vec<_>>(), ["http", "nats", "postgres", "transfer"]);
        assert!(document.addresses().contains(&"http://x.example/y"));
    }

    #[test]
    fn an_address_counts_when_a_tool_goes_there() {
        let document = document(
            "
workload: {api: '{{ host }}/v1', host: 'http://here.example', unused: 'http://unused.example', said: 'http://said.example'}
workflow:
- step: start
  tool:
  - {name: a, kind: http, url: '{{ workload.api }}/x', headers: {referer: 'http://headers.example'}}
  - {name: b, kind: python, code: 'result = 1', input: {text: '{{ said }}'}}
  - {name: c, kind: transfer, source: {type: http, url: 'http://rows.example'}, target: {type: postgres}}
",
        );
        let found: BTreeSet<&str> = document.addresses().into_iter().filter(|text| text.contains("://")).collect();
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["http://here.example", "http://rows.example"]);
    }

    #[test]
    fn a_slash_in_front_of_a_path_is_no_part_of_it() {
        let text = "workflow: [{step: start, tool: {kind: playbook, path: /lib/child}}]";
        assert_eq!(document(text).children(), ["lib/child"]);
    }
}
