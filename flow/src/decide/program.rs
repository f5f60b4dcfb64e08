//! A playbook made ready to be run: templates compiled, what they refer to found, arcs a graph, the constant part of
//! every command written once.
//!
//! It is made once for a digest and shared by all executions of it. A playbook that was parsed has only templates that
//! compile; should one not, the playbook is refused as a whole.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json};

use super::graph::{Graph, Place};
use super::variables::extended;
use crate::event::Data;
use crate::keychain::Keychain;
use crate::playbook::{Executor, Limit, Metadata, Playbook, Step, Work};
use crate::task::aliases::may_name;
use crate::task::{PREVIOUS, Spec, TOLD, Tool, VARIABLES, WHOLE, reads_context};
use crate::template::{Guard, KEYCHAIN, Reading, References, RenderError, Tree, Value, is_template, keychain};

/// Fields of a result by which a guard can tell a failure.
const FAILURE_FIELDS: [&str; 6] = ["status", "error", "http", "status_code", "exit_code", "stderr"];

#[derive(Debug)]
pub struct Program {
    pub playbook: Playbook,
    pub graph: Graph,
    places: BTreeMap<String, Place>,
    steps: Vec<Prepared>,
    /// Environment variables that are referred to; nothing when that cannot be told.
    pub environment: Option<BTreeSet<String>>,
    /// What templates see as `keychain`, if the playbook declares anything.
    pub keychain: Option<Value>,
    /// Some step waits for a time, or the execution as a whole.
    pub has_timers: bool,
}

/// A step made ready.
#[derive(Debug)]
pub struct Prepared {
    pub when: Option<Condition>,
    pub admit: Vec<(Option<Condition>, bool)>,
    pub set: Vec<(String, Binding)>,
    pub arcs: Vec<PreparedArc>,
    pub over: Option<Binding>,
    pub limit: Option<Binding>,
    pub work: PreparedWork,
    /// The claim of a cursor.
    pub claim: Option<TaskLine>,
    pub is_pipeline: bool,
    /// Its result may be that of another step: it reads a reference, or waits for a playbook.
    pub hands_on: bool,
    /// It is a loop, and each iteration a pipeline.
    pub each: bool,
}

#[derive(Debug)]
pub struct PreparedArc {
    pub to: Place,
    pub when: Option<Condition>,
    pub set: Vec<(String, Binding)>,
}

#[derive(Debug)]
pub enum PreparedWork {
    Task(TaskLine),
    Child(Box<ChildCall>),
    Park(Option<Binding>),
}

/// The constant part of a command.
#[derive(Debug)]
pub struct TaskLine {
    /// The [`Spec`] and the end of its line.
    pub line: Vec<u8>,
    pub kinds: Vec<String>,
    /// Whether it may run again when nobody knows what became of it.
    pub retry_safe: Option<bool>,
    pub refers: References,
    /// Code of it may look for results of steps by itself.
    pub reads_context: bool,
}

/// A step that is another playbook, and nothing besides.
#[derive(Debug)]
pub struct ChildCall {
    pub path: Binding,
    pub version: Option<Binding>,
    pub payload: Binding,
    pub answer: ChildAnswer,
    pub timeout_ms: Option<u64>,
}

/// What a step that starts a playbook takes for its result.
#[derive(Debug, PartialEq, Eq)]
pub enum ChildAnswer {
    /// That it was started.
    Started,
    /// The child's own result.
    Output,
    /// The result of one of the child's steps.
    Step(String),
}

/// A guard.
#[derive(Debug)]
pub struct Condition {
    pub guard: Guard,
    pub refers: References,
    /// It asks how the step ended, so it is asked after a failure too.
    pub sees_failure: bool,
    /// The family of names it knows events by, if it names one.
    pub family: Option<Family>,
}

/// What a guard calls the end of a step: `call.done`, `step.done` or `loop.done`. They mean the same, and which one it
/// hears is decided by the one it asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    Call,
    Step,
    Loop,
}

