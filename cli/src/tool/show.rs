//! A tool's page for a terminal.

use noetl_contract::description::{Description, Field};
use serde_json::Value;

use crate::output::{Paint, cell, printable, table};

/// The page of a tool, with where it comes from.
pub fn page(answer: &Value, tool: Option<&Description>, paint: Paint) -> String {
    let mut parts = vec![title(answer, paint)];
    match tool {
        None => parts.push(match answer["problem"].as_str() {
            Some(problem) => format!("It could not say what it does: {}", printable(problem)),
            None => "It does not say what it does.".to_owned(),
        }),
        Some(tool) => parts.extend(sections(tool, paint)),
    }
    parts.join("\n\n")
}

fn title(answer: &Value, paint: Paint) -> String {
    let from = match (&answer["plugin"], answer["source"].as_str().unwrap_or("-")) {
        (Value::String(plugin), source) => format!("{plugin}@{} ({source})", cell(&answer["version"])),
        (_, "engine") => "run by the engine itself".to_owned(),
        (_, source) => source.to_owned(),
    };
    format!("{}  {}", paint.bold(cell(&answer["kind"])), paint.dim(printable(&from)))
}

fn sections(tool: &Description, paint: Paint) -> Vec<String> {
    let heading = |text: &str, body: String| format!("{}\n{body}", paint.bold(text));
    let mut parts = vec![printable(&tool.summary)];
    if !tool.fields.is_empty() {
        let rows = tool.fields.iter().map(cells);
        parts.push(heading("Fields", table(["field", "value", "default", ""], rows)));
    }
    if !tool.result.is_empty() {
        let rows = tool.result.iter().map(|part| [part.name.clone(), part.types.to_string(), part.doc.clone()]);
        parts.push(heading("Result", table(["name", "value", ""], rows)));
    }
    if !tool.errors.is_empty() {
        let again = |retryable: bool| if retryable { "yes" } else { "no" }.to_owned();
        let rows = tool.errors.iter().map(|error| [error.code.clone(), again(error.retryable), error.doc.clone()]);
        parts.push(heading("Failures", table(["code", "try again", ""], rows)));
    }
    for example in &tool.examples {
        let yaml: Vec<String> = example.yaml.trim_end().lines().map(|line| format!("  {}", printable(line))).collect();
        parts.push(heading(&printable(&example.title), yaml.join("\n")));
    }
    parts.extend(tool.notes.iter().map(|note| printable(note)));
    parts
}

fn cells(field: &Field) -> [String; 4] {
    let default = match (&field.default, field.required) {
        (Some(Value::String(text)), _) => text.clone(),
        (Some(default), _) => default.to_string(),
        (None, true) => "required".to_owned(),
        (None, false) => String::new(),
    };
    let mut doc = field.doc.clone();
    if !field.choices.is_empty() {
        doc.push_str(&format!(" One of {}.", field.choices.iter().map(cell).collect::<Vec<_>>().join(", ")));
    }
    doc.push_str(&field.requirements());
    if let Some(group) = &field.one_of {
        doc.push_str(&format!(" Only one of the fields for the {group}."));
    }
    [field.names().collect::<Vec<_>>().join(", "), field.types.to_string(), default, doc]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_page_has_fields_results_failures_and_examples_in_order() {
        let tool = super::super::known::all().get("http").expect("it comes with the command");
        let answer = json!({"kind": "http", "plugin": "tools/http", "version": "1.0.0", "source": "embedded"});
        let page = page(&answer, Some(tool), Paint::plain());
        let mut from = 0;
        for part in ["http  tools/http@1.0.0 (embedded)", "Fields", "url, endpoint", "required", "Result", "Failures"] {
            from += page[from..].find(part).unwrap_or_else(|| panic!("`{part}` is not in its place in\n{page}"));
        }
        assert!(page.contains("  kind: http"), "{page}");
    }

    #[test]
    fn a_silent_tool_is_shown_as_one() {
        let answer = json!({"kind": "x", "plugin": "tools/x", "version": "1.0.0", "source": "channel"});
        assert!(page(&answer, None, Paint::plain()).ends_with("It does not say what it does."));
    }
}
