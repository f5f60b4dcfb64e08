//! Plugins that are source text, on the real binary: a call in a fresh sandbox and in a kept one beside a process of
//! the language's own interpreter, from push to first answer, and what fifty plugins hold beside one.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use noetl_contract::source::{self, Bundle};
use reqwest::Client;
use tokio::runtime::Runtime;

use crate::rows::{Better, Row, Rows, median};
use crate::server::{Server, client, folder, push};

const CALLS: usize = 60;
const SPAWNS: usize = 15;
const PUSHES: u32 = 15;
const PLUGINS: u32 = 50;
/// Calls of the first plugin before it is looked at.
const SETTLING: usize = 20;
const INPUT: &str = r#"{"numbers": [3, 1, 2], "name": "Ada"}"#;

/// The same work in a plugin and in a script.
struct Language {
    name: &'static str,
    id: &'static str,
    entry: &'static str,
    plugin: &'static str,
    program: &'static str,
    /// Says where the program really is: what is found first may be a script that looks for it.
    locate: &'static [&'static str],
    script: &'static [&'static str],
}

const LANGUAGES: [Language; 2] = [
    Language {
        name: "Python",
        id: "python",
        entry: "main.py",
        plugin: "def call(input):\n    return {'name': input['name'], 'numbers': sorted(input['numbers'])}\n",
        program: "python3",
        locate: &["-c", "import sys; print(sys.executable)"],
        script: &[
            "-c",
            "import json, sys\ninput = json.load(sys.stdin)\n\
                   print(json.dumps({'name': input['name'], 'numbers': sorted(input['numbers'])}))",
        ],
    },
    Language {
        name: "JavaScript",
        id: "js",
        entry: "main.js",
        plugin: "export function call(input) {\n  return { name: input.name, numbers: input.numbers.sort() };\n}\n",
        program: "node",
        locate: &["-p", "process.execPath"],
        script: &[
            "-e",
            "const input = JSON.parse(require('fs').readFileSync(0));\n\
                   console.log(JSON.stringify({ name: input.name, numbers: input.numbers.sort() }))",
        ],
    },
];

pub fn measure(runtime: &Runtime, rows: &mut Rows) -> Result<()> {
    let folder = folder()?;
    let server = Server::start(folder.path())?;
    runtime.block_on(server.ready())?;
    let client = client()?;
    for language in &LANGUAGES {
        // The first push of a language loads its interpreter, and on a new machine compiles it.
        runtime.block_on(push(&client, &server, language.packed("warm", 0, false)?))?;
        runtime.block_on(called(&client, &server, &language.path("warm")))?;
        let spawned = language.spawned()?;
        for (what, resident) in [("fresh sandbox", false), ("kept sandbox", true)] {
            let name = if resident { "kept" } else { "fresh" };
            runtime.block_on(push(&client, &server, language.packed(name, 0, resident)?))?;
            let mut took = Vec::new();
            for _ in 0..=CALLS {
                took.push(runtime.block_on(called(&client, &server, &language.path(name)))?);
            }
            let mut row = Row::new(median(took[1..].iter().copied()), "µs", Better::Lower);
            row.baseline = spawned;
            row.ratio = spawned.map(|spawned| row.value / spawned);
            rows.add(format!("{} call, {what} (beside a process of {})", language.name, language.program), row);
        }
        let mut took = Vec::new();
        for number in 1..=PUSHES {
            let packed = language.packed("pushed", number, false)?;
            let started = Instant::now();
            runtime.block_on(push(&client, &server, packed))?;
            runtime.block_on(called(&client, &server, &language.path("pushed")))?;
            took.push(started.elapsed().as_secs_f64() * 1e3);
        }
        let mut row = Row::new(median(took), "ms", Better::Lower);
        (row.floor, row.goal) = (Some(1_000.0), Some(100.0));
        rows.add(format!("{} push to first answer", language.name), row);
    }
    drop(server);
    memory(runtime, &client, rows)
}

