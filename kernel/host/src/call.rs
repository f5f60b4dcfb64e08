//! One call of a fresh instance.
//!
//! Wait for memory and a slot, instantiate from the template, call, drop. `wall_ms` covers all of it from
//! instantiation on, host calls included; `cpu_ms` only the guest's own computing, counted in ticks of the
//! epoch. Nothing is held across the call but the call's own store.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use noetl_contract::manifest::World;
use noetl_store::payloads::Payloads;
use wasmtime::component::{Instance, Resource};
use wasmtime::{Store, Trap, UpdateDeadline, WasmBacktrace};

use crate::bindings;
use crate::caps::Drivers;
use crate::caps::payload::Payload;
use crate::engine::Engines;
use crate::error::{Fault, FaultClass};
use crate::grant::Terms;
use crate::kept::Sandbox;
use crate::metrics::{Ending, LiveInstance};
use crate::module::{Module, Template};
use crate::state::{CallState, Identity};
use crate::tape::{HostCall, Script, Tape};

/// What a guest is given.
pub enum Input {
    /// It is not called: whether a program loads is all that is asked.
    Nothing,
    Bytes(Bytes),
    /// Bytes that are read once there is room for them.
    Bulk(Payload),
    Tool {
        arguments: String,
        body: Option<Payload>,
    },
}

impl Input {
    /// Bytes the host has to hold beside the guest's own memory while the call runs.
    pub(crate) fn weight(&self) -> u64 {
        match self {
            Input::Nothing => 0,
            Input::Bytes(bytes) => bytes.len() as u64,
            Input::Bulk(payload) => payload.size(),
            Input::Tool { arguments, .. } => arguments.len() as u64,
        }
    }

    /// Called once the room is there.
    pub(crate) async fn load(self, payloads: &Payloads) -> Result<Ready, Fault> {
        Ok(match self {
            Input::Nothing => Ready::Nothing,
            Input::Bytes(bytes) => Ready::Bytes(bytes),
            Input::Tool { arguments, body } => Ready::Tool { arguments, body },
            Input::Bulk(payload) => {
                let read = payload.read(payloads, 0, payload.size()).await;
                let unreadable =
                    |error| Fault::new(FaultClass::Fetch, format!("the input could not be read again: {error}"));
                Ready::Bytes(read.map_err(unreadable)?)
            }
        })
    }
}

/// An input that is in memory.
pub(crate) enum Ready {
    Nothing,
    Bytes(Bytes),
    Tool { arguments: String, body: Option<Payload> },
}

/// What a guest answered.
pub enum Output {
    Bytes(Bytes),
    Tool { output: String, body: Option<Payload> },
}

/// A guest's own word that it could not do its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub code: String,
    pub message: String,
    pub retryable: bool,
}

/// Staged writes, for the caller to commit with the record that ends the call.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Effects {
    pub kv_conditions: Vec<(String, Option<u64>)>,
    pub kv_writes: Vec<(String, Option<Bytes>)>,
}

impl Effects {
    pub fn is_empty(&self) -> bool {
        self.kv_writes.is_empty() && self.kv_conditions.is_empty()
    }
}

/// What a call took.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    pub queue: Duration,
    pub duration: Duration,
    pub memory_bytes: u64,
}

/// A call that ended in an answer; a failure carries no effects.
pub struct Finished {
    pub outcome: Result<Output, Failure>,
    pub effects: Effects,
    pub usage: Usage,
    /// What it asked of the host, when that was to be written down.
    pub host_calls: Vec<HostCall>,
}

/// Room for the fixed parts of an answer beside its bulk.
const ANSWER_OVERHEAD: u64 = 64 << 10;
const LONGEST_FAILURE: usize = 64 << 10;

pub(crate) fn new_store(
    engine: &wasmtime::Engine,
    module: &Module,
    template: &Template,
    terms: Terms,
    identity: Arc<Identity>,
    drivers: Arc<Drivers>,
) -> Store<CallState> {
    let limits = module.spec.limits;
    let state = CallState::new(limits, identity, terms, drivers, module.spec.http.clone(), template.wasi);
    let mut store = Store::new(engine, state);
    store.limiter(|state| &mut state.meter);
    // Wasmtime counts what it lifts out of a guest against this and stops before it allocates more.
    let most = limits.output_bytes.max(limits.host_bytes).saturating_add(ANSWER_OVERHEAD);
    store.set_hostcall_fuel(usize::try_from(most).unwrap_or(usize::MAX));
    store
}

/// Everything one call is made of.
pub(crate) struct Run<'a> {
    pub(crate) engines: &'a Engines,
    pub(crate) module: &'a Arc<Module>,
    pub(crate) template: &'a Template,
    pub(crate) terms: Terms,
    pub(crate) identity: Arc<Identity>,
    pub(crate) drivers: Arc<Drivers>,
    pub(crate) queue: Duration,
    pub(crate) script: Script,
}

