//! A kernel in memory, for tests: it keeps chains and payloads, answers needs, starts children and runs commands with
//! the little runner of [`runner`]. What it does next is the test's choice, so that any order of things can be tried.

#![allow(dead_code)]

pub mod runner;

use std::collections::{BTreeMap, BTreeSet};

use noetl_flow::decide::{
    Again, Cancel, Child, ChildEnded, ChildStarted, Command, Decided, Happening, Input, LoadError, Need, Orchestrator,
    Outcome, Owed, Parent, ReportInput, Resume, Start,
};
use noetl_flow::event::{Event, Recorded};
use noetl_flow::state::{self, State};
use sha2::{Digest, Sha256};

/// A playbook of which only the rest matters.
pub fn playbook(rest: &str) -> String {
    format!("apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: t, path: t}}\n{rest}")
}

/// A kernel that has run such a playbook to its end, and the execution.
pub fn run(rest: &str) -> (Kernel, u64) {
    let mut kernel = Kernel::with(&playbook(rest));
    let id = kernel.start("{}");
    kernel.run();
    (kernel, id)
}

/// Something the kernel has yet to do.
#[derive(Debug, Clone)]
pub enum Todo {
    Run(u64, Command),
    StartChild(u64, Child),
    /// A child has ended: parent, what to tell it.
    TellParent(u64, ChildEnded),
}

#[derive(Default)]
pub struct Kernel {
    pub orchestrator: Orchestrator,
    pub chains: BTreeMap<u64, Vec<Vec<u8>>>,
    pub payloads: BTreeMap<String, Vec<u8>>,
    /// Texts of playbooks by path.
    pub catalog: BTreeMap<String, String>,
    pub todo: Vec<Todo>,
    pub withdrawn: BTreeSet<(u64, String)>,
    pub wakes: BTreeMap<u64, Option<u64>>,
    pub ended: BTreeMap<u64, noetl_flow::decide::Ended>,
    pub needs: Vec<Need>,
    pub clock: u64,
    pub last_id: u64,
    pub lenient: bool,
    pub environment: Vec<(String, String)>,
    /// Forget every execution after each input.
    pub forgetful: bool,
    /// A line for everything that was decided.
    pub journal: Vec<String>,
}