/// A value with templates in it.
#[derive(Debug)]
pub struct Binding {
    pub tree: Tree,
    pub refers: References,
    pub raw: Json,
}

impl Program {
    pub fn new(playbook: Playbook) -> Result<Self, String> {
        let graph = Graph::new(&playbook);
        let places = (0..).zip(&playbook.steps).map(|(place, step)| (step.name.clone(), place)).collect();
        let mut steps = Vec::with_capacity(playbook.steps.len());
        for step in &playbook.steps {
            let prepared =
                prepare(step, &places, &playbook.keychain).map_err(|error| format!("step `{}`: {error}", step.name))?;
            steps.push(prepared);
        }
        let environment = environment(&steps, &playbook.workload);
        let waits = |prepared: &Prepared| !matches!(prepared.work, PreparedWork::Task(_));
        let has_timers = playbook.executor.timeout_ms.is_some() || steps.iter().any(waits);
        let keychain = (!playbook.keychain.is_empty()).then(|| keychain(&playbook.keychain));
        Ok(Self { graph, places, steps, environment, keychain, has_timers, playbook })
    }

    /// Of a playbook that cannot be run.
    pub fn none(digest: &str) -> Self {
        let playbook = Playbook {
            digest: digest.to_owned(),
            metadata: Metadata::default(),
            workload: Map::new(),
            executor: Executor::default(),
            entry: String::new(),
            steps: Vec::new(),
            keychain: Keychain::new(),
            schedule: None,
        };
        Self::new(playbook).expect("there is nothing in it that could be wrong")
    }

    pub fn place(&self, name: &str) -> Option<Place> {
        self.places.get(name).copied()
    }

    pub fn step(&self, place: Place) -> &Step {
        &self.playbook.steps[place as usize]
    }

    pub fn name(&self, place: Place) -> &str {
        &self.playbook.steps[place as usize].name
    }

    pub fn prepared(&self, place: Place) -> &Prepared {
        &self.steps[place as usize]
    }

    /// Whether a step's result is read as that of a pipeline: its own, or one that it has from elsewhere, which is told by
    /// its shape.
    pub fn is_pipeline(&self, name: &str, result: &Json) -> bool {
        let Some(place) = self.place(name) else { return false };
        let prepared = self.prepared(place);
        prepared.is_pipeline || (prepared.hands_on && is_by_label(result))
    }

    /// How a step's result is read.
    pub fn reading<'a>(&'a self, name: &str, data: &'a Data) -> Reading<'a> {
        let Some(place) = self.place(name) else { return Reading::default() };
        let prepared = self.prepared(place);
        let pipeline = self.is_pipeline(name, &data.value);
        Reading {
            pipeline,
            by_shape: pipeline && prepared.hands_on,
            each: prepared.each,
            reference: data.reference.as_ref(),
            store: self.step(place).store.as_deref(),
        }
    }

    /// What a runner is given for the step, or for the claim of its cursor; nothing if no runner is.
    pub fn task_of(&self, place: Place, iteration: Option<u32>) -> Option<&TaskLine> {
        match (&self.prepared(place).claim, &self.prepared(place).work) {
            (Some(claim), _) if iteration.is_none() => Some(claim),
            (_, PreparedWork::Task(task)) => Some(task),
            _ => None,
        }
    }

    pub fn child(&self, place: Place) -> Option<&ChildCall> {
        match &self.prepared(place).work {
            PreparedWork::Child(call) => Some(call),
            _ => None,
        }
    }
}

