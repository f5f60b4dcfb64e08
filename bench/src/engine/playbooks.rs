//! The playbooks that are run, and what each has to come to.
//!
//! Every step adds one to what the step before it came to, so an answer is right only if each step ran once and saw the
//! result of the one before.

use std::sync::Arc;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::http::Answer;

/// The step that waits for somebody.
pub const PARKED_STEP: &str = "start";
/// A plugin that answers with its arguments, in a sandbox of its own each time.
const MIRROR: &str = "main/mirror";

pub struct Playbook {
    pub path: String,
    pub steps: u64,
    /// As it is registered: JSON, which is YAML.
    pub text: String,
}

impl Playbook {
    /// Steps in series that touch nothing outside.
    pub fn pure(steps: u64) -> Arc<Self> {
        Self::series(format!("bench/pure-{steps}"), steps, |n| json!({"kind": "noop", "result": {"n": n}}))
    }

    /// Steps in series that may act on the outside, for all the engine knows.
    pub fn acting(steps: u64) -> Arc<Self> {
        let tool = |n: &str| json!({"kind": "wasm", "plugin": MIRROR, "input": {"n": n}});
        Self::series(format!("bench/acting-{steps}"), steps, tool)
    }

    /// Waits for somebody, then ends.
    pub fn parked() -> Arc<Self> {
        let workflow = vec![
            json!({"step": PARKED_STEP, "tool": {"kind": "park"}, "next": {"arcs": [{"step": "end"}]}}),
            json!({"step": "end", "tool": {"kind": "noop", "result": {"n": "{{ start.n }}"}}}),
        ];
        Self::new("bench/parked".to_owned(), 2, workflow)
    }

    fn series(path: String, steps: u64, tool: impl Fn(&str) -> Value) -> Arc<Self> {
        let step = |index: u64| {
            let before = if index == 0 { "n".to_owned() } else { format!("{}.n", name(index - 1)) };
            let mut step = json!({"step": name(index), "tool": tool(&format!("{{{{ {before} + 1 }}}}"))});
            if index + 1 < steps {
                step["next"] = json!({"arcs": [{"step": name(index + 1)}]});
            }
            step
        };
        Self::new(path, steps, (0..steps).map(step).collect())
    }

    fn new(path: String, steps: u64, workflow: Vec<Value>) -> Arc<Self> {
        let document = json!({
            "apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": {"name": "bench", "path": path},
            "workload": {"n": 0}, "workflow": workflow,
        });
        Arc::new(Self { path, steps, text: document.to_string() })
    }

    /// The request to run it with this number.
    pub fn request(&self, n: u64) -> String {
        format!("{{\"path\":\"{}\",\"payload\":{{\"n\":{n}}}}}", self.path)
    }

    /// Whether that request was answered with what the steps make of the number.
    pub fn check(&self, n: u64, answer: &Answer<'_>) -> Result<()> {
        let output = format!("\"output\":{{\"n\":{}}}", n + self.steps);
        let right = answer.status == 200 && contains(answer.body, output.as_bytes());
        ensure!(right, "{} with {n} came to {} instead of {output}", self.path, answer.text());
        Ok(())
    }
}

/// Workflows begin with the step `start`.
fn name(index: u64) -> String {
    if index == 0 { "start".to_owned() } else { format!("s{index}") }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_follow_one_another_and_each_adds_one() {
        let playbook: Value = serde_json::from_str(&Playbook::pure(3).text).expect("JSON");
        let steps = playbook["workflow"].as_array().expect("a list");
        assert_eq!(steps.len(), 3);
        assert_eq!(steps[0]["tool"]["result"]["n"], "{{ n + 1 }}");
        assert_eq!(steps[0]["next"]["arcs"][0]["step"], "s1");
        assert_eq!(steps[2]["tool"]["result"]["n"], "{{ s1.n + 1 }}");
        assert!(steps[2].get("next").is_none());
    }

    #[test]
    fn only_the_right_number_is_a_right_answer() {
        let playbook = Playbook::pure(10);
        let check = |status, body: &str| playbook.check(5, &Answer { status, body: body.as_bytes() }).is_ok();
        assert!(check(200, r#"{"execution_id":"1","status":"completed","output":{"n":15},"error":null}"#));
        assert!(!check(200, r#"{"execution_id":"1","status":"completed","output":{"n":14},"error":null}"#));
        assert!(!check(202, r#"{"execution_id":"1","status":"running","output":{"n":15},"error":null}"#));
        assert!(!check(200, ""));
    }
}