pub fn digest(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

impl Kernel {
    pub fn new() -> Self {
        Self { clock: 1_000, last_id: 100, ..Self::default() }
    }

    pub fn with(text: &str) -> Self {
        let mut kernel = Self::new();
        kernel.catalog.insert("main".to_owned(), text.to_owned());
        kernel
    }

    pub fn request(&self, path: &str, payload: &str) -> Start {
        Start {
            tenant: "t".to_owned(),
            path: path.to_owned(),
            version: 1,
            digest: digest(self.catalog.get(path).map_or("", String::as_str).as_bytes()),
            payload: payload.to_owned(),
            parent: None,
            root: self.last_id + 1,
            pool: None,
            environment: self.environment.clone(),
            lenient: self.lenient,
            trace: None,
            requested_by: "tester".to_owned(),
            again: None,
            returns: None,
        }
    }

    pub fn start(&mut self, payload: &str) -> u64 {
        let request = self.request("main", payload);
        self.start_with(request)
    }

    pub fn start_with(&mut self, request: Start) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.feed(id, Happening::Start(Box::new(request)));
        id
    }

    /// Gives an input, answers every need, and does what is decided.
    pub fn feed(&mut self, execution: u64, what: Happening) -> Outcome {
        self.clock += 1;
        let input = Input { execution, time_ms: self.clock, what };
        self.journal.push(format!("> {execution} {}", name(&input.what)));
        for _ in 0..50 {
            let mut decisions = self.orchestrator.drive(vec![input.clone()]);
            match decisions.pop().expect("one decision an input").outcome {
                Outcome::Needs(need) => self.answer(execution, need),
                outcome => return self.follow(execution, outcome),
            }
        }
        panic!("the same need again and again: {:?}", self.needs);
    }

    fn answer(&mut self, execution: u64, need: Need) {
        self.needs.push(need.clone());
        match need {
            Need::State => {
                self.load(execution);
            }
            Need::Playbook(digest) => self.learn(&digest),
            Need::Value(digest) => {
                let payload = self.payloads.get(&digest).expect("payloads are kept before they are needed").clone();
                self.orchestrator.supply(execution, &digest, &payload);
            }
        }
    }

    fn learn(&mut self, wanted: &str) {
        let text = self.catalog.values().find(|text| digest(text.as_bytes()) == wanted).cloned();
        let _ = self.orchestrator.learn(wanted, &text.unwrap_or_default());
    }

    pub fn load(&mut self, execution: u64) -> Owed {
        let chain = self.chains.get(&execution).cloned().unwrap_or_default();
        match self.orchestrator.load(execution, None, &chain) {
            Ok(owed) => owed,
            Err(LoadError::Playbook(digest)) => {
                self.learn(&digest);
                self.orchestrator.load(execution, None, &chain).expect("the playbook is known now")
            }
            Err(broken) => panic!("{broken:?}"),
        }
    }

    fn follow(&mut self, execution: u64, outcome: Outcome) -> Outcome {
        match &outcome {
            Outcome::Decided(decided) => self.commit(execution, decided),
            Outcome::Ignored(reason) => self.journal.push(format!("  ignored: {reason}")),
            Outcome::Refused(reason) => self.journal.push(format!("  refused: {reason}")),
            Outcome::Needs(_) => unreachable!("needs were answered"),
        }
        if self.forgetful {
            self.orchestrator.evict(&[execution]);
        }
        outcome
    }

    fn commit(&mut self, execution: u64, decided: &Decided) {
        for bytes in &decided.keep {
            self.payloads.insert(digest(bytes), bytes.clone());
        }
        self.write_journal(decided);
        if !decided.events.is_empty() {
            self.chains.entry(execution).or_default().push(decided.events.clone());
        }
        for command in &decided.commands {
            self.todo.push(Todo::Run(execution, command.clone()));
        }
        for child in &decided.children {
            self.todo.push(Todo::StartChild(execution, child.clone()));
        }
        for id in &decided.withdrawn {
            self.withdrawn.insert((execution, id.clone()));
        }
        self.wakes.insert(execution, decided.wake_at);
        for orphan in &decided.orphaned {
            let cancel = Cancel { reason: "its parent ended".to_owned(), requested_by: "kernel".to_owned() };
            self.feed(*orphan, Happening::Cancel(cancel));
        }
        if let Some(ended) = &decided.ended {
            assert!(self.ended.insert(execution, ended.clone()).is_none(), "execution {execution} ended twice");
            let parent = self.state_of(execution).started.parent;
            if let Some(parent) = parent {
                let news = ChildEnded {
                    command: parent.command.to_string(),
                    execution,
                    status: ended.status.clone(),
                    body: ended.body.clone(),
                };
                self.todo.push(Todo::TellParent(parent.execution.parse().expect("an id"), news));
            }
        }
    }

    fn write_journal(&mut self, decided: &Decided) {
        let lines = String::from_utf8(decided.events.clone()).expect("events are JSON");
        self.journal.extend(lines.lines().map(|line| format!("  {line}")));
        for bytes in &decided.keep {
            self.journal.push(format!("  keep {} bytes as {}", bytes.len(), &digest(bytes)[..12]));
        }
        for command in &decided.commands {
            let timeout = command.timeout_ms.map_or(String::new(), |ms| format!(" within {ms} ms"));
            let inputs =
                String::from_utf8_lossy(command.task.split(|b| *b == b'\n').nth(1).unwrap_or_default()).into_owned();
            self.journal.push(format!("  run {} in {}{timeout}: {inputs}", command.id, command.pool));
        }
        for child in &decided.children {
            let returns = child.returns.as_ref().map_or(String::new(), |step| format!(" returning {step}"));
            self.journal.push(format!("  start {} for {} with {}{returns}", child.path, child.command, child.payload));
        }
        self.journal.extend(decided.withdrawn.iter().map(|id| format!("  withdraw {id}")));
        self.journal.extend(decided.orphaned.iter().map(|id| format!("  orphan {id}")));
        self.journal.extend(decided.wake_at.map(|at| format!("  wake at {at}")));
        self.journal.extend(decided.ended.iter().map(|ended| format!("  {}: {}", ended.status, ended.body)));
    }

    /// Does the thing at a place of the list.
    pub fn perform(&mut self, place: usize) {
        match self.todo.remove(place) {
            Todo::Run(execution, command) => {
                if !self.withdrawn.contains(&(execution, command.id.clone())) {
                    let report = self.work(execution, &command);
                    self.feed(execution, Happening::Report(report));
                }
            }
            Todo::StartChild(parent, child) => self.start_child(parent, &child),
            Todo::TellParent(parent, news) => {
                self.feed(parent, Happening::ChildEnded(news));
            }
        }
    }

    fn start_child(&mut self, parent: u64, child: &Child) {
        let mut request = self.request(&child.path, &child.payload);
        request.parent = Some(Parent { execution: parent, command: child.command.clone() });
        request.root = parent;
        request.returns = child.returns.clone();
        self.last_id += 1;
        let id = self.last_id;
        self.feed(
            parent,
            Happening::ChildStarted(ChildStarted { command: child.command.clone(), execution: id, by: None }),
        );
        self.feed(id, Happening::Start(Box::new(request)));
    }

    /// Runs a command, without telling anybody.
    pub fn work(&mut self, execution: u64, command: &Command) -> ReportInput {
        let (report, bulk) = runner::run(execution, self.clock, command, &self.payloads);
        let stored = bulk.map(|bulk| {
            let key = digest(&bulk);
            self.payloads.insert(key.clone(), bulk.clone());
            (key, bulk.len() as u64)
        });
        ReportInput { command: command.id.clone(), body: serde_json::to_vec(&report).expect("JSON"), stored }
    }

    /// Does everything, in the order it came up.
    pub fn run(&mut self) {
        while !self.todo.is_empty() {
            self.perform(0);
        }
    }

    pub fn resume(&mut self, execution: u64, step: &str, value: &str) -> Outcome {
        let (step, value) = (step.to_owned(), value.to_owned());
        self.feed(execution, Happening::Resume(Resume { step, value, requested_by: "tester".to_owned() }))
    }

    pub fn cancel(&mut self, execution: u64) -> Outcome {
        let cancel = Cancel { reason: "enough".to_owned(), requested_by: "tester".to_owned() };
        self.feed(execution, Happening::Cancel(cancel))
    }

    /// Goes on from a failed execution, in a new one.
    pub fn again(&mut self, execution: u64, step: Option<&str>) -> u64 {
        let mut request = self.request("main", "{}");
        let segments = self.chains[&execution].clone();
        request.again = Some(Again { execution, step: step.map(str::to_owned), segments });
        self.start_with(request)
    }

    pub fn events(&self, execution: u64) -> Vec<Recorded> {
        let lines =
            self.chains.get(&execution).into_iter().flatten().flat_map(|segment| segment.split(|b| *b == b'\n'));
        lines.filter(|line| !line.is_empty()).map(|line| serde_json::from_slice(line).expect("an event")).collect()
    }

    /// The state, folded from the chain.
    pub fn state_of(&self, execution: u64) -> State {
        let mut state = None;
        for segment in &self.chains[&execution] {
            state::fold_lines(&mut state, segment).expect("the chain folds");
        }
        state.expect("the chain has events")
    }

    pub fn status(&self, execution: u64) -> &str {
        self.ended.get(&execution).map_or("running", |ended| ended.status.as_str())
    }

    /// The result of a step, as the chain has it.
    pub fn result(&self, execution: u64, step: &str) -> serde_json::Value {
        let state = self.state_of(execution);
        let result = state.step(step).and_then(|step| step.result.as_ref());
        result.map(|result| result.data.value.clone()).unwrap_or_default()
    }

    /// Names of the steps that were entered, in order.
    pub fn entered(&self, execution: u64) -> Vec<String> {
        let entered = self.events(execution).into_iter().filter_map(|recorded| match recorded.event {
            Event::Entered { step, .. } => Some(step),
            _ => None,
        });
        entered.collect()
    }

    pub fn error(&self, execution: u64) -> noetl_flow::event::Failure {
        let finished = self.state_of(execution).finished.expect("it has ended");
        finished.error.expect("it has failed")
    }
}

fn name(what: &Happening) -> String {
    match what {
        Happening::Start(start) => format!("start {} {}", start.path, start.payload),
        Happening::Report(report) => {
            let body = String::from_utf8_lossy(&report.body).into_owned();
            let body = if body.len() > 300 { format!("({} bytes)", body.len()) } else { body };
            format!("report {} {body}", report.command)
        }
        Happening::ChildStarted(started) => format!("child started {} {}", started.command, started.execution),
        Happening::ChildEnded(ended) => format!("child ended {} {} {}", ended.command, ended.execution, ended.status),
        Happening::Wake => "wake".to_owned(),
        Happening::Lost(command, safe) => format!("lost {command} {}", if *safe { "safe" } else { "unsafe" }),
        Happening::Resume(resume) => format!("resume {} {}", resume.step, resume.value),
        Happening::Cancel(cancel) => format!("cancel {}", cancel.reason),
        Happening::Abort(reason) => format!("abort {reason}"),
    }
}
