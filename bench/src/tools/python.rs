//! Python code in a step beside the same code in a process of `python3`, which gets its input on stdin and prints its
//! answer, as a caller would have it.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::say;
use super::stand::{REPEATED, Stand};
use super::turns::{self, Bare};
use crate::languages;
use crate::rows::Rows;

const CODE: &str = "result = {'name': name, 'numbers': sorted(numbers)}";
const BEFORE: &str = "import json, sys\nglobals().update(json.load(sys.stdin))\n";
const AFTER: &str = "\nprint(json.dumps(result))\n";

pub async fn measure(stand: &Stand, rows: &mut Rows) -> Result<()> {
    let Some(program) = languages::python()? else {
        say("python3 is not on this machine: there is nothing to compare with");
        return Ok(());
    };
    let (input, answer) = (json!({"name": "Ada", "numbers": [3, 1, 2]}), json!({"name": "Ada", "numbers": [1, 2, 3]}));
    let tool = json!({"kind": "python", "code": CODE, "input": input});
    let process = Process { program, script: format!("{BEFORE}{CODE}{AFTER}"), input: input.to_string(), answer };

    let one = stand.step("python", &tool, "", process.answer.clone()).await?;
    let row = turns::single(stand, &one, &process).await?;
    rows.add("python step, a playbook of one; baseline: a process of python3", row);

    // More processes at a time than processors would only wait for each other.
    let at_once = std::thread::available_parallelism()?.get();
    let many = stand.repeated("python", &tool).await?;
    let row = turns::repeated(stand, &many, &process, at_once).await?;
    rows.add(
        format!("{REPEATED} python steps, a parallel loop; baseline: processes of python3, {at_once} at a time"),
        row,
    );
    Ok(())
}

struct Process {
    program: PathBuf,
    script: String,
    input: String,
    answer: Value,
}

impl Bare for Process {
    async fn turn(&self) -> Result<()> {
        let mut command = Command::new(&self.program);
        command.arg("-c").arg(&self.script).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("start {}", self.program.display()))?;
        let mut stdin = child.stdin.take().context("stdin is piped")?;
        stdin.write_all(self.input.as_bytes()).await?;
        drop(stdin);
        let output = child.wait_with_output().await?;
        ensure!(output.status.success(), "python3: {}", output.status);
        let answer: Value = serde_json::from_slice(&output.stdout).context("what python3 printed")?;
        ensure!(answer == self.answer, "python3 came to {answer} instead of {}", self.answer);
        Ok(())
    }
}
