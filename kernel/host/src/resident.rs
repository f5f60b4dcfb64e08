//! Resident instances: one a shard, on the shard's own thread.
//!
//! Only deterministic components live here, whose state is a function of what they were fed: dropping an
//! instance is always safe. It is dropped after any fault (a component that trapped refuses further
//! calls), when it has grown above its limit's half (wasm memory never shrinks) and when its module goes.
//! A shard's calls run one after another; a call for a shard that is busy waits in its queue, which is
//! bounded, so a caller feels the pressure instead of the server's memory.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use noetl_contract::Digest;
use tokio::sync::{mpsc, oneshot};
use wasmtime::{Store, UpdateDeadline};

use crate::call::{self, Answer, Finished, Input, TransformFunc, Usage};
use crate::caps::Drivers;
use crate::engine::Engines;
use crate::error::{Fault, FaultClass, StartError};
use crate::grant::Grant;
use crate::metrics::LiveInstance;
use crate::module::{Module, Template};
use crate::state::{CallState, Identity};

const QUEUE: usize = 1_024;

pub(crate) struct Job {
    pub(crate) module: Arc<Module>,
    pub(crate) template: Arc<Template>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) input: Input,
    pub(crate) queued: Instant,
    pub(crate) answer: oneshot::Sender<Result<Finished, Fault>>,
}

enum Message {
    Call(Box<Job>),
    Forget(Digest),
}

pub(crate) struct Shards(Vec<mpsc::Sender<Message>>);

impl Shards {
    pub(crate) fn start(count: usize, engines: &Arc<Engines>, drivers: &Arc<Drivers>) -> Result<Self, StartError> {
        let start = |number: usize| {
            let (sender, mut inbox) = mpsc::channel::<Message>(QUEUE);
            let mut shard = Shard { engines: engines.clone(), drivers: drivers.clone(), instances: HashMap::new() };
            std::thread::Builder::new()
                .name(format!("shard-{number}"))
                .spawn(move || {
                    while let Some(message) = next(&mut inbox) {
                        shard.handle(message);
                    }
                })
                .map(|_| sender)
                .map_err(|error| StartError { doing: "start a shard thread", reason: error.to_string() })
        };
        (0..count.max(1)).map(start).collect::<Result<_, _>>().map(Self)
    }

    /// `key` decides the shard, so that calls with the same key meet the same instance.
    pub(crate) async fn call(
        &self,
        key: u64,
        job: Job,
        answer: oneshot::Receiver<Result<Finished, Fault>>,
    ) -> Result<Finished, Fault> {
        let gone = || Fault::new(FaultClass::Fetch, "the server is shutting down");
        let shard = &self.0[(key % self.0.len() as u64) as usize];
        shard.send(Message::Call(Box::new(job))).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    /// Drop all instances of a module.
    pub(crate) fn forget(&self, digest: Digest) {
        for shard in &self.0 {
            let shard = shard.clone();
            // A full queue must not block whoever swaps a module, so the message waits in its own task.
            if let Err(mpsc::error::TrySendError::Full(message)) = shard.try_send(Message::Forget(digest))
                && let Ok(runtime) = tokio::runtime::Handle::try_current()
            {
                runtime.spawn(async move { shard.send(message).await });
            }
        }
    }
}

/// How long a shard that has just worked looks for more before it sleeps. Waking a sleeping thread costs
/// more than most calls, and under load the next message is a few microseconds away.
const LINGER: Duration = Duration::from_micros(20);

fn next(inbox: &mut mpsc::Receiver<Message>) -> Option<Message> {
    let started = Instant::now();
    loop {
        match inbox.try_recv() {
            Ok(message) => return Some(message),
            Err(mpsc::error::TryRecvError::Disconnected) => return None,
            Err(mpsc::error::TryRecvError::Empty) if started.elapsed() >= LINGER => return inbox.blocking_recv(),
            Err(mpsc::error::TryRecvError::Empty) => std::hint::spin_loop(),
        }
    }
}

struct Shard {
    engines: Arc<Engines>,
    drivers: Arc<Drivers>,
    instances: HashMap<(Digest, Grant), Resident>,
}

struct Resident {
    store: Store<CallState>,
    run: TransformFunc<'static>,
    _live: LiveInstance,
}

impl Shard {
    fn handle(&mut self, message: Message) {
        match message {
            Message::Forget(digest) => self.instances.retain(|(of, _), _| *of != digest),
            Message::Call(job) => {
                let Job { module, template, identity, input, queued, answer } = *job;
                let result = self.call(&module, &template, identity, input, queued);
                // A caller that went away does not need the answer.
                let _ = answer.send(result);
            }
        }
    }

    fn call(
        &mut self,
        module: &Arc<Module>,
        template: &Template,
        identity: Arc<Identity>,
        input: Input,
        queued: Instant,
    ) -> Result<Finished, Fault> {
        let queue = queued.elapsed();
        let started = Instant::now();
        let _ticking = self.engines.ticker.enter();
        let key = (module.spec.digest, template.grant);
        if let Some(resident) = self.instances.get_mut(&key) {
            resident.store.data_mut().next_call(identity);
        } else {
            let made = self.instantiate(module, template, identity)?;
            self.instances.insert(key, made);
        }
        let resident = self.instances.get_mut(&key).expect("it was there or has just been made");
        resident.store.set_epoch_deadline(1);
        let bytes = call::transform_input(input);
        let result = match call_export(resident, &bytes) {
            Ok(answer) => call::settle(&mut resident.store, answer),
            Err(error) => Err(call::classify(&mut resident.store, &error)),
        };
        let meter = &resident.store.data().meter;
        let usage = Usage { queue, duration: started.elapsed(), memory_bytes: meter.high_water() };
        let keep = result.is_ok() && meter.memory() <= meter.limits().memory_bytes / 2;
        let finished = call::finish(module, &mut resident.store, result, usage);
        if !keep {
            self.instances.remove(&key);
        }
        finished
    }

    fn instantiate(
        &self,
        module: &Arc<Module>,
        template: &Template,
        identity: Arc<Identity>,
    ) -> Result<Resident, Fault> {
        let mut store = call::new_store(&self.engines.pure, module, template, identity, self.drivers.clone());
        store.epoch_deadline_callback(|mut store| {
            Ok(if store.data_mut().meter.tick() { UpdateDeadline::Continue(1) } else { UpdateDeadline::Interrupt })
        });
        store.set_epoch_deadline(1);
        let made = template.pre.instantiate(&mut store);
        let made = made.and_then(|instance| call::transform_export(&mut store, &instance, module));
        match made {
            Ok(run) => Ok(Resident { store, run, _live: LiveInstance::new(module) }),
            Err(error) => Err(call::classify(&mut store, &error)),
        }
    }
}

fn call_export(resident: &mut Resident, bytes: &[u8]) -> wasmtime::Result<Answer> {
    // The function's type names a lifetime for its argument; it holds nothing of it after the call.
    let run: TransformFunc<'_> = resident.run;
    Ok(Answer::Transform(run.call(&mut resident.store, (bytes,))?.0))
}