fn prepare(step: &Step, places: &BTreeMap<String, Place>, keychain: &Keychain) -> Result<Prepared, String> {
    let said = |error: RenderError| error.to_string();
    let condition = |when: &Json| condition(when, &step.name);
    let when = step.when.as_ref().map(condition).transpose().map_err(said)?;
    let admit = step.admit.iter().map(|admit| Ok((admit.when.as_ref().map(condition).transpose()?, admit.allow)));
    let admit = admit.collect::<Result<_, RenderError>>().map_err(said)?;
    let mut arcs = Vec::with_capacity(step.next.arcs.len());
    for arc in &step.next.arcs {
        let to = *places.get(&arc.step).ok_or_else(|| format!("an arc leads to `{}`, which is no step", arc.step))?;
        let when = arc.when.as_ref().map(condition).transpose().map_err(said)?;
        arcs.push(PreparedArc { to, when, set: bindings(&arc.set).map_err(said)? });
    }
    let repeat = step.repeat.as_ref();
    let is_list = matches!(&step.work, Work::Task(spec) if spec.pipeline);
    let over = repeat.filter(|repeat| repeat.cursor.is_none()).map(|repeat| binding(&repeat.over));
    let limit = match repeat.and_then(|repeat| repeat.max_in_flight.as_ref()) {
        Some(Limit::Number(number)) => Some(binding(&Json::from(*number))),
        Some(Limit::Template(text)) => Some(binding(&Json::from(text.as_str()))),
        None => None,
    };
    let claim = repeat.and_then(|repeat| repeat.cursor.as_ref()).map(|cursor| {
        let spec = Spec {
            step: step.name.clone(),
            tools: vec![cursor.claim.clone()],
            pipeline: false,
            output_select: Vec::new(),
            keep: false,
            keychain: Keychain::new(),
        };
        task_line(&spec, keychain)
    });
    Ok(Prepared {
        when,
        admit,
        set: bindings(&step.set).map_err(said)?,
        arcs,
        over: over.transpose().map_err(said)?,
        limit: limit.transpose().map_err(said)?,
        work: work(step, keychain).map_err(said)?,
        claim,
        is_pipeline: repeat.is_none() && is_list,
        hands_on: repeat.is_none() && hands_on(&step.work),
        each: repeat.is_some() && is_list,
    })
}

fn work(step: &Step, keychain: &Keychain) -> Result<PreparedWork, RenderError> {
    let spec = match &step.work {
        Work::Park(park) => {
            let message = park.message.as_ref().map(|message| binding(&Json::from(message.as_str())));
            return message.transpose().map(PreparedWork::Park);
        }
        Work::Task(spec) => spec,
    };
    match spec.tools.as_slice() {
        // With rules or variables of its own it is the runner's business, like a pipeline; and so it is while a template
        // has to tell what is wanted of it, or how long it is waited for.
        [tool]
            if tool.kind == "playbook"
                && !spec.pipeline
                && !RETURNS.iter().any(|name| tool.config.get(*name).is_some_and(has_template))
                && tool.rules.is_empty()
                && tool.set.is_empty()
                && (!tool.input.contains_key(WHOLE) || tool.input.len() == 1) =>
        {
            child_call(tool).map(|call| PreparedWork::Child(Box::new(call)))
        }
        _ => Ok(PreparedWork::Task(task_line(spec, keychain))),
    }
}

/// What says whether and how long a child is waited for, and for which of its results.
const RETURNS: [&str; 6] = ["return_step", "result_step", "return_result", "wait", "timeout", "timeout_seconds"];

fn has_template(value: &Json) -> bool {
    value.as_str().is_some_and(is_template)
}

fn hands_on(work: &Work) -> bool {
    let Work::Task(spec) = work else { return false };
    !spec.pipeline && spec.tools.iter().any(|tool| matches!(tool.kind.as_str(), "artifact" | "playbook"))
}

/// Whether a result has the shape of a pipeline's: maps by their labels, and nothing besides but what is told of a child.
fn is_by_label(result: &Json) -> bool {
    let Json::Object(fields) = result else { return false };
    // An extract that lost fields does not tell.
    if fields.contains_key("_omitted") {
        return false;
    }
    let told = |name: &str| matches!(name, "execution_id" | "status") || name.starts_with('_');
    let mut labels = fields.iter().filter(|(name, _)| !told(name)).peekable();
    labels.peek().is_some() && labels.all(|(_, value)| value.is_object())
}