/// The real `python3` of this machine; none where there is none.
pub fn python() -> Result<Option<PathBuf>> {
    LANGUAGES[0].located()
}

/// What is resident with one plugin called, and with fifty.
fn memory(runtime: &Runtime, client: &Client, rows: &mut Rows) -> Result<()> {
    let folder = folder()?;
    let server = Server::start(folder.path())?;
    runtime.block_on(server.ready())?;
    let python = &LANGUAGES[0];
    let mut with_one = None;
    for number in 0..PLUGINS {
        let name = format!("p{number}");
        runtime.block_on(push(client, &server, python.packed(&name, 0, false)?))?;
        runtime.block_on(called(client, &server, &python.path(&name)))?;
        if with_one.is_none() {
            // Once it is settled: what the first calls still make would be taken for what further plugins do not.
            for _ in 0..SETTLING {
                runtime.block_on(called(client, &server, &python.path(&name)))?;
            }
            with_one = Some(server.resident_mib()?);
        }
    }
    let with_one = with_one.context("at least one was pushed")?;
    let mut row = Row::new(server.resident_mib()?, "MiB", Better::Lower);
    (row.baseline, row.ratio) = (Some(with_one), Some(row.value / with_one));
    rows.add(format!("memory, {PLUGINS} Python plugins called (beside one)"), row);
    Ok(())
}

impl Language {
    fn path(&self, name: &str) -> String {
        format!("main/bench/{}-{name}", self.id)
    }

    fn packed(&self, name: &str, number: u32, resident: bool) -> Result<Vec<u8>> {
        let instance = if resident { "resident" } else { "fresh" };
        let manifest = format!(
            "path = \"{}\"\nversion = \"1.0.{number}\"\nworld = \"transform\"\ninstance = \"{instance}\"\n[source]\n\
             language = \"{}\"\nentry = \"{}\"\n",
            self.path(name),
            self.id,
            self.entry
        );
        let mut bundle = Bundle::default();
        // Other text every time, so that nothing is found ready.
        bundle.add(self.entry, format!("{}\n", self.plugin).into_bytes())?;
        bundle.add("number.txt", format!("{name} {number}").into_bytes())?;
        Ok(source::pack(&manifest, &bundle)?)
    }

    /// The program itself; none where the language is not on this machine.
    fn located(&self) -> Result<Option<PathBuf>> {
        let Ok(found) = Command::new(self.program).args(self.locate).output() else { return Ok(None) };
        let path = String::from_utf8(found.stdout)?;
        Ok(found.status.success().then(|| PathBuf::from(path.trim())))
    }

    /// What the work costs in a process of its own, in µs; none where the language is not on this machine.
    fn spawned(&self) -> Result<Option<f64>> {
        let Some(program) = self.located()? else { return Ok(None) };
        let mut took = Vec::new();
        for _ in 0..=SPAWNS {
            let started = Instant::now();
            let mut command = Command::new(&program);
            let child = command.args(self.script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
            let Ok(mut child) = child else { return Ok(None) };
            child.stdin.take().context("stdin is piped")?.write_all(INPUT.as_bytes())?;
            let output = child.wait_with_output()?;
            ensure!(output.status.success(), "`{}` failed", self.program);
            took.push(started.elapsed().as_secs_f64() * 1e6);
        }
        Ok(Some(median(took[1..].iter().copied())))
    }
}

/// Calls a plugin; µs in the host.
async fn called(client: &Client, server: &Server, path: &str) -> Result<f64> {
    let url = format!("{}/api/plugins/{path}:call", server.url);
    let answer = client.post(url).bearer_auth(&server.token).body(INPUT).send().await?;
    let status = answer.status();
    let duration = answer.headers().get("noetl-duration-us").and_then(|value| value.to_str().ok()?.parse().ok());
    let body = answer.text().await?;
    ensure!(status.is_success() && body.contains("[1,2,3]"), "{path} answered {status}: {body}");
    duration.context("the server says how long a call took")
}