impl Run<'_> {
    /// Runs one call to its end, whatever that is. `kept` is a sandbox of an earlier call, which is ready; the sandbox
    /// is given back when it could take another one.
    pub(crate) async fn run(
        mut self,
        input: Ready,
        kept: Option<Sandbox>,
    ) -> (Result<Finished, Fault>, Option<Sandbox>) {
        let started = Instant::now();
        let _ticking = self.engines.ticker.enter();
        let wall = Duration::from_millis(self.module.spec.limits.wall_ms);
        let script = std::mem::take(&mut self.script);
        let mut opening = self.open(kept);
        let state = opening.store.data_mut();
        if let (Some(start), Some(wasi)) = (script.start(), &mut state.wasi) {
            wasi.start_at(start);
        }
        state.tape = Tape::new(script);
        let only_loads = matches!(input, Ready::Nothing);
        let called = async {
            if opening.instance.is_none() {
                let instance = opening.template.pre.instantiate_async(&mut opening.store).await?;
                opening.instance = Some(instance);
                if let Some(program) = self.module.program()
                    && let Err(failure) = program.load(&mut opening.store, &instance).await?
                {
                    // A program that did not load is not one to be called again.
                    opening.instance = None;
                    return Ok(Answer::Transform(Err(failure)));
                }
            }
            if only_loads {
                return Ok(Answer::Transform(Ok(Vec::new())));
            }
            let Some(instance) = opening.instance else { return Err(wasmtime::format_err!("no instance was made")) };
            call_instance(&mut opening.store, self.module, &instance, input).await
        };
        let called = tokio::time::timeout(wall, called).await;
        let Opening { mut store, instance, live, .. } = opening;
        // A sandbox that is kept computes no longer.
        store.data_mut().long = None;
        let result = match called {
            Ok(Ok(answer)) => settle(&mut store, answer),
            Ok(Err(error)) => Err(classify(&mut store, &error)),
            Err(_) => {
                let text = format!("the call took longer than {} ms (`limits.wall_ms`)", wall.as_millis());
                Err(store.data_mut().meter.fail(FaultClass::Timeout, text))
            }
        };
        let meter = &store.data().meter;
        let usage = Usage { queue: self.queue, duration: started.elapsed(), memory_bytes: meter.high_water() };
        if only_loads {
            // It is no call of anybody's: nothing is counted, kept or committed.
            let (effects, host_calls) = (Effects::default(), Vec::new());
            return (result.map(|outcome| Finished { outcome, effects, usage, host_calls }), None);
        }
        let whole = result.is_ok() && meter.memory() <= meter.limits().memory_bytes / 2;
        let finished = finish(self.module, &mut store, result, usage);
        let sandbox = instance.filter(|_| whole).map(|instance| Sandbox { store, instance, live });
        (finished, sandbox)
    }

    fn open(&self, kept: Option<Sandbox>) -> Opening<'_> {
        let template = self.template;
        let mut opening = match kept {
            Some(Sandbox { mut store, instance, live }) => {
                store.data_mut().next_call(self.identity.clone());
                Opening { store, instance: Some(instance), live, template }
            }
            None => {
                let (identity, drivers) = (self.identity.clone(), self.drivers.clone());
                let engine = &self.engines.guest;
                let mut store = new_store(engine, self.module, template, self.terms, identity, drivers);
                let turns = self.engines.turns.clone();
                store.epoch_deadline_callback(move |mut store| {
                    let state = store.data_mut();
                    if !state.meter.tick() {
                        return Ok(UpdateDeadline::Interrupt);
                    }
                    state.long.get_or_insert_with(|| turns.enter());
                    Ok(match turns.next(&state.identity.tenant) {
                        None => UpdateDeadline::Yield(1),
                        // The other end goes only with the host, and then nobody waits for this call.
                        Some(turn) => UpdateDeadline::YieldCustom(1, Box::pin(async { drop(turn.await) })),
                    })
                });
                Opening { store, instance: None, live: LiveInstance::new(self.module), template }
            }
        };
        opening.store.set_epoch_deadline(1);
        opening
    }
}

/// A sandbox on its way to its first call.
struct Opening<'a> {
    store: Store<CallState>,
    instance: Option<Instance>,
    live: LiveInstance,
    template: &'a Template,
}

/// Counts the call and hands over its effects.
pub(crate) fn finish(
    module: &Module,
    store: &mut Store<CallState>,
    result: Result<Result<Output, Failure>, Fault>,
    usage: Usage,
) -> Result<Finished, Fault> {
    let ending = match &result {
        Ok(Ok(_)) => Ending::Answered,
        Ok(Err(_)) => Ending::Failed,
        Err(fault) => Ending::Faulted(fault.class),
    };
    module.metrics.ended(&ending, usage.queue, usage.duration, usage.memory_bytes);
    let outcome = result?;
    let mut effects = Effects::default();
    if outcome.is_ok() {
        let staged = std::mem::take(&mut store.data_mut().kv);
        effects.kv_conditions = staged.conditions.into_iter().collect();
        effects.kv_writes = staged.writes.into_iter().collect();
    }
    let host_calls = store.data_mut().take_tape();
    Ok(Finished { outcome, effects, usage, host_calls })
}

/// An answer as the canonical ABI gives it.
pub(crate) enum Answer {
    Transform(Result<Vec<u8>, bindings::Failure>),
    Tool(Result<bindings::Response, bindings::Failure>),
}

