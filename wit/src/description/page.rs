//! A tool's page as Markdown, for the documentation.

use std::fmt::Write as _;

use super::{Description, Field, bare};

impl Description {
    /// A section under the heading `kind`.
    pub fn markdown(&self, kind: &str) -> String {
        let mut page = format!("## `{kind}`\n\n{}\n", self.summary);
        for note in &self.notes {
            let _ = write!(page, "\n{note}\n");
        }
        if !self.fields.is_empty() {
            page.push_str("\n| field | value | default | |\n|---|---|---|---|\n");
            self.fields.iter().for_each(|field| page.push_str(&row(field)));
        }
        if !self.result.is_empty() {
            page.push_str("\nResult:\n\n| | value | |\n|---|---|---|\n");
            for part in &self.result {
                let _ = writeln!(page, "| `{}` | {} | {} |", part.name, part.types, cell(&part.doc));
            }
        }
        if !self.errors.is_empty() {
            page.push_str("\nFailures:\n\n| code | try again? | |\n|---|---|---|\n");
            for error in &self.errors {
                let again = if error.retryable { "yes" } else { "no" };
                let _ = writeln!(page, "| `{}` | {again} | {} |", error.code, cell(&error.doc));
            }
        }
        for example in &self.examples {
            let _ = write!(page, "\n{}:\n\n```yaml\n{}\n```\n", example.title, example.yaml.trim_end());
        }
        page
    }
}

fn row(field: &Field) -> String {
    let names: Vec<String> = field.names().map(|name| format!("`{name}`")).collect();
    let default = match (&field.default, field.required) {
        (Some(default), _) => format!("`{default}`"),
        (None, true) => "required".to_owned(),
        (None, false) => String::new(),
    };
    let mut doc = field.doc.clone();
    if !field.choices.is_empty() {
        let choices: Vec<String> = field.choices.iter().map(|choice| format!("`{}`", bare(choice))).collect();
        let _ = write!(doc, " One of {}.", choices.join(", "));
    }
    doc.push_str(&field.requirements());
    if let Some(group) = &field.one_of {
        let _ = write!(doc, " Only one of the fields for the {group}.");
    }
    format!("| {} | {} | {default} | {} |\n", names.join(", "), field.types, cell(&doc))
}

/// Text in a table: its lines are one line, and a bar ends no cell.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
