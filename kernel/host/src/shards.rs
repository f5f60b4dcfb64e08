//! Threads for resident components that are called from anywhere: one set of instances a thread.
//!
//! A shard's calls run one after another; a call for a shard that is busy waits in its queue, which is
//! bounded, so a caller feels the pressure instead of the server's memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use noetl_contract::Digest;
use tokio::sync::{mpsc, oneshot};

use crate::call::{Finished, Ready};
use crate::error::{Fault, FaultClass, StartError};
use crate::fair::Reservation;
use crate::grant::Terms;
use crate::module::{Module, Template};
use crate::resident::Residents;
use crate::state::Identity;

const QUEUE: usize = 1_024;

pub(crate) struct Job {
    pub(crate) module: Arc<Module>,
    pub(crate) template: Arc<Template>,
    pub(crate) terms: Terms,
    pub(crate) identity: Arc<Identity>,
    pub(crate) input: Ready,
    pub(crate) queued: Instant,
    pub(crate) answer: oneshot::Sender<Result<Finished, Fault>>,
    /// What a large input takes of the memory, held as long as the input is here: its caller may be gone before it.
    pub(crate) room: Option<Reservation>,
}

enum Message {
    Call(Box<Job>),
    Forget(Digest),
}

pub(crate) struct Shards(Vec<mpsc::Sender<Message>>);

impl Shards {
    pub(crate) fn start(count: usize, residents: impl Fn() -> Residents) -> Result<Self, StartError> {
        let start = |number: usize| {
            let (sender, mut inbox) = mpsc::channel::<Message>(QUEUE);
            let mut residents = residents();
            std::thread::Builder::new()
                .name(format!("shard-{number}"))
                .spawn(move || {
                    while let Some(message) = next(&mut inbox) {
                        handle(&mut residents, message);
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

fn handle(residents: &mut Residents, message: Message) {
    match message {
        Message::Forget(digest) => residents.forget(digest),
        Message::Call(job) => {
            let Job { module, template, terms, identity, input, queued, answer, room: _room } = *job;
            // A caller that went away while it was queued does not need the call.
            if answer.is_closed() {
                return;
            }
            let result = residents.call(&module, &template, terms, identity, input, queued);
            // A caller that went away does not need the answer.
            let _ = answer.send(result);
        }
    }
}
