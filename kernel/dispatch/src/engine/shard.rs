//! A shard: one thread that drives the executions that are its own.
//!
//! It takes what has arrived, drives what is due, commits, and only then does what was decided. All of the engine's
//! pure services are called on this very thread, so between an input and its decision nobody is woken. Tools that act
//! on the outside run on the host's threads and come back as messages.
//!
//! Invariants:
//! 1. One commit is in flight at a time. Inputs that come meanwhile wait for the next cycle.
//! 2. A command is handed to a tool that acts on the outside only when the commit that issued it is durable.
//! 3. After a commit that failed, the executions in it are forgotten and built anew from the log before their next
//!    drive, and the inputs are driven again.
//! 4. Whatever is live is in `live`, and something is owed to it: an input, a task, a timer, or a person.
//!
//! Crash: everything here is lost and nothing of it is missed; `recover` rebuilds it from the log.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use noetl_contract::{Digest, Tenant};
use noetl_host::Residents;
use noetl_host::services::orchestration::Happening;
use noetl_host::services::running::News;
use noetl_store::log::{Log as _, Ticket};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, error::TryRecvError};
use tokio::sync::oneshot;

use super::Shared;
use super::api::{Ended, EngineError};
use super::cycle::InFlight;
use super::ids::ExecutionId;
use super::inbox::Inbox;
use super::message::{Message, Queued, Reply};
use super::pools::Pools;
use super::segment::stream_of;
use super::services::{Role, Service};
use super::tasks::{Task, TaskKey};
use super::timers::{Due, Timers};
use super::tools::InlineTools;
use crate::Kernel;

/// How long a shard looks for more before it sleeps; waking it costs as much.
const LINGER: Duration = Duration::from_micros(40);
/// After the log refused, this long passes before the next try.
pub(super) const AGAIN_MS: u64 = 500;

/// What the kernel knows of an execution that has not ended.
pub struct Live {
    pub tenant: Tenant,
    pub path: String,
    pub root: ExecutionId,
    pub parent: Option<(ExecutionId, String)>,
    /// Segments in its chain.
    pub version: u64,
    pub last_event: u64,
    pub last_ms: u64,
    /// How many playbooks above it started one another.
    pub depth: u32,
    /// Commands that were issued and not reported.
    pub commands: HashSet<Arc<str>>,
    pub waiters: Vec<oneshot::Sender<Result<Ended, EngineError>>>,
}

pub struct Shard {
    pub(super) number: usize,
    pub(super) kernel: Weak<Kernel>,
    pub(super) shared: Arc<Shared>,
    pub(super) sender: UnboundedSender<Message>,
    pub(super) residents: Residents,
    pub(super) orchestrator: Option<Service>,
    pub(super) runner: Option<Service>,
    pub(super) inline: InlineTools,
    pub(super) inbox: Inbox<Queued>,
    pub(super) live: HashMap<ExecutionId, Live>,
    pub(super) tasks: HashMap<TaskKey, Task>,
    pub(super) pools: Pools<TaskKey>,
    /// Turns to be given to the runner.
    pub(super) turns: Vec<(TaskKey, News)>,
    pub(super) timers: Timers,
    pub(super) in_flight: Option<InFlight>,
    /// Ended and to be forgotten by the orchestrator.
    pub(super) evict: Vec<u64>,
    /// While recovering: parents, their commands, and the children they wait for.
    pub(super) unaccounted: Vec<(ExecutionId, String, ExecutionId)>,
    /// No drive before the timer `Again`.
    pub(super) paused: bool,
}

/// What woke the shard.
enum Woken {
    Message(Message),
    Committed(Result<Vec<noetl_store::log::Appended>, noetl_store::log::AppendError>),
    Timer,
    Closed,
}

impl Shard {
    pub(super) async fn run(mut self, mut inbox: UnboundedReceiver<Message>) {
        loop {
            let woken = self.wait(&mut inbox).await;
            let Some(kernel) = self.kernel.upgrade() else { return };
            match woken {
                Woken::Closed => return,
                Woken::Timer => {}
                Woken::Committed(answer) => self.committed(answer),
                Woken::Message(Message::Stop(done)) => {
                    self.finish().await;
                    // Whoever stops the server may have given up waiting.
                    let _ = done.send(());
                    return;
                }
                Woken::Message(message) => self.take(&kernel, message).await,
            }
            // Everything else that is here already goes into the same cycle.
            while let Ok(message) = inbox.try_recv() {
                match message {
                    Message::Stop(done) => {
                        self.finish().await;
                        let _ = done.send(());
                        return;
                    }
                    message => self.take(&kernel, message).await,
                }
            }
            self.fire_timers();
            self.run_turns(&kernel).await;
            if self.in_flight.is_none() && !self.paused && !self.inbox.is_empty() {
                self.cycle(&kernel).await;
                self.run_turns(&kernel).await;
            }
            self.shared.metrics.observe(self.number, self.live.len(), self.inbox.len(), self.pools.waiting());
        }
    }

