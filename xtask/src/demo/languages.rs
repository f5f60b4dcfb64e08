//! The part of the demo about source text: a Python and a JavaScript plugin, edited while they are watched.

use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::Demo;
use crate::project::as_typed;

impl Demo {
    pub(super) fn languages(&self) -> Result<()> {
        let times = [("python", "main.py"), ("js", "main.js")]
            .into_iter()
            .map(|(lang, file)| Ok((lang, self.edited_live(lang, file)?)))
            .collect::<Result<Vec<_>>>()?;
        for (lang, ms) in times {
            println!("{lang}: live {ms} ms after it was saved");
        }
        Ok(())
    }

    /// Makes a project, changes a word of it while it is watched and calls what is live; answers with the time from
    /// saving to live.
    fn edited_live(&self, lang: &str, file: &str) -> Result<u64> {
        let (folder, path) = (format!("{lang}-greet"), format!("main/{lang}-greet"));
        self.noetl(&["plugin", "new", &folder, "--path", &path, "--world", "transform", "--lang", lang])?;
        self.noetl(&["plugin", "test", &folder])?;
        let mut watching = self.watch(&folder)?;
        watching.next().context("the first version")?;
        let entry = self.work().join(&folder).join(file);
        let text = fs::read_to_string(&entry).with_context(|| format!("read {}", entry.display()))?;
        eprintln!("edit {folder}/{file}: \"Hello\" becomes \"Good evening\"");
        fs::write(&entry, text.replace("Hello", "Good evening"))
            .with_context(|| format!("write {}", entry.display()))?;
        let live = watching.next().context("the version after the edit")?;
        let call = ["plugin", "call", &path, "--channel", "dev", "--input", r#"{"name": "Ada"}"#];
        let mut call = self.command(&call);
        let output = call.stderr(Stdio::inherit()).output().context("start the call")?;
        let answer = String::from_utf8_lossy(&output.stdout).into_owned();
        println!("{answer}");
        let wanted = json!({ "greeting": "Good evening, Ada!" });
        let right = serde_json::from_str::<Value>(&answer).is_ok_and(|answer| answer == wanted);
        ensure!(right, "`{}` should answer {wanted}", as_typed(&call));
        live["edit_to_live_ms"].as_u64().context("`watch` says how long it took")
    }

    fn watch(&self, folder: &str) -> Result<Watching> {
        let mut command = self.command(&["--json", "plugin", "watch", folder]);
        let mut child = command.stdout(Stdio::piped()).spawn().context("start watching")?;
        let lines = BufReader::new(child.stdout.take().context("its stdout is a pipe")?).lines();
        Ok(Watching { child, lines })
    }
}

/// A running `noetl plugin watch`, stopped when dropped.
struct Watching {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Watching {
    /// Waits for the next version.
    fn next(&mut self) -> Result<Value> {
        let line = self.lines.next().context("`watch` ended")??;
        println!("{line}");
        Ok(serde_json::from_str(&line)?)
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        // Fails only if it has ended by itself, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
