//! The tools this command knows without a server: those it has compiled in, and those the engine runs itself.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use noetl_contract::description::Description;
use noetl_contract::description::uses::{self, Use};
use noetl_flow::playbook;
use serde_json::{Map, Value};

include!(concat!(env!("OUT_DIR"), "/descriptions.rs"));

/// By kind.
pub fn all() -> &'static BTreeMap<String, Description> {
    static ALL: LazyLock<BTreeMap<String, Description>> = LazyLock::new(|| {
        let read = |(kind, text): &(&str, &str)| {
            let description = Description::read(text).expect("the documents are compiled in and tested");
            ((*kind).to_owned(), description)
        };
        DESCRIPTIONS.iter().chain(playbook::OWN_KINDS).map(read).collect()
    });
    &ALL
}

/// What is said about how a document uses them, in the form problems have everywhere. Of a tool that is not known here
/// nothing is said: a server may have it.
pub fn problems(used: &[playbook::Use], strict: bool) -> Vec<Value> {
    let mut found = Vec::new();
    for one in used {
        let Some(tool) = all().get(&one.kind) else { continue };
        // The two are the same list, on both sides of the border between the language and the tools.
        let one: Use = serde_json::to_value(one).and_then(serde_json::from_value).expect("uses are plain data");
        found.extend(uses::problems(&one, tool, strict));
    }
    found.truncate(uses::MOST);
    found.iter().map(|problem| serde_json::to_value(problem).expect("problems are plain data")).collect()
}

/// What editors are told: by kind, the properties of a `tool`.
pub fn properties() -> Map<String, Value> {
    all().iter().map(|(kind, tool)| (kind.clone(), Value::Object(tool.properties()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_document_can_be_read_and_its_examples_fit_it() {
        for (kind, tool) in all() {
            assert!(!tool.summary.contains('\n'), "{kind}: the summary is one line");
            for example in tool.examples.iter().filter(|example| example.yaml.starts_with("tool:")) {
                let step = example.yaml.lines().map(|line| format!("    {line}\n")).collect::<String>();
                let text = format!(
                    "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: a}}\nworkflow:\n  - step: start\n{step}"
                );
                let read = playbook::read(&text, true);
                assert_eq!(read.problems, [], "{kind}: {}", example.title);
                assert_eq!(problems(&read.uses, true), Vec::<Value>::new(), "{kind}: {}", example.title);
                assert_eq!(read.uses[0].kind, *kind, "{}", example.title);
            }
        }
    }

    #[test]
    fn the_schema_has_the_fields_of_tools() {
        let schema = playbook::schema_with(&properties());
        let kinds = schema["$defs"]["tool"]["allOf"].as_array().expect("a list");
        let http = kinds.iter().find(|one| one["if"]["properties"]["kind"]["const"] == "http").expect("http");
        assert_eq!(http["then"]["properties"]["method"]["default"], "GET");
    }
}
