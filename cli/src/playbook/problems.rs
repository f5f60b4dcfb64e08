//! What is wrong with a playbook, as lines that editors and people can follow: `file:line:column: error: ...`.
//!
//! Problems come from the checker in this binary and from servers, so they are read from JSON: a server may know a
//! field this command does not.

use serde_json::Value;

use crate::output::{Paint, printable};

/// One line a problem.
pub fn lines(file: &str, problems: &[Value], paint: Paint) -> Vec<String> {
    problems.iter().map(|problem| line(file, problem, paint)).collect()
}

fn line(file: &str, problem: &Value, paint: Paint) -> String {
    let text = |field: &str| problem[field].as_str().map(printable).unwrap_or_default();
    let place = match (problem["line"].as_u64().unwrap_or(0), problem["column"].as_u64().unwrap_or(0)) {
        // The document as a whole has no place in itself.
        (0, _) => file.to_owned(),
        (line, 0) => format!("{file}:{line}"),
        (line, column) => format!("{file}:{line}:{column}"),
    };
    let severity = if is_error(problem) { paint.bad("error") } else { paint.warn("warning") };
    let mut line = format!("{}: {severity}: ", paint.bold(place));
    if !text("path").is_empty() {
        line.push_str(&format!("{}: ", paint.dim(text("path"))));
    }
    line.push_str(&text("message"));
    if !text("suggestion").is_empty() {
        line.push_str(&format!("; {}", paint.good(text("suggestion"))));
    }
    line
}

pub fn is_error(problem: &Value) -> bool {
    problem["severity"] != "warning"
}

/// `2 errors and 1 warning`, `no problems`.
pub fn count(problems: &[Value]) -> String {
    let errors = problems.iter().filter(|problem| is_error(problem)).count();
    let many = |number: usize, word: &str| format!("{number} {word}{}", if number == 1 { "" } else { "s" });
    match (errors, problems.len() - errors) {
        (0, 0) => "no problems".to_owned(),
        (errors, 0) => many(errors, "error"),
        (0, warnings) => many(warnings, "warning"),
        (errors, warnings) => format!("{} and {}", many(errors, "error"), many(warnings, "warning")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_problem_is_a_line_that_leads_to_its_place() {
        let problems = [
            json!({"severity": "error", "line": 12, "column": 7, "path": "workflow[2].next.arcs[0].step",
                   "message": "there is no step `fnish`", "suggestion": "did you mean `finish`?"}),
            json!({"severity": "warning", "line": 3, "column": 1, "path": "wokload",
                   "message": "unknown key `wokload`\u{1b}[2J is ignored"}),
            json!({"severity": "error", "line": 0, "column": 0, "path": "", "message": "and 3 more problems"}),
        ];
        assert_eq!(
            lines("a.yaml", &problems, Paint::plain()),
            [
                "a.yaml:12:7: error: workflow[2].next.arcs[0].step: there is no step `fnish`; did you mean `finish`?",
                "a.yaml:3:1: warning: wokload: unknown key `wokload`[2J is ignored",
                "a.yaml: error: and 3 more problems",
            ]
        );
        assert_eq!(count(&problems), "2 errors and 1 warning");
        assert_eq!((count(&problems[1..2]).as_str(), count(&[]).as_str()), ("1 warning", "no problems"));
    }
}
