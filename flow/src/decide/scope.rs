//! What templates see while an execution is decided on.
//!
//! A context is made for each rendering, of exactly the names the template refers to. Of two things with one name the
//! first of these is seen: what belongs to the rendering (`output`, `event`, the iteration), `workload` and
//! `execution_id`, variables, results of steps, keys of the workload, `job`, `env` and what else the engine knows.
//!
//! A result may be kept as a payload, with an extract at hand. As long as the extract answers, it is used; when it does
//! not, rendering stops with the digest of the payload that is needed.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use super::graph::Place;
use super::program::{Binding, Condition, Program};
use crate::event::{Data, Reference};
use crate::extract::covers;
use crate::state::{Outcome, Phase, State, laid_over, shown, told_beside};
use crate::task::PREVIOUS;
use crate::template::{Context, KEYCHAIN, References, Value, from_json, read_value};

/// Why something could not be rendered.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// This payload has to be supplied first.
    Need(String),
    Failed(String),
}

/// Names that belong to one rendering.
pub(super) type Locals<'a> = Vec<(&'a str, Value)>;

#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub execution: u64,
    pub at: u64,
    pub state: &'a State,
    pub program: &'a Program,
    /// Payloads at hand, by their sha256.
    pub values: &'a BTreeMap<String, Arc<Json>>,
}

impl<'a> Scope<'a> {
    pub fn holds(&self, condition: &Condition, locals: &Locals<'_>) -> Result<bool, Stop> {
        let context = self.context(&condition.refers, locals)?;
        condition.guard.holds(&context).map_err(|error| Stop::Failed(error.to_string()))
    }

    pub fn render(&self, binding: &Binding, locals: &Locals<'_>) -> Result<Json, Stop> {
        if binding.tree.is_constant() {
            return Ok(binding.raw.clone());
        }
        let context = self.context(&binding.refers, locals)?;
        binding.tree.render(&context).map_err(|error| Stop::Failed(error.to_string()))
    }

    /// What the result of a step is as `output`, or under another name. The status of a success is told when it is asked for.
    pub fn output(&self, step: &str, name: &str, outcome: &Outcome, refers: &References) -> Result<Value, Stop> {
        let is_status =
            |path: &Vec<String>| matches!(path.as_slice(), [root, field, ..] if root == name && field == "status");
        let told = outcome.error.is_some() || outcome.data.value.get("status").is_some();
        if told || !refers.paths.iter().any(is_status) {
            return self.result(step, name, outcome, refers);
        }
        let whole = self.whole_if_asked(step, name, outcome, refers)?;
        let data = laid_over(whole.as_deref().unwrap_or(&outcome.data.value), None);
        Ok(self.read(step, outcome, &data))
    }

    /// The data of a step's result as the step has it read.
    fn read(&self, step: &str, outcome: &Outcome, data: &Json) -> Value {
        read_value(data, &self.program.reading(step, &outcome.data))
    }

    /// Whether `result` means the result of the step that came before, because nothing else is called so.
    pub fn is_previous(&self, name: &str) -> bool {
        let taken = || self.state.variables.contains_key(name) || self.state.workload.json().get(name).is_some();
        name == PREVIOUS && self.step_of(name).is_none() && !taken()
    }

    /// The step that led to this one, and its result: of those with an arc to it the one that ended last before.
    pub fn previous(&self, place: Place) -> Option<(&'a str, &'a Outcome)> {
        let (state, program) = (self.state, self.program);
        let entered = state.step(program.name(place))?.entered;
        let ended = program.graph.sources(place).filter_map(|source| {
            let name = program.name(source);
            let step = state.step(name).filter(|step| step.ended <= entered && step.phase != Phase::Skipped)?;
            Some((step.ended, name, step.result.as_ref()?))
        });
        ended.max_by_key(|(ended, ..)| *ended).map(|(_, name, outcome)| (name, outcome))
    }

