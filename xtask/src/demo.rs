//! `cargo xtask demo`: a minute with the real command, as a user would type it.
//!
//! Starts a server on a free port with a fresh data folder, makes a plugin, pushes and calls it, changes it live,
//! overrides it for one tenant, rolls it back; edits a Python and a JavaScript plugin live; then runs a playbook and asks
//! why it ended so. Every command is shown before it runs. What the plugins and the playbook answer is compared with
//! what they should answer, so that a demo that ends well has shown what it says. Nothing is left behind: the folder is
//! removed and the server stopped, also after an error.

mod languages;
mod playbook;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use comfy_table::{Table, presets};
use tempfile::TempDir;

use crate::build;
use crate::project::{Project, as_typed};
use crate::say;

const SERVICE: &str = "system/greet";
const OVERRIDE: &str = "acme/system/greet";
const TENANTS: [&str; 2] = ["main", "acme"];
const START_LIMIT: Duration = Duration::from_secs(120);

pub fn run(project: &Project) -> Result<()> {
    let binary = build::everything(project, false)?;
    let mut demo = Demo::new(binary)?;
    say::heading("a server");
    let _server = demo.serve()?;

    say::heading("a plugin, from nothing to its first answer");
    demo.new_plugin("greet", SERVICE)?;
    demo.edit("greet", "1.0.0", "Hello, {}.")?;
    demo.set("greet", "overridable", "true")?;
    demo.noetl(&["plugin", "build", "greet"])?;
    demo.push("greet", "first version")?;
    demo.expect("version 1.0.0", ["Hello, Ada.", "Hello, Ada."])?;

    say::heading("a new version, live");
    demo.edit("greet", "2.0.0", "Good morning, {}!")?;
    demo.push("greet", "friendlier")?;
    demo.expect("version 2.0.0", ["Good morning, Ada!", "Good morning, Ada!"])?;

    say::heading("an override for one tenant");
    demo.new_plugin("acme-greet", OVERRIDE)?;
    demo.edit("acme-greet", "1.0.0", "ACME welcomes {}.")?;
    demo.push("acme-greet", "our own words")?;
    demo.noetl(&["plugin", "bind", SERVICE, "--tenant", "acme", "--to", OVERRIDE, "--reason", "house style"])?;
    demo.expect("override for acme", ["Good morning, Ada!", "ACME welcomes Ada."])?;

    say::heading("back to the version before");
    demo.noetl(&["plugin", "rollback", SERVICE, "--reason", "too cheerful"])?;
    demo.expect("rollback", ["Hello, Ada.", "ACME welcomes Ada."])?;
    demo.noetl(&["plugin", "list"])?;

    say::heading("what each tenant was answered");
    println!("{}", demo.summary());

    say::heading("Python and JavaScript, edited live");
    demo.languages()?;

    say::heading("a playbook: branches, a parallel loop, a retry, another playbook");
    demo.playbook(&project.root.join("examples/engine"))?;

    say::heading("why it ended so");
    demo.why()
}

struct Demo {
    binary: PathBuf,
    folder: TempDir,
    /// After which step, and what the tenants were answered.
    answers: Vec<(String, [String; 2])>,
    started: Instant,
}

impl Demo {
    fn new(binary: PathBuf) -> Result<Demo> {
        let folder = tempfile::tempdir().context("make a folder for the demo")?;
        Ok(Demo { binary, folder, answers: Vec::new(), started: Instant::now() })
    }

    fn work(&self) -> &Path {
        self.folder.path()
    }