    /// Waits for a message, the commit, or the next timer.
    async fn wait(&mut self, inbox: &mut UnboundedReceiver<Message>) -> Woken {
        let began = Instant::now();
        loop {
            if let Some(answer) = self.in_flight.as_mut().and_then(InFlight::try_answer) {
                return Woken::Committed(answer);
            }
            match inbox.try_recv() {
                Ok(message) => return Woken::Message(message),
                Err(TryRecvError::Disconnected) => return Woken::Closed,
                Err(TryRecvError::Empty) if began.elapsed() >= LINGER => break,
                Err(TryRecvError::Empty) => std::hint::spin_loop(),
            }
        }
        let next = self.timers.next();
        let clock = self.shared.clock;
        let timer = async move {
            match next {
                Some(at) => tokio::time::sleep(clock.until(at)).await,
                None => std::future::pending().await,
            }
        };
        let commit = async {
            match &mut self.in_flight {
                Some(in_flight) => in_flight.answer().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            answer = commit => Woken::Committed(answer),
            message = inbox.recv() => message.map_or(Woken::Closed, Woken::Message),
            () = timer => Woken::Timer,
        }
    }

    async fn take(&mut self, kernel: &Arc<Kernel>, message: Message) {
        match message {
            Message::Input(queued) => self.accept(*queued),
            Message::News(key, news) => self.news(key, news),
            Message::Wait(execution, answer) => match self.live.get_mut(&execution) {
                Some(live) => live.waiters.push(answer),
                None => drop(answer.send(Err(EngineError::ExecutionNotFound(execution)))),
            },
            Message::Refresh => self.refresh(kernel).await,
            Message::Recover { execution, tenant, root } => self.recover(kernel, execution, tenant, root).await,
            Message::Recovered => self.recovered(kernel),
            Message::Stop(_) => {}
        }
    }

    /// Inputs for executions that are not live are answered here, so that no chain is reopened.
    pub(super) fn accept(&mut self, queued: Queued) {
        let execution = queued.execution();
        let starts = matches!(queued.input.what, Happening::Start(_));
        if !starts && !self.live.contains_key(&execution) {
            match queued.about.reply {
                Reply::Recorded(answer) => {
                    let known = self.shared.log.head(&stream_of(execution)).ok().flatten().is_some();
                    let refused = match known {
                        true => EngineError::Refused(format!("execution {execution} has ended")),
                        false => EngineError::ExecutionNotFound(execution),
                    };
                    drop(answer.send(Err(refused)));
                }
                other => other.refuse(EngineError::ExecutionNotFound(execution)),
            }
            return;
        }
        let tenant = queued.about.tenant.clone();
        self.inbox.push(&tenant, execution, queued);
    }

    fn fire_timers(&mut self) {
        let now = self.shared.clock.now_ms();
        while let Some(due) = self.timers.pop(now) {
            match due {
                Due::Again => self.paused = false,
                Due::Wake(execution) => {
                    if let Some(live) = self.live.get(&execution) {
                        let tenant = live.tenant.clone();
                        self.accept(Queued::new(execution, tenant, Happening::Wake, Reply::Nobody));
                    }
                }
                Due::Slept(key) => self.awake(key),
                Due::TimedOut(key) => self.timed_out(&key),
            }
        }
    }

    /// Takes up the versions that serve now. Nothing of an old version stays behind.
    pub(super) async fn refresh(&mut self, kernel: &Arc<Kernel>) {
        for role in [Role::Orchestrator, Role::Runner] {
            match kernel.service(role).await {
                Ok(service) => match role {
                    Role::Orchestrator => self.orchestrator = Some(service),
                    _ => self.runner = Some(service),
                },
                Err(reason) => tracing::error!(service = %role.path(), %reason, "the service cannot be made ready"),
            }
        }
        self.inline.clear();
        self.release_instances();
    }

    pub(super) fn release_instances(&mut self) {
        let services = [&self.orchestrator, &self.runner].into_iter().flatten().map(Service::digest);
        let digests: Vec<Digest> = services.chain(self.inline.digests()).collect();
        self.residents.keep_only(&digests);
    }

    /// Ends in order: what is under way is written, nothing new begins.
    async fn finish(&mut self) {
        if let Some(in_flight) = &mut self.in_flight {
            let answer = in_flight.answer().await;
            self.committed(answer);
        }
        self.tasks.clear();
    }
}

/// A commit's answer as it comes out of its ticket.
pub(super) fn gone() -> noetl_store::log::AppendError {
    noetl_store::log::AppendError::Stopped("the log's writer is gone".to_owned())
}

pub(super) type Answer = Result<Vec<noetl_store::log::Appended>, noetl_store::log::AppendError>;

/// Looks whether a ticket is answered.
pub(super) fn try_ticket(ticket: &mut Ticket) -> Option<Answer> {
    match ticket.try_recv() {
        Ok(answer) => Some(answer),
        Err(oneshot::error::TryRecvError::Empty) => None,
        Err(oneshot::error::TryRecvError::Closed) => Some(Err(gone())),
    }
}
