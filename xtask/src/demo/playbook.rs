//! The last part of the demo: a playbook, shown while it runs, and then the reason why it ended as it did.
//!
//! The playbooks are those of `examples/engine`, so what is shown is what a reader finds there. The steps go to the
//! user's terminal as they happen; only the result is held back, to be compared with what it should be.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::Demo;
use crate::project::as_typed;

const PLAYBOOK: &str = "examples/orders";

impl Demo {
    pub(super) fn playbook(&self, examples: &Path) -> Result<()> {
        let examples = examples.to_str().context("the checkout's path is no UTF-8")?;
        self.noetl(&["register", examples])?;
        let result = self.result(&["exec", PLAYBOOK, "--follow", "--set", "customer=Grace"])?;
        print!("{result}");
        let wanted = json!({ "customer": "Grace", "total": 400, "label": "3 parcels for Grace" });
        ensure!(serde_json::from_str::<Value>(&result)? == wanted, "the playbook should come to {wanted}");
        Ok(())
    }

    pub(super) fn why(&self) -> Result<()> {
        let listed = self.result(&["executions", "--path", PLAYBOOK, "--limit", "1", "--json"])?;
        let id = newest(&listed).with_context(|| format!("no execution of `{PLAYBOOK}` is listed"))?;
        println!("the newest is {id}");
        self.noetl(&["why", &id])
    }

    /// Runs a command to its end and gives what it printed.
    fn result(&self, arguments: &[&str]) -> Result<String> {
        let mut command = self.command(arguments);
        let output = command.stderr(Stdio::inherit()).output().context("start the command")?;
        ensure!(output.status.success(), "`{}` failed ({})", as_typed(&command), output.status);
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// The id of the first execution of a list, which has the newest first.
fn newest(listed: &str) -> Option<String> {
    let listed: Value = serde_json::from_str(listed).ok()?;
    Some(listed.pointer("/executions/0/execution_id")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_a_list_is_the_newest() {
        let listed = r#"{"executions": [{"execution_id": "12"}, {"execution_id": "11"}]}"#;
        assert_eq!(newest(listed).as_deref(), Some("12"));
        assert_eq!(newest(r#"{"executions": []}"#), None);
        assert_eq!(newest("no JSON"), None);
    }
}