    /// `result`, for what is rendered before a step begins its work.
    pub fn led_here(&self, place: Place, refers: &References) -> Result<Locals<'static>, Stop> {
        let is_used = refers.names().any(|name| self.is_previous(name));
        match self.previous(place).filter(|_| is_used) {
            Some((step, outcome)) => Ok(vec![(PREVIOUS, self.output(step, PREVIOUS, outcome, refers)?)]),
            None => Ok(Locals::new()),
        }
    }

    fn context(&self, refers: &References, locals: &Locals<'_>) -> Result<Context, Stop> {
        let mut names: BTreeMap<&str, Value> = BTreeMap::new();
        if refers.whole_context {
            for name in self.all_names() {
                names.extend(self.value(name, refers)?.map(|value| (name, value)));
            }
        }
        for name in refers.names() {
            if locals.iter().all(|(local, _)| *local != name) {
                names.extend(self.value(name, refers)?.map(|value| (name, value)));
            }
        }
        names.extend(locals.iter().map(|(name, value)| (*name, value.clone())));
        Ok(Context::sealed(self.at, self.state.started.seal.as_deref()).with(names))
    }

    fn value(&self, name: &str, refers: &References) -> Result<Option<Value>, Stop> {
        if name == KEYCHAIN {
            return Ok(self.program.keychain.clone());
        }
        if let Some(step) = self.step_of(name) {
            return self.result(name, name, step, refers).map(Some);
        }
        if name == "workload" {
            return Ok(Some(self.state.workload.value().clone()));
        }
        if let Some(variable) = self.state.variables.get(name).filter(|_| name != "execution_id") {
            return Ok(Some(variable.value().clone()));
        }
        if self.state.workload.json().get(name).is_some() && name != "execution_id" {
            return Ok(self.state.workload.value().get_attr(name).ok());
        }
        Ok(self.known(name).map(|json| from_json(&json)))
    }

    /// The result that is meant by a name, if a result is.
    pub fn step_of(&self, name: &str) -> Option<&'a Outcome> {
        if name == "workload" || name == "execution_id" || self.state.variables.contains_key(name) {
            return None;
        }
        self.state.steps.get(name)?.result.as_ref()
    }

    /// What the engine itself knows, under names a playbook may take for its own things.
    pub fn known(&self, name: &str) -> Option<Json> {
        let id = || self.execution.to_string();
        let started = &self.state.started;
        match name {
            "execution_id" => Some(id().into()),
            "job" => Some(json!({ "uuid": id(), "execution_id": id() })),
            "env" => Some(started.env.clone().into()),
            "path" => Some(started.path.as_str().into()),
            "version" => Some(started.version.into()),
            "parent_execution_id" => started.starter().map(Into::into),
            "steps" => Some(self.envelopes()),
            "variables" => Some(self.variables()),
            _ => None,
        }
    }

    /// Every name but those the engine knows on request only.
    pub fn all_names(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let workload = self.state.workload.json().as_object().into_iter().flat_map(Map::keys);
        let results = self.state.steps.iter().filter(|(_, step)| step.result.is_some()).map(|(name, _)| name);
        let own = workload.chain(results).chain(self.state.variables.keys()).map(String::as_str);
        own.chain(["workload", "execution_id", "job", "env"])
    }

    /// Steps whose results are names of their own.
    pub fn results(&self) -> impl Iterator<Item = &'a str> {
        let scope = *self;
        self.state.steps.keys().map(String::as_str).filter(move |name| scope.step_of(name).is_some())
    }

    /// The workload, with what was set over it.
    fn variables(&self) -> Json {
        let mut all = self.state.workload.json().as_object().cloned().unwrap_or_default();
        all.extend(self.state.variables.iter().map(|(name, value)| (name.clone(), value.json().clone())));
        all.into()
    }

    fn envelopes(&self) -> Json {
        let ended = self.state.steps.iter().filter_map(|(name, step)| Some((name, step.result.as_ref()?)));
        let all: Map<String, Json> = ended
            .map(|(name, outcome)| {
                let status = if outcome.error.is_some() { "error" } else { "success" };
                (name.clone(), json!({ "status": status, "data": outcome.data.value, "error": outcome.error }))
            })
            .collect();
        all.into()
    }

    fn result(&self, step: &str, root: &str, outcome: &Outcome, refers: &References) -> Result<Value, Stop> {
        Ok(match self.whole_if_asked(step, root, outcome, refers)? {
            Some(whole) => self.read(step, outcome, &shown(&whole, outcome.error.as_ref())),
            None => {
                outcome.exposed(|data| self.read(step, outcome, &shown(&data.value, outcome.error.as_ref()))).clone()
            }
        })
    }

    /// The whole of a result that is kept as an extract, when the extract does not answer what is asked.
    fn whole_if_asked(
        &self,
        step: &str,
        root: &str,
        outcome: &Outcome,
        refers: &References,
    ) -> Result<Option<Arc<Json>>, Stop> {
        let data = &outcome.data;
        if data.reference.is_none() && data.chunks.is_empty() {
            return Ok(None);
        }
        let pipeline = self.program.is_pipeline(step, &outcome.data.value);
        let mut asked = refers.paths.iter().filter(|path| path[0] == root).map(|path| &path[1..]);
        let told = |path: &[String]| matches!(path, [field, ..] if field == "status" || field == "error");
        let answered = |path: &[String]| match &data.reference {
            _ if outcome.error.is_some() && told(path) => true,
            Some(_) => covers(&data.value, path, pipeline),
            None => matches!(path, [field, ..] if field == "stats" || field == "count"),
        };
        if !refers.whole_context && asked.all(answered) {
            return Ok(None);
        }
        self.whole(data).map(Some)
    }

    /// The whole of a result.
    pub fn whole(&self, data: &Data) -> Result<Arc<Json>, Stop> {
        if let Some(reference) = &data.reference {
            let whole = self.payload(reference)?;
            return Ok(told_beside(&data.value, &whole).map_or(whole, Arc::new));
        }
        let mut results = BTreeMap::new();
        for chunk in &data.chunks {
            let chunk = self.payload(chunk)?;
            for entry in chunk.as_array().into_iter().flatten() {
                if let (Some(index), Some(value)) = (entry.get(0).and_then(Json::as_u64), entry.get(1)) {
                    results.insert(index, value.clone());
                }
            }
        }
        let results: Vec<Json> = results.into_values().collect();
        let mut value = data.value.clone();
        if let Json::Object(fields) = &mut value {
            fields.insert("results".to_owned(), results.clone().into());
            fields.insert("data".to_owned(), results.into());
        }
        Ok(Arc::new(value))
    }

    pub fn payload(&self, reference: &Reference) -> Result<Arc<Json>, Stop> {
        self.values.get(&reference.sha256).cloned().ok_or_else(|| Stop::Need(reference.sha256.clone()))
    }
}
