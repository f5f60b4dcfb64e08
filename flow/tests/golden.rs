//! Golden files of decisions.
//!
//! A case is a playbook in `golden/` with a script in its comments, and everything that is decided while it is played:
//! inputs (`>`), events, commands, effects. `BLESS=1` writes the expected files anew; the difference is for people to
//! read.
//!
//! Lines of the script begin with `#!`. `payload`, `environment`, `lenient` and `forgetful` are about the start. The others
//! are done one after the other, each when there is nothing else left to do: `resume STEP JSON`, `wake MS` (after so long),
//! `cancel`, `abort TEXT`, `again [STEP]`, `twice COMMAND` (its report comes again). `hold COMMAND` keeps a command from
//! being run until `lose COMMAND safe|unsafe` or `release COMMAND`.

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use common::{Kernel, Todo};
use noetl_flow::decide::{Happening, ReportInput};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

#[test]
fn decisions_are_as_they_were() {
    let bless = std::env::var_os("BLESS").is_some();
    let mut wrong = Vec::new();
    let mut cases: Vec<PathBuf> =
        std::fs::read_dir(FOLDER).expect("the folder").map(|e| e.expect("a file").path()).collect();
    cases.retain(|path| path.extension().is_some_and(|ending| ending == "yaml"));
    cases.sort();
    assert!(cases.len() >= 20, "there are {} cases", cases.len());
    for case in &cases {
        let played = play(case);
        let expected = case.with_extension("events");
        if bless {
            std::fs::write(&expected, &played).expect("written");
        } else if std::fs::read_to_string(&expected).unwrap_or_default() != played {
            wrong.push(first_difference(case, &std::fs::read_to_string(&expected).unwrap_or_default(), &played));
        }
    }
    assert!(wrong.is_empty(), "{}\nrun with BLESS=1 and read the difference", wrong.join("\n"));
}

/// The same decisions are made by an orchestrator that forgets everything after every input.
#[test]
fn decisions_do_not_depend_on_memory() {
    for case in std::fs::read_dir(FOLDER).expect("the folder").map(|entry| entry.expect("a file").path()) {
        if case.extension().is_some_and(|ending| ending == "yaml") {
            let mut forgetful = Player::new(&case);
            forgetful.kernel.forgetful = true;
            let mut usual = Player::new(&case);
            assert_eq!(usual.play(), forgetful.play(), "{}", case.display());
        }
    }
}

fn play(case: &Path) -> String {
    Player::new(case).play()
}

fn first_difference(case: &Path, expected: &str, played: &str) -> String {
    let same = expected.lines().zip(played.lines()).take_while(|(one, other)| one == other).count();
    let line = |text: &str| text.lines().nth(same).unwrap_or("(end)").to_owned();
    format!("{}:{}\n  expected {}\n  decided  {}", case.display(), same + 1, line(expected), line(played))
}

struct Player {
    kernel: Kernel,
    script: Vec<String>,
    held: BTreeMap<String, Option<Todo>>,
    reports: BTreeMap<String, ReportInput>,
    current: u64,
}

impl Player {
    fn new(case: &Path) -> Self {
        let text = std::fs::read_to_string(case).expect("a case");
        let mut kernel = Kernel::with(&text);
        for entry in std::fs::read_dir(Path::new(FOLDER).join("children")).expect("the folder") {
            let path = entry.expect("a file").path();
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            kernel.catalog.insert(name, std::fs::read_to_string(path).expect("a playbook"));
        }
        let script = text.lines().filter_map(|line| line.strip_prefix("#! ")).map(str::to_owned).collect();
        Self { kernel, script, held: BTreeMap::new(), reports: BTreeMap::new(), current: 0 }
    }

    fn play(&mut self) -> String {
        let mut payload = "{}".to_owned();
        let mut steps = Vec::new();
        for line in std::mem::take(&mut self.script) {
            match line.split_once(' ').unwrap_or((line.as_str(), "")) {
                ("payload", rest) => payload = rest.to_owned(),
                ("lenient", _) => self.kernel.lenient = true,
                ("environment", rest) => {
                    let (name, value) = rest.split_once('=').expect("NAME=VALUE");
                    self.kernel.environment.push((name.to_owned(), value.to_owned()));
                }
                ("hold", command) => {
                    self.held.insert(command.to_owned(), None);
                }
                _ => steps.push(line),
            }
        }
        self.current = self.kernel.start(&payload);
        self.work();
        for line in steps {
            self.step(&line);
            self.work();
        }
        let mut journal = self.kernel.journal.join("\n");
        journal.push('\n');
        journal
    }

    fn step(&mut self, line: &str) {
        let words: Vec<&str> = line.splitn(3, ' ').collect();
        let id = self.current;
        match words.as_slice() {
            ["resume", step, value] => drop(self.kernel.resume(id, step, value)),
            ["wake", after] => {
                self.kernel.clock += after.parse::<u64>().expect("milliseconds");
                self.kernel.feed(id, Happening::Wake);
            }
            ["cancel"] => drop(self.kernel.cancel(id)),
            ["abort", reason @ ..] => drop(self.kernel.feed(id, Happening::Abort(reason.join(" ")))),
            ["again"] => self.current = self.kernel.again(id, None),
            ["again", step] => self.current = self.kernel.again(id, Some(step)),
            ["twice", command] => drop(self.kernel.feed(id, Happening::Report(self.reports[*command].clone()))),
            ["lose", command, how] => {
                self.held.remove(*command);
                self.kernel.feed(id, Happening::Lost((*command).to_owned(), *how == "safe"));
            }
            ["release", command] => {
                let held = self.held.remove(*command).flatten().expect("the command is held");
                self.kernel.todo.push(held);
            }
            other => panic!("no such line in a script: {other:?}"),
        }
    }

    fn work(&mut self) {
        while let Some(todo) = self.kernel.todo.first().cloned() {
            assert!(self.kernel.journal.len() < 5_000, "the case does not come to an end");
            if let Todo::Run(execution, command) = &todo {
                if let Some(held) = self.held.get_mut(&command.id) {
                    *held = Some(self.kernel.todo.remove(0));
                    continue;
                }
                let report = self.kernel.work(*execution, command);
                self.reports.insert(command.id.clone(), report);
            }
            self.kernel.perform(0);
        }
    }
}
