//! The work of a step, as it goes out: a command for a runner, or another playbook to start.
//!
//! What a command carries is computed from the state, so it can be made again after a restart. (Values that other
//! branches have set in the meantime are then seen as they are now.)

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use super::api::{Child, Command};
use super::graph::Place;
use super::program::{ChildAnswer, ChildCall, PreparedWork, TaskLine};
use super::scope::{Locals, Scope, Stop};
use super::turn::{Missing, Turn};
use crate::event::{Data, Event, Failure, Reported};
use crate::ids::CommandId;
use crate::state::{Open, Step, shown};
use crate::task::Partial;
use crate::template::{References, from_json};

/// Where commands run when nobody says otherwise.
const POOL: &str = "shared";

/// An iteration, as its work sees it.
pub(super) struct Coordinate<'a> {
    pub iterator: &'a str,
    pub index: u32,
    /// Nothing for a cursor, whose end is not known.
    pub total: Option<u32>,
    pub item: Cow<'a, Json>,
    /// Where the item is, when what is at hand is an extract of it.
    pub partial: Option<Partial>,
}

/// [`crate::task::Inputs`] of values that stay where they are.
#[derive(Serialize, Default)]
struct Inputs<'a> {
    context: BTreeMap<&'a str, Cow<'a, Json>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    partial: Vec<(Cow<'a, str>, Partial)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    results: Vec<(&'a str, bool)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    handed_on: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    each: Vec<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    stores: BTreeMap<&'a str, &'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    bind: BTreeMap<&'a str, Cow<'a, Json>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seal: Option<&'a str>,
}

impl Coordinate<'_> {
    /// Variables of the iteration.
    fn names(&self) -> [(&str, Cow<'_, Json>); 6] {
        let (index, total) = (json!(self.index), json!(self.total));
        let done = self.total.is_some_and(|total| self.index + 1 >= total);
        let position = json!({ "index": index, "first": self.index == 0, "length": total, "done": done });
        let mut iter = Map::new();
        iter.insert(self.iterator.to_owned(), self.item.clone().into_owned());
        iter.insert("_index".to_owned(), index.clone());
        iter.insert("_total".to_owned(), total.clone());
        iter.insert("index".to_owned(), index.clone());
        [
            ("iter", Cow::Owned(iter.into())),
            ("loop", Cow::Owned(position)),
            (self.iterator, Cow::Borrowed(&*self.item)),
            ("_index", Cow::Owned(index.clone())),
            ("_total", Cow::Owned(total)),
            ("loop_index", Cow::Owned(index)),
        ]
    }

    fn locals(&self) -> Locals<'_> {
        self.names().into_iter().map(|(name, value)| (name, from_json(&value))).collect()
    }
}

impl Turn<'_> {
    /// Issues the command of a step or of one of its iterations.
    pub fn issue(&mut self, place: Place, iteration: Option<u32>, attempt: u32) -> Result<(), Missing> {
        let program = self.program();
        let name = program.name(place);
        let Some(step) = self.state().step(name) else { return Ok(()) };
        let cause = step.repeat.as_ref().map_or(step.entered, |repeat| repeat.epoch);
        let id = CommandId { step: name.to_owned(), run: step.run, iteration, attempt };
        let item = match iteration {
            Some(index) => self.item_to_record(place, index)?,
            None => None,
        };
        match &program.prepared(place).work {
            PreparedWork::Child(call) => self.issue_child(place, call, id, item, cause),
            PreparedWork::Task(task) => {
                self.issue_task(place, task, id, item, cause);
                Ok(())
            }
            PreparedWork::Park(_) => Ok(()),
        }
    }

    /// Issues the claim of a cursor.
    pub fn issue_claim(&mut self, place: Place, attempt: u32) {
        let program = self.program();
        let name = program.name(place);
        let (Some(task), Some(step)) = (&program.prepared(place).claim, self.state().step(name)) else { return };
        let cause = step.repeat.as_ref().map_or(step.entered, |repeat| repeat.epoch);
        let id = CommandId { step: name.to_owned(), run: step.run, iteration: None, attempt };
        self.issue_task(place, task, id, None, cause);
    }

    fn issue_task(&mut self, place: Place, task: &TaskLine, id: CommandId, item: Option<Data>, cause: u64) {
        self.now.whole_contexts += u64::from(task.refers.whole_context);
        self.record(cause, Event::Issued { command: id.clone(), tools: task.kinds.clone(), item });
        let command = command(&self.scope(), place, &id);
        self.now.out.commands.extend(command);
    }

    fn issue_child(
        &mut self,
        place: Place,
        call: &ChildCall,
        id: CommandId,
        item: Option<Data>,
        cause: u64,
    ) -> Result<(), Missing> {
        let step = self.state().step(&id.step);
        let called = coordinate(&self.scope(), place, step, id.iteration, item.as_ref())
            .and_then(|coordinate| child(&self.scope(), call, &id, coordinate.as_ref()));
        let tools = vec!["playbook".to_owned()];
        match called {
            Ok(child) => {
                self.record(cause, Event::Issued { command: id, tools, item });
                self.now.out.children.push(child);
            }
            Err(Stop::Need(digest)) => return Err(Missing(digest)),
            Err(Stop::Failed(message)) => {
                let cause = self.record(cause, Event::Issued { command: id.clone(), tools, item });
                self.report(cause, place, failed(id, "template", message));
            }
        }
        Ok(())
    }
}