fn child_call(tool: &Tool) -> Result<ChildCall, RenderError> {
    let config = |name: &str| tool.config.get(name).filter(|value| !value.is_null());
    let payload = match (config("payload"), tool.input.get(WHOLE)) {
        (Some(payload), _) if tool.input.is_empty() => payload.clone(),
        (_, Some(whole)) => whole.clone(),
        _ => Json::Object(tool.input.clone()),
    };
    let named = |name: &str| config(name).and_then(Json::as_str).map(str::to_owned);
    let says = |name: &str| config(name).map(|flag| flag != &Json::Bool(false));
    let answer = match named("return_step").or_else(|| named("result_step")) {
        _ if says("wait") == Some(false) => ChildAnswer::Started,
        Some(step) => ChildAnswer::Step(step),
        None if [says("return_result"), says("wait")].contains(&Some(true)) => ChildAnswer::Output,
        None => ChildAnswer::Started,
    };
    Ok(ChildCall {
        path: binding(config("path").or(config("catalog_id")).unwrap_or(&Json::Null))?,
        version: config("version").map(binding).transpose()?,
        payload: binding(&payload)?,
        answer,
        timeout_ms: tool.timeout_ms,
    })
}

fn task_line(spec: &Spec, keychain: &Keychain) -> TaskLine {
    let mut kinds: Vec<String> = spec.tools.iter().map(kind_of).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let mut refers = References::default();
    let mut may_look = false;
    for tool in &spec.tools {
        for map in [&tool.config, &tool.input, &tool.set] {
            refers_to_map(&mut refers, map);
        }
        for rule in &tool.rules {
            rule.when.iter().for_each(|when| refers.add_guard(when));
            refers_to_map(&mut refers, &rule.set);
            rule.delay().into_iter().for_each(|delay| refers.add_text(delay));
        }
        // Code reads the execution's variables without a template, and what a template makes of it nobody knows yet.
        let text = |name: &str| tool.config.get(name).and_then(Json::as_str);
        let may_read = |code: &str| code.contains(VARIABLES) || is_template(code);
        let reads = reads_context(&tool.kind, text("code"));
        if reads || (TOLD.contains(&tool.kind.as_str()) && text("code").is_none_or(may_read)) {
            refers.paths.insert(vec![VARIABLES.to_owned()]);
        }
        may_look |= reads;
        // To set a field of a variable, the runner needs what the variable is.
        let keys = tool.set.keys().chain(tool.rules.iter().flat_map(|rule| rule.set.keys()));
        refers.paths.extend(keys.filter_map(|key| extended(key)).map(|name| vec![name.to_owned()]));
    }
    let names = refers.names().any(|name| name == KEYCHAIN) || spec.tools.iter().any(may_name);
    let spec = match names && !keychain.is_empty() {
        true => Cow::Owned(Spec { keychain: keychain.clone(), ..spec.clone() }),
        false => Cow::Borrowed(spec),
    };
    let mut line = serde_json::to_vec(&spec).expect("a spec has text keys only");
    line.push(b'\n');
    TaskLine { line, kinds, retry_safe: retry_safe(&spec.tools), refers, reads_context: may_look }
}

/// The kind of a tool, and of a plugin by its path which one; marked if this call of it may be made again.
fn kind_of(tool: &Tool) -> String {
    let plugin = tool.config.get("plugin").filter(|_| tool.kind == "wasm");
    let path = plugin.and_then(|plugin| plugin.as_str().or_else(|| plugin.get("path")?.as_str()));
    match path.filter(|path| !is_template(path)) {
        Some(path) => format!("wasm:{path}"),
        None if may_repeat(tool) == Some(true) => format!("{}{REPEATABLE}", tool.kind),
        None => tool.kind.clone(),
    }
}

/// Follows the kind of a tool whose call may be made again, whatever the tool says of itself.
const REPEATABLE: &str = ":again";

