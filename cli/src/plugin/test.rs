//! `noetl plugin test`: plays the recorded calls of a project, `cases/*.case`, on what the project is now.
//!
//! The plugin is built or packed and run in the real host of this process, with its own limits and grant; what it asks
//! of the host is answered by the case, so nothing is reached and nothing is left behind. A case holds when everything a
//! play writes down is the same as in the file: each host call with its arguments, and the outcome, byte for byte.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Args;
use noetl_contract::{PluginPath, Tenant};
use noetl_dispatch::case::{Case, Input};
use noetl_host::tape;
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
    /// For a single file of source text: where it lives in the catalog; cases of that path are played.
    #[arg(long)]
    path: Option<PluginPath>,
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
    /// Why it cannot be compared.
    Broke(String),
    /// What it does not have of the call, which to record it again would leave out again.
    Partial(String),
}

impl Test {
    pub async fn run(self, context: &Context) -> Outcome {
        let output = &context.output;
        let folder = if self.what.is_dir() { self.what.clone() } else { folder_of(&self.what) };
        let files = cases(&folder.join("cases"))?;
        let component = super::build::build(&self.what, self.path.as_ref(), None, output)?;
        let path = component.manifest.path.clone();
        if files.is_empty() {
            output.say(format_args!("no cases in {}", folder.join("cases").display()));
            output.say(format_args!("record one: noetl plugin call {path} ... --record cases/first.case"));
            return Ok(());
        }
        let place =
            tempfile::tempdir().map_err(|error| Failure::failed(format!("make a temporary folder: {error}")))?;
        let (session, _) = Session::start(place.path(), component.bytes)
            .await
            .map_err(|error| Failure::failed(format!("{}: {}", error.class, error.message)))?;
        let own = self.what.is_file().then(|| path.to_string());
        let mut tally = Tally::default();
        let (mut rows, mut foreign) = (Vec::new(), BTreeSet::new());
        for file in &files {
            let mut verdict = match read(file) {
                // Files share a folder, and so do their cases.
                Ok(case) if own.as_ref().is_some_and(|own| !case.plugin.is_empty() && case.plugin != *own) => {
                    output.detail(format_args!("{} is a case of {}", file.display(), case.plugin));
                    foreign.insert(case.plugin);
                    continue;
                }
                Ok(case) => play(&session, &case).await?,
                Err(why) => Verdict::Broke(why),
            };
            if let (true, Verdict::Differs { now, .. }) = (self.bless, &verdict) {
                write(file, now)?;
                verdict = Verdict::Holds;
            }
            tally.count(&verdict);
            rows.push(row(file, &verdict));
            tell(file, &verdict, output);
        }
        if tally.all() == 0 {
            return Err(none_played(&path, &foreign));
        }
        output.result(&json!({ "cases": rows, "failed": tally.failed() }), |_| {
            format!("{} of {} cases hold", tally.hold, tally.all())
        });
        tally.ended(&path)
    }
}

/// How many cases came to what.
#[derive(Debug, Default)]
struct Tally {
    hold: usize,
    differ: usize,
    broke: usize,
    partial: usize,
}

impl Tally {
    fn count(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Holds => self.hold += 1,
            Verdict::Differs { .. } => self.differ += 1,
            Verdict::Broke(_) => self.broke += 1,
            Verdict::Partial(_) => self.partial += 1,
        }
    }

    fn failed(&self) -> usize {
        self.differ + self.broke + self.partial
    }

    fn all(&self) -> usize {
        self.hold + self.failed()
    }

    fn ended(&self, path: &PluginPath) -> Outcome {
        if self.failed() == 0 {
            return Ok(());
        }
        let said = Failure::new(Exit::Failed, format!("{} of {} cases do not hold", self.failed(), self.all()));
        let bless = "if the plugin is right and the cases are old, run it again with --bless and read the difference";
        // What came to no outcome has nothing that could be blessed.
        let record = format!("one that cannot be played is recorded anew: noetl plugin call {path} ... --record FILE");
        let smaller = format!("one with a large body is recorded anew with less of it, or removed: {CALL_WITH_LESS}");
        let advice = [(self.differ, bless), (self.broke, record.as_str()), (self.partial, smaller.as_str())];
        let fitting: Vec<&str> = advice.into_iter().filter(|(cases, _)| *cases > 0).map(|(_, advice)| advice).collect();
        Err(said.next(fitting.join("; ")))
    }
}

/// There are cases, and all are of other plugins: that nothing was played is not that everything holds.
fn none_played(path: &PluginPath, foreign: &BTreeSet<String>) -> Failure {
    let others: Vec<&str> = foreign.iter().map(String::as_str).collect();
    let said = format!("no case was played: none is of {path}, all are of {}", others.join(", "));
    Failure::new(Exit::Failed, said).next(format!(
        "if the file is one of these, name it: --path {}; else record one: noetl plugin call {path} ... --record \
         cases/first.case",
        others.first().unwrap_or(&"PATH")
    ))
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

/// A case of its file, or why there is none.
fn read(file: &Path) -> Result<Case, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("it cannot be read: {error}"))?;
    serde_json::from_str(&text).map_err(|error| format!("{} is not a case: {error}", file.display()))
}

/// How a case comes to have less in it.
const CALL_WITH_LESS: &str = "a page, a filter or a smaller input";