async fn call_instance(
    store: &mut Store<CallState>,
    module: &Module,
    instance: &Instance,
    input: Ready,
) -> wasmtime::Result<Answer> {
    match (module.spec.world, input) {
        (World::Transform, input) => {
            let bytes = transform_input(input);
            let run = transform_export(&mut *store, instance, module)?;
            Ok(Answer::Transform(run.call_async(store, (&bytes,)).await?.0))
        }
        (World::Tool, input) => {
            let request = tool_request(store, input)?;
            let call = instance
                .get_typed_func::<(bindings::Request,), (Result<bindings::Response, bindings::Failure>,)>(
                    &mut *store,
                    module.export,
                )?;
            Ok(Answer::Tool(call.call_async(store, (request,)).await?.0))
        }
        (world, _) => Err(Fault::new(
            FaultClass::Trap,
            format!("{} is of the world `{world}`, which only the engine calls", module.spec.path),
        )
        .into()),
    }
}

pub(crate) type TransformFunc<'a> = wasmtime::component::TypedFunc<(&'a [u8],), (Result<Vec<u8>, bindings::Failure>,)>;

pub(crate) fn transform_export<'a>(
    store: &mut Store<CallState>,
    instance: &Instance,
    module: &Module,
) -> wasmtime::Result<TransformFunc<'a>> {
    instance.get_typed_func(store, module.export)
}

/// A transform that is handed a tool's arguments reads them as bytes.
pub(crate) fn transform_input(input: Ready) -> Bytes {
    match input {
        Ready::Nothing => Bytes::new(),
        Ready::Bytes(bytes) => bytes,
        Ready::Tool { arguments, .. } => arguments.into(),
    }
}

fn tool_request(store: &mut Store<CallState>, input: Ready) -> wasmtime::Result<bindings::Request> {
    let (arguments, body) = match input {
        Ready::Nothing => ("{}".to_owned(), None),
        Ready::Tool { arguments, body } => (arguments, body),
        Ready::Bytes(bytes) => ("{}".to_owned(), Some(Payload::memory(bytes, "application/octet-stream"))),
    };
    let state = store.data_mut();
    let body = body.map(|body| state.hand_out(body)).transpose()?;
    let identity = state.identity.clone();
    Ok(bindings::Request {
        arguments,
        body,
        idempotency_key: identity.idempotency_key.clone(),
        attempt: identity.attempt,
    })
}

/// Checks the answer against the output limit and takes it out of the store.
pub(crate) fn settle(store: &mut Store<CallState>, answer: Answer) -> Result<Result<Output, Failure>, Fault> {
    let state = store.data_mut();
    let most = state.meter.limits().output_bytes;
    let mut bounded = |size: usize| match size as u64 > most {
        true => Err(state.meter.fail(FaultClass::Output, too_large(most))),
        false => Ok(()),
    };
    match answer {
        Answer::Transform(Ok(bytes)) => {
            bounded(bytes.len())?;
            Ok(Ok(Output::Bytes(bytes.into())))
        }
        Answer::Tool(Ok(response)) => {
            bounded(response.output.len())?;
            let body = response.body.map(|body: Resource<Payload>| state.take_in(body)).transpose();
            let body = body.map_err(|error| Fault::new(FaultClass::Trap, format!("the answer's body: {error}")))?;
            Ok(Ok(Output::Tool { output: response.output, body }))
        }
        Answer::Transform(Err(failure)) | Answer::Tool(Err(failure)) => {
            let bindings::Failure { mut code, mut message, retryable } = failure;
            crate::caps::truncate(&mut code, 64);
            crate::caps::truncate(&mut message, LONGEST_FAILURE);
            Ok(Err(Failure { code, message, retryable }))
        }
    }
}

fn too_large(most: u64) -> String {
    format!("the answer is larger than {} MiB (`limits.output_mb`)", most >> 20)
}

/// Which bound or crash ended the call. A bound the meter recorded explains whatever trap followed it.
pub(crate) fn classify(store: &mut Store<CallState>, error: &wasmtime::Error) -> Fault {
    let state = store.data_mut();
    if let Some(fault) = state.meter.take_fault() {
        return fault;
    }
    if let Some(fault) = error.downcast_ref::<Fault>() {
        return fault.clone();
    }
    if let Some(message) = state.panic_message.take() {
        return Fault::new(FaultClass::Trap, format!("the guest panicked: {message}"));
    }
    if let Some(trap) = error.downcast_ref::<Trap>() {
        return Fault::new(FaultClass::Trap, format!("the guest trapped: {trap}"));
    }
    let text = format!("{:#}", error);
    if text.contains("fuel allocated for hostcalls") {
        // With a backtrace the guest was inside a call to the host; without one it had returned.
        return match error.downcast_ref::<WasmBacktrace>() {
            Some(_) => Fault::new(FaultClass::Quota, "an argument of a host call is larger than `limits.host_mb`"),
            None => Fault::new(FaultClass::Output, too_large(state.meter.limits().output_bytes)),
        };
    }
    Fault::new(FaultClass::Trap, format!("the call failed: {text}"))
}