/// Whether a call with an unknown outcome may be made again, as far as the playbook tells: by its word, and for HTTP by the
/// method, since a server that has done these twice has done them once.
fn may_repeat(tool: &Tool) -> Option<bool> {
    const HARMLESS: [&str; 6] = ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"];
    const SENDS: [&str; 7] = ["json", "body", "form", "data", "payload", "text", "body_ref"];
    if tool.retry_safe.is_some() || tool.kind != "http" {
        return tool.retry_safe;
    }
    let harmless = match tool.config.get("method") {
        None | Some(Json::Null) => !SENDS.iter().any(|name| tool.config.contains_key(*name)),
        Some(method) => method
            .as_str()
            .is_some_and(|method| HARMLESS.iter().any(|harmless| harmless.eq_ignore_ascii_case(method.trim()))),
    };
    harmless.then_some(true)
}

/// What the playbook says of all tools together: one that must not run again decides.
fn retry_safe(tools: &[Tool]) -> Option<bool> {
    let said: Vec<Option<bool>> = tools.iter().map(may_repeat).collect();
    if said.contains(&Some(false)) {
        return Some(false);
    }
    said.iter().all(|said| *said == Some(true)).then_some(true)
}

fn refers_to_map(refers: &mut References, map: &Map<String, Json>) {
    for (name, value) in map {
        refers.add_text(name);
        refers.add_json(value);
    }
}

fn condition(when: &Json, step: &str) -> Result<Condition, RenderError> {
    let mut refers = References::default();
    refers.add_guard(when);
    let text = when.as_str().map_or_else(|| when.to_string(), str::to_owned);
    let sees_failure = refers.paths.iter().any(|path| sees_failure(path, step));
    Ok(Condition { guard: Guard::compile(when)?, refers, sees_failure, family: family(&text) })
}

fn family(text: &str) -> Option<Family> {
    let names = |word: &str| text.contains(&format!("'{word}.")) || text.contains(&format!("\"{word}."));
    let families = [("loop", Family::Loop), ("step", Family::Step), ("call", Family::Call)];
    families.into_iter().find(|(word, _)| names(word)).map(|(_, family)| family)
}

/// Whether a variable says how this step ended.
fn sees_failure(path: &[String], step: &str) -> bool {
    let fields = match path {
        [root, ..] if root == "event" || root == "error" => return true,
        [root, fields @ ..] if root == "output" || root == PREVIOUS || root == step => fields,
        [root, name, fields @ ..] if root == "steps" && name == step => fields,
        _ => return false,
    };
    fields.iter().any(|field| FAILURE_FIELDS.contains(&field.as_str()))
}

fn binding(json: &Json) -> Result<Binding, RenderError> {
    let mut refers = References::default();
    refers.add_json(json);
    Ok(Binding { tree: Tree::compile(json)?, refers, raw: json.clone() })
}

fn bindings(map: &Map<String, Json>) -> Result<Vec<(String, Binding)>, RenderError> {
    map.iter().map(|(name, json)| Ok((name.clone(), binding(json)?))).collect()
}

fn environment(steps: &[Prepared], workload: &Map<String, Json>) -> Option<BTreeSet<String>> {
    let mut all = References::default();
    let bound = steps.iter().flat_map(|step| {
        let arcs = step.arcs.iter().flat_map(|arc| arc.set.iter().map(|(_, binding)| binding));
        let child = match &step.work {
            PreparedWork::Child(call) => Some([&call.path, &call.payload]),
            _ => None,
        };
        let own = step.set.iter().map(|(_, binding)| binding).chain(&step.over).chain(&step.limit);
        own.chain(arcs).chain(child.into_iter().flatten())
    });
    bound.for_each(|binding| all.merge(&binding.refers));
    workload.values().for_each(|value| all.add_json(value));
    for step in steps {
        let arcs = step.arcs.iter().filter_map(|arc| arc.when.as_ref());
        arcs.chain(&step.when).for_each(|condition| all.merge(&condition.refers));
        let tasks = match &step.work {
            PreparedWork::Task(task) => Some(task),
            _ => None,
        };
        tasks.into_iter().chain(&step.claim).for_each(|task| all.merge(&task.refers));
    }
    let of_env = || all.paths.iter().filter(|path| path[0] == "env");
    let bounded = !all.whole_context && of_env().all(|path| path.len() > 1);
    bounded.then(|| of_env().map(|path| path[1].clone()).collect())
}