/// What a case has only the digest of, so that it cannot be played; nothing of most cases.
pub fn left_out(case: &Case) -> Option<String> {
    let large = |what: &str, size: u64| {
        let most = tape::LARGEST_CONTENT >> 20;
        format!(
            "{what} has {size} bytes, and of contents above {most} MiB a case has only the digest; record a call with less \
             of it ({CALL_WITH_LESS})"
        )
    };
    let given = match &case.input {
        Input::Bytes(bytes) => tape::left_out(bytes),
        Input::ArgumentsAndBody { body, .. } => tape::left_out(body),
        Input::Arguments(_) => None,
    };
    if let Some(size) = given {
        return Some(large("its input", size));
    }
    let answered = |call: &noetl_host::HostCall| {
        let size = tape::left_out(&call.answer)?;
        Some(large(&format!("the answer to `{}`", call.call), size))
    };
    case.calls.iter().find_map(answered)
}

async fn play(session: &Session, case: &Case) -> Outcome<Verdict> {
    if let Some(what) = left_out(case) {
        return Ok(Verdict::Partial(what));
    }
    let recorded = match case.scrubbed(&Tenant::main()) {
        Ok(recorded) => recorded,
        Err(error) => return Ok(Verdict::Broke(error.to_string())),
    };
    Ok(match session.play(case).await {
        Err(error) => Verdict::Broke(error.to_string()),
        Ok(None) => Verdict::Broke("its input is not one that can be given".to_owned()),
        Ok(Some(now)) => compared(&recorded, now)?,
    })
}

/// By their texts: fields in another order are the same value and not the same answer.
fn compared(recorded: &Case, now: Case) -> Outcome<Verdict> {
    let (before, after) = (shown(recorded)?, shown(&now)?);
    Ok(match before == after {
        true => Verdict::Holds,
        false => Verdict::Differs { diff: diff(&before, &after), now: Box::new(now) },
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
        Verdict::Broke(why) | Verdict::Partial(why) => json!({ "case": file, "holds": false, "error": why }),
    }
}

fn tell(file: &Path, verdict: &Verdict, output: &Output) {
    if output.json {
        return;
    }
    let (paint, file) = (output.stderr_paint(), file.display());
    match verdict {
        Verdict::Holds => output.say(format_args!("{} {file}", paint.good("ok"))),
        Verdict::Broke(why) | Verdict::Partial(why) => {
            output.say(format_args!("{} {file}\n{why}", paint.bad("failed")))
        }
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
    fn fields_in_another_order_are_another_answer() {
        let case = |output: &str| -> Case {
            let text = format!(r#"{{"input": {{"arguments": {{}}}}, "outcome": {{"output": {output}}}}}"#);
            serde_json::from_str(&text).expect("a case")
        };
        let recorded = case(r#"{"a": 1, "b": 2}"#);
        assert!(matches!(compared(&recorded, recorded.clone()), Ok(Verdict::Holds)));
        let Ok(Verdict::Differs { diff, .. }) = compared(&recorded, case(r#"{"b": 2, "a": 1}"#)) else {
            panic!("the texts are different");
        };
        assert!(diff.contains("\n+") && diff.contains("\n-"), "{diff}");
    }

    #[test]
    fn that_nothing_was_played_is_a_failure_that_names_whose_cases_there_are() {
        let path = PluginPath::new("main/a").expect("valid");
        let failure = none_played(&path, &BTreeSet::from(["acme/a".to_owned(), "acme/b".to_owned()]));
        assert!(failure.message.contains("acme/a, acme/b"), "{failure}");
        assert!(failure.next.expect("advice").contains("--path acme/a"));
    }

    #[test]
    fn advice_fits_what_went_wrong() {
        let path = PluginPath::new("main/a").expect("valid");
        let advice = |tally: Tally| tally.ended(&path).expect_err("fails").next.expect("advice");
        assert!(Tally { hold: 1, ..Tally::default() }.ended(&path).is_ok());
        assert!(!advice(Tally { differ: 1, ..Tally::default() }).contains("--record"));
        assert!(!advice(Tally { broke: 1, ..Tally::default() }).contains("--bless"));
        let partial = advice(Tally { partial: 1, ..Tally::default() });
        assert!(!partial.contains("--bless") && partial.contains("less of it"), "{partial}");
        let both = advice(Tally { differ: 1, broke: 1, ..Tally::default() });
        assert!(both.contains("--bless") && both.contains("--record"), "{both}");
    }

    #[test]
    fn what_a_case_has_only_the_digest_of_is_named_with_its_size() {
        let case = |input: Value, answer: Value| -> Case {
            let calls = json!([{ "call": "http-client.send", "with": null, "answer": answer }]);
            let outcome = json!({ "output": 1 });
            serde_json::from_value(json!({ "input": input, "calls": calls, "outcome": outcome })).expect("a case")
        };
        let large = json!({ "media_type": "text/plain", "size": 2_000_000, "digest": "00" });
        let answer = json!({ "ok": { "status": 200, "headers": [], "body": large } });
        let told = left_out(&case(json!({ "arguments": {} }), answer)).expect("an answer");
        assert!(told.contains("`http-client.send`") && told.contains("2000000 bytes"), "{told}");
        let told = left_out(&case(json!({ "bytes": large }), Value::Null)).expect("an input");
        assert!(told.contains("its input"), "{told}");
        // Arguments may be of that form, and are what they are.
        assert_eq!(left_out(&case(json!({ "arguments": large }), Value::Null)), None);
    }

    #[test]
    fn a_file_that_is_no_case_is_told() {
        let place = tempfile::tempdir().expect("folder");
        let file = place.path().join("a.case");
        std::fs::write(&file, "{}").expect("file");
        assert!(read(&file).expect_err("no case").contains("a.case is not a case"));
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