    /// The command with the demo's data folder; shown as it would be typed.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(arguments).current_dir(self.work()).env("NOETL_DATA", self.work().join("data"));
        for from_outside in ["NOETL_SERVER", "NOETL_TOKEN"] {
            command.env_remove(from_outside);
        }
        eprintln!("$ {}", as_typed(&command));
        command
    }

    fn noetl(&self, arguments: &[&str]) -> Result<()> {
        crate::project::must_run(&mut self.command(arguments))
    }

    fn serve(&self) -> Result<Server> {
        eprintln!("$ export NOETL_DATA={}", self.work().join("data").display());
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0"]);
        let child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().context("start the server")?;
        let mut server = Server(child);
        let stderr = server.0.stderr.take().context("the server's stderr is a pipe")?;
        match first_line_with(stderr, "listening on ").recv_timeout(START_LIMIT) {
            Ok(Ok(line)) => eprintln!("{line}"),
            Ok(Err(said)) => bail!("the server ended before it listened:\n{said}"),
            Err(_) => bail!("the server did not listen within {}", say::time(START_LIMIT)),
        }
        Ok(server)
    }

    fn new_plugin(&self, folder: &str, path: &str) -> Result<()> {
        self.noetl(&["plugin", "new", folder, "--path", path, "--world", "transform"])
    }

    /// Writes the plugin's code with these words, and its version.
    fn edit(&self, folder: &str, version: &str, words: &str) -> Result<()> {
        eprintln!("edit {folder}/src/lib.rs: {words:?}, version {version}");
        let code = format!(
            "use noetl_sdk::Failure;\n\nnoetl_sdk::transform!(greet);\n\n\
             fn greet(input: Vec<u8>) -> Result<Vec<u8>, Failure> {{\n    \
             let name = String::from_utf8(input)?;\n    Ok(format!({words:?}, name).into_bytes())\n}}\n"
        );
        let file = self.work().join(folder).join("src/lib.rs");
        fs::write(&file, code).with_context(|| format!("write {}", file.display()))?;
        self.set(folder, "version", &format!("{version:?}"))
    }

    /// Sets one key of the plugin's manifest.
    fn set(&self, folder: &str, key: &str, value: &str) -> Result<()> {
        let file = self.work().join(folder).join("plugin.toml");
        let text = fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
        fs::write(&file, with_key(&text, key, value)).with_context(|| format!("write {}", file.display()))
    }

    fn push(&self, folder: &str, reason: &str) -> Result<()> {
        self.noetl(&["plugin", "push", folder, "--grant", "all", "--reason", reason])
    }

    /// Calls the service as each tenant and holds the answers against what they should be.
    fn expect(&mut self, step: &str, wanted: [&str; 2]) -> Result<()> {
        let mut answers = [String::new(), String::new()];
        for (tenant, answer) in TENANTS.iter().zip(&mut answers) {
            let mut call = self.command(&["plugin", "call", SERVICE, "--tenant", tenant, "--input", "Ada"]);
            let output = call.stderr(Stdio::inherit()).output().context("start the call")?;
            ensure!(output.status.success(), "`{}` failed ({})", as_typed(&call), output.status);
            *answer = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
            println!("{answer}");
        }
        ensure!(answers == wanted, "after {step} the answers should be {wanted:?}");
        self.answers.push((step.to_owned(), answers));
        Ok(())
    }

    fn summary(&self) -> String {
        let mut table = Table::new();
        table.load_preset(presets::ASCII_MARKDOWN);
        table.set_header(["after", "main is answered", "acme is answered"]);
        for (step, [main, acme]) in &self.answers {
            table.add_row([step, main, acme]);
        }
        format!("{table}\n{} changes to a running server in {}", self.answers.len(), say::time(self.started.elapsed()))
    }
}

/// The manifest's text with a top-level key set, whether it was there, commented out or absent.
fn with_key(text: &str, key: &str, value: &str) -> String {
    let is_key = |line: &str| {
        let bare = line.trim_start_matches(['#', ' ']);
        bare.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('='))
    };
    let top = text.lines().take_while(|line| !line.starts_with('[')).count();
    let place = text.lines().take(top).position(is_key);
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    let line = format!("{key} = {value}");
    match place {
        Some(place) => lines[place] = line,
        None => lines.insert(0, line),
    }
    lines.join("\n") + "\n"
}

/// Waits on its own thread for a line; then goes on reading, because a full pipe would stop the server. If the stream
/// ends first, the answer is all that was said.
fn first_line_with(stream: impl Read + Send + 'static, wanted: &'static str) -> mpsc::Receiver<Result<String, String>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut said = Vec::new();
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if line.contains(wanted) {
                // Nobody waits any more once the time is over; that is reported there.
                let _ = sender.send(Ok(line));
            } else if said.len() < 50 {
                said.push(line);
            }
        }
        let _ = sender.send(Err(said.join("\n")));
    });
    receiver
}

/// The running server, stopped when dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // Fails only if it has ended by itself, which is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_set_wherever_it_was() {
        let text = "path = \"a/b\"\nversion = \"0.1.0\"\n# overridable = false\n\n[limits]\nversion = 3\n";
        let changed = with_key(&with_key(text, "version", "\"2.0.0\""), "overridable", "true");
        assert_eq!(changed, "path = \"a/b\"\nversion = \"2.0.0\"\noverridable = true\n\n[limits]\nversion = 3\n");
        assert_eq!(with_key("[limits]\nkey = 1\n", "key", "2"), "key = 2\n[limits]\nkey = 1\n");
    }

    #[test]
    fn a_server_that_ends_too_early_is_quoted() {
        let early = first_line_with("one\ntwo\n".as_bytes(), "listening on ").recv().expect("an answer");
        assert_eq!(early, Err("one\ntwo".to_owned()));
        let good = first_line_with("one\nlistening on x\n".as_bytes(), "listening on ").recv().expect("an answer");
        assert_eq!(good, Ok("listening on x".to_owned()));
    }
}
