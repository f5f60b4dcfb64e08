//! `noetl plugin test`: plays the recorded calls of a project, `cases/*.case`, on what the project is now.
//!
//! The plugin is built or packed and run in the real host of this process, with its own limits and grant; what it asks
//! of the host is answered by the case, so nothing is reached and nothing is left behind. A case holds when everything a
//! play writes down is the same as in the file: each host call with its arguments, and the outcome, byte for byte.

use std::path::{Path, PathBuf};

use clap::Args;
use noetl_dispatch::case::Case;
use serde_json::{Value, json};
use similar::TextDiff;

use super::harness::Session;
use crate::args::Context;
use crate::failure::{self, Exit, Failure, Outcome};
use crate::output::{Output, Paint};

#[derive(Debug, Args)]
pub struct Test {
    /// The project's folder, or one file of Python or JavaScript.
    #[arg(default_value = ".")]
    what: PathBuf,
    /// Write what the plugin does now into the cases that no longer hold.
    #[arg(long)]
    bless: bool,
}

/// What became of a case.
enum Verdict {
    Holds,
    /// What is different, as lines.
    Differs {
        diff: String,
        now: Box<Case>,
    },
    Broke(String),
}

impl Test {
    pub async fn run(self, context: &Context) -> Outcome {
        let output = &context.output;
        let folder = if self.what.is_dir() { self.what.clone() } else { folder_of(&self.what) };
        let files = cases(&folder.join("cases"))?;
        let component = super::build::build(&self.what, None, output)?;
        if files.is_empty() {
            let path = &component.manifest.path;
            output.say(format_args!("no cases in {}", folder.join("cases").display()));
            output.say(format_args!("record one: noetl plugin call {path} ... --record cases/first.case"));
            return Ok(());
        }
        let place =
            tempfile::tempdir().map_err(|error| Failure::failed(format!("make a temporary folder: {error}")))?;
        let (session, _) = Session::start(place.path(), component.bytes)
            .await
            .map_err(|error| Failure::failed(format!("{}: {}", error.class, error.message)))?;
        let mut failed = 0;
        let mut rows = Vec::new();
        for file in &files {
            let mut verdict = play(&session, file).await?;
            if let (true, Verdict::Differs { now, .. }) = (self.bless, &verdict) {
                write(file, now)?;
                verdict = Verdict::Holds;
            }
            failed += usize::from(!matches!(verdict, Verdict::Holds));
            rows.push(row(file, &verdict));
            tell(file, &verdict, output);
        }
        output.result(&json!({ "cases": rows, "failed": failed }), |_| {
            format!("{} of {} cases hold", files.len() - failed, files.len())
        });
        match failed {
            0 => Ok(()),
            _ => Err(Failure::new(Exit::Failed, format!("{failed} of {} cases do not hold", files.len())).next(
                "if the plugin is right and the cases are old, run it again with --bless and read the difference",
            )),
        }
    }
}

fn folder_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// By name; none where there is no such folder.
fn cases(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(failure::io("read", folder))?,
    };
    let mut files = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(failure::io("read", folder))?;
    files.retain(|file| file.extension().is_some_and(|ending| ending == "case"));
    files.sort();
    Ok(files)
}

async fn play(session: &Session, file: &Path) -> Outcome<Verdict> {
    let text = std::fs::read_to_string(file).map_err(failure::io("read", file))?;
    let case: Case = serde_json::from_str(&text)
        .map_err(|error| Failure::usage(format!("{} is not a case: {error}", file.display())))?;
    let recorded = case.scrubbed();
    Ok(match session.play(&case).await {
        Err(error) => Verdict::Broke(error.to_string()),
        Ok(None) => Verdict::Broke("it has only the digest of a large body, so it cannot be played".to_owned()),
        Ok(Some(now)) if now == recorded => Verdict::Holds,
        Ok(Some(now)) => Verdict::Differs { diff: diff(&shown(&recorded)?, &shown(&now)?), now: Box::new(now) },
    })
}

/// A case as its file has it.
pub fn shown(case: &Case) -> Outcome<String> {
    let text = serde_json::to_string_pretty(case);
    text.map(|text| text + "\n").map_err(|error| Failure::failed(format!("write a case: {error}")))
}

pub fn write(file: &Path, case: &Case) -> Outcome {
    super::fetch::write_whole(file, shown(case)?.as_bytes())
}

fn diff(recorded: &str, now: &str) -> String {
    TextDiff::from_lines(recorded, now).unified_diff().context_radius(2).header("recorded", "now").to_string()
}

fn row(file: &Path, verdict: &Verdict) -> Value {
    match verdict {
        Verdict::Holds => json!({ "case": file, "holds": true }),
        Verdict::Differs { diff, .. } => json!({ "case": file, "holds": false, "diff": diff }),
        Verdict::Broke(why) => json!({ "case": file, "holds": false, "error": why }),
    }
}

fn tell(file: &Path, verdict: &Verdict, output: &Output) {
    if output.json {
        return;
    }
    let (paint, file) = (output.stderr_paint(), file.display());
    match verdict {
        Verdict::Holds => output.say(format_args!("{} {file}", paint.good("ok"))),
        Verdict::Broke(why) => output.say(format_args!("{} {file}\n{why}", paint.bad("failed"))),
        Verdict::Differs { diff, .. } => {
            output.say(format_args!("{} {file}\n{}", paint.bad("differs"), coloured(diff, paint)));
        }
    }
}

fn coloured(diff: &str, paint: Paint) -> String {
    let line = |line: &str| match line.as_bytes().first() {
        Some(b'+') => paint.good(line).to_string(),
        Some(b'-') => paint.bad(line).to_string(),
        _ => line.to_owned(),
    };
    diff.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_shown_by_lines() {
        let shown = diff("{\n  \"calls\": 1\n}\n", "{\n  \"calls\": 2\n}\n");
        assert!(shown.contains("-  \"calls\": 1\n+  \"calls\": 2"), "{shown}");
    }

    #[test]
    fn cases_are_found_by_name() {
        let place = tempfile::tempdir().expect("folder");
        assert!(cases(&place.path().join("cases")).expect("none").is_empty());
        for name in ["b.case", "a.case", "notes.md"] {
            std::fs::write(place.path().join(name), "").expect("file");
        }
        let names: Vec<_> = cases(place.path()).expect("cases");
        assert_eq!(names, [place.path().join("a.case"), place.path().join("b.case")]);
    }
}