/// The report of a command that nobody worked on.
pub(super) fn failed(command: CommandId, code: &str, message: String) -> Reported {
    let error = Some(Failure { code: code.to_owned(), message, retryable: false });
    let (data, set, hard) = (Data::default(), Map::new(), code != "timeout");
    Reported { command, data, error, hard, set, plugin: None, digest: None, calls: 0, took: 0, execution: None }
}

/// A command that was issued, once more in full. Nothing for one that is a child.
pub(super) fn command(scope: &Scope<'_>, place: Place, id: &CommandId) -> Option<Command> {
    let task = scope.program.task_of(place, id.iteration)?;
    let step = scope.program.step(place);
    let standing = scope.state.step(&id.step);
    // The item was looked up when the command was issued, and if it is not at hand any more the event has it.
    let coordinate = coordinate(scope, place, standing, id.iteration, scope.state.open(id)?.item.as_ref()).ok()?;
    let mut inputs = Inputs { seal: scope.state.started.seal.as_deref(), ..Inputs::default() };
    fill(&mut inputs, scope, (place, task), coordinate.as_ref());
    let rows = step.repeat.as_ref().and_then(|repeat| repeat.cursor.as_ref()).filter(|_| id.iteration.is_none());
    inputs.context.extend(rows.map(|cursor| ("__frame_max_rows", Cow::Owned(cursor.max_rows.into()))));
    let mut bytes = task.line.clone();
    serde_json::to_writer(&mut bytes, &inputs).expect("inputs have text keys only");
    Some(Command {
        id: id.to_string(),
        pool: scope.state.started.pool.clone().unwrap_or_else(|| POOL.to_owned()),
        tools: task.kinds.clone(),
        task: bytes,
        timeout_ms: step.timeout_ms,
        retry_safe: task.retry_safe,
    })
}

fn fill<'a>(
    inputs: &mut Inputs<'a>,
    scope: &Scope<'a>,
    (place, task): (Place, &'a TaskLine),
    coordinate: Option<&'a Coordinate<'a>>,
) {
    let refers = &task.refers;
    let all = refers.whole_context.then(|| scope.all_names()).into_iter().flatten();
    let results = task.reads_context.then(|| scope.results()).into_iter().flatten();
    for name in all.chain(results).chain(refers.names()) {
        if inputs.context.contains_key(name) {
            continue;
        }
        let own = scope.step_of(name).map(|outcome| (name, outcome));
        let result = own.or_else(|| scope.is_previous(name).then(|| scope.previous(place)).flatten());
        let value = match (result, name) {
            (Some((step, outcome)), _) => {
                let reading = scope.program.reading(step, &outcome.data);
                inputs.results.push((name, reading.pipeline));
                inputs.handed_on.extend(reading.by_shape.then_some(name));
                inputs.each.extend(reading.each.then_some(name));
                inputs.stores.extend(reading.reference.and(reading.store).map(|store| (name, store)));
                inputs.partial.extend(partial(&outcome.data).map(|partial| (Cow::Borrowed(name), partial)));
                Some(shown(&outcome.data.value, outcome.error.as_ref()))
            }
            (None, "workload") => Some(part_of(scope.state.workload.json(), refers)),
            (None, "execution_id") => scope.known(name).map(Cow::Owned),
            (None, _) => {
                let own = scope.state.variables.get(name).map(|variable| variable.json());
                let own = own.or_else(|| scope.state.workload.json().get(name));
                own.map(Cow::Borrowed).or_else(|| scope.known(name).map(Cow::Owned))
            }
        };
        inputs.context.extend(value.map(|value| (name, value)));
    }
    let Some(coordinate) = coordinate else { return };
    for (name, value) in coordinate.names() {
        let is_bound = name != "iter" && name != "loop";
        if refers.whole_context || refers.names().any(|used| used == name) {
            inputs.results.retain(|(result, _)| *result != name);
            inputs.partial.retain(|(result, _)| result != name);
            inputs.context.insert(name, value.clone());
        }
        if is_bound {
            inputs.bind.insert(name, value);
        }
    }
    if let Some(partial) = &coordinate.partial {
        let inner = format!("iter.{}", coordinate.iterator);
        inputs.partial.push((Cow::Borrowed(coordinate.iterator), partial.clone()));
        inputs.partial.push((Cow::Owned(inner), partial.clone()));
    }
}

/// What of the workload is referred to.
fn part_of<'a>(workload: &'a Json, refers: &References) -> Cow<'a, Json> {
    let paths = || refers.paths.iter().filter(|path| path[0] == "workload");
    if refers.whole_context || paths().any(|path| path.len() == 1) {
        return Cow::Borrowed(workload);
    }
    let parts = paths().filter_map(|path| Some((path[1].clone(), workload.get(&path[1])?.clone())));
    Cow::Owned(Json::Object(parts.collect()))
}

fn partial(data: &Data) -> Option<Partial> {
    match &data.reference {
        Some(reference) => Some(Partial::Payload(reference.clone())),
        None => (!data.chunks.is_empty()).then(|| Partial::Chunks(data.chunks.clone())),
    }
}

/// The iteration a command is for, with its item: the recorded one, or the one in the collection.
pub(super) fn coordinate<'a>(
    scope: &Scope<'a>,
    place: Place,
    step: Option<&'a Step>,
    iteration: Option<u32>,
    recorded: Option<&'a Data>,
) -> Result<Option<Coordinate<'a>>, Stop> {
    let (Some(index), Some(repeat)) = (iteration, step.and_then(|step| step.repeat.as_deref())) else {
        return Ok(None);
    };
    let iterator = scope.program.step(place).repeat.as_ref().map_or("item", |repeat| repeat.iterator.as_str());
    let (item, partial) = match recorded {
        Some(data) => (Cow::Borrowed(&data.value), partial(data)),
        None => (super::items::item(scope, repeat, index)?, None),
    };
    Ok(Some(Coordinate { iterator, index, total: repeat.total, item, partial }))
}

/// The playbook a step starts.
pub(super) fn child(
    scope: &Scope<'_>,
    call: &ChildCall,
    id: &CommandId,
    coordinate: Option<&Coordinate<'_>>,
) -> Result<Child, Stop> {
    let mut locals = match scope.program.place(&id.step) {
        Some(place) => scope.led_here(place, &call.payload.refers)?,
        None => Locals::new(),
    };
    locals.extend(coordinate.map(Coordinate::locals).into_iter().flatten());
    // The JSON of an object is as good as the object, as in the input of every tool.
    let payload = match scope.render(&call.payload, &locals)? {
        Json::String(text) => serde_json::from_str(&text).unwrap_or(Json::String(text)),
        other => other,
    };
    let payload = match payload {
        payload @ Json::Object(_) => payload.to_string(),
        Json::Null => "{}".to_owned(),
        other => return Err(Stop::Failed(format!("the payload of a playbook is an object and not `{other}`"))),
    };
    let version = match call.version.as_ref().map(|version| scope.render(version, &locals)).transpose()? {
        None | Some(Json::Null) => None,
        Some(version) => match version.as_str().map_or(version.as_u64(), |text| text.trim().parse().ok()) {
            Some(number) if number <= u64::from(u32::MAX) => Some(number as u32),
            _ => return Err(Stop::Failed(format!("`{version}` is not the version of a playbook"))),
        },
    };
    let returns = match &call.answer {
        ChildAnswer::Step(step) => Some(step.clone()),
        ChildAnswer::Started | ChildAnswer::Output => None,
    };
    Ok(Child { command: id.to_string(), path: child_path(scope, call, &locals)?, version, payload, returns })
}

fn child_path(scope: &Scope<'_>, call: &ChildCall, locals: &Locals<'_>) -> Result<String, Stop> {
    match scope.render(&call.path, locals)? {
        Json::String(path) if !path.trim().is_empty() => Ok(path),
        other => Err(Stop::Failed(format!("`{other}` is not the path of a playbook"))),
    }
}

/// The path of a child that was asked for; as it is written if it cannot be rendered any more.
pub(super) fn path_of_child(scope: &Scope<'_>, place: Place, call: &ChildCall, id: &CommandId, open: &Open) -> String {
    let coordinate = coordinate(scope, place, scope.state.step(&id.step), id.iteration, open.item.as_ref());
    let path = coordinate.and_then(|coordinate| {
        child_path(scope, call, &coordinate.as_ref().map(Coordinate::locals).unwrap_or_default())
    });
    path.unwrap_or_else(|_| call.path.raw.as_str().unwrap_or_default().to_owned())
}
