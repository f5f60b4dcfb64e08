//! One cycle of a shard: drive what waits, run what may run at once, commit all of it together.
//!
//! A command whose tools are all pure touches nothing outside: running it before its commit cannot be noticed, and
//! running it again after a crash gives the same. So it runs here and now, its report is driven in the same cycle, and
//! a chain of such steps costs one commit. What acts on the outside waits until the commit is durable.
//!
//! A cycle has its time. What follows from it beyond that (a child to be started, the end of one to be told) is driven
//! in the next; after a crash in between, the chains say what was left to do.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use noetl_contract::{Digest, Tenant};
use noetl_host::services::orchestration::{Happening, Input, Outcome};
use noetl_store::log::{Append, AppendError, Expected, Log, Ticket};
use tokio::sync::oneshot;

use super::api::{Ended, EngineError};
use super::ids::ExecutionId;
use super::message::{About, Queued, Reply};
use super::segment::{Header, stream_of};
use super::settle::{Decision, check_events};
use super::shard::{AGAIN_MS, Answer, Live, Shard, gone, try_ticket};
use super::tasks::TaskKey;
use super::timers::Due;
use crate::Kernel;

/// Inputs of one cycle at most, before what follows from them.
const BATCH: usize = 512;
/// How long a cycle goes on with pure commands before it commits.
const PURE_TIME: Duration = Duration::from_millis(4);

/// What a cycle has gathered for its commit.
#[derive(Default)]
pub(super) struct Cycle {
    /// Inputs from outside, to be driven again if the commit fails.
    pub(super) inputs: Vec<(Input, About)>,
    pub(super) segments: HashMap<ExecutionId, Pending>,
    pub(super) order: Vec<ExecutionId>,
    /// Commands issued in it.
    pub(super) issued: Vec<TaskKey>,
    /// Those of them to be run once the commit is durable.
    pub(super) after: Vec<TaskKey>,
    /// Commands nobody needs any more, once the commit is durable.
    pub(super) withdrawn: Vec<TaskKey>,
    pub(super) ended: Vec<(ExecutionId, Ended)>,
    pub(super) recorded: Vec<oneshot::Sender<Result<bool, EngineError>>>,
    pub(super) keep: Vec<(Tenant, Bytes)>,
    /// What is kept with this commit and may be asked for before it, by sha256.
    pub(super) coming: HashMap<String, Bytes>,
    /// What follows from it and had to wait for the next cycle.
    pub(super) later: Vec<Queued>,
}

/// The segment of one execution.
#[derive(Clone)]
pub(super) struct Pending {
    pub(super) events: Vec<u8>,
    pub(super) opens: bool,
    pub(super) ends: bool,
    pub(super) decided_by: Digest,
    pub(super) tenant: Tenant,
    pub(super) root: ExecutionId,
    /// Segments in the chain before this one.
    pub(super) version: u64,
    /// Last event before this segment.
    pub(super) event_before: u64,
}

/// A commit that has been handed to the log.
pub(super) struct InFlight {
    ticket: Ticket,
    cycle: Cycle,
    submitted: Instant,
}

impl InFlight {
    pub(super) fn try_answer(&mut self) -> Option<Answer> {
        try_ticket(&mut self.ticket)
    }

    pub(super) async fn answer(&mut self) -> Answer {
        (&mut self.ticket).await.unwrap_or_else(|_| Err(gone()))
    }
}

impl Shard {
    pub(super) async fn cycle(&mut self, kernel: &Arc<Kernel>) {
        let mut cycle = Cycle::default();
        let began = Instant::now();
        let mut work = self.inbox.take(BATCH);
        while !work.is_empty() {
            let decided = self.decide(kernel, &mut cycle, work).await;
            let mut next = Vec::new();
            let mut pure = Vec::new();
            for (queued, answer) in decided {
                self.settle(kernel, &mut cycle, queued, answer, &mut next, &mut pure);
            }
            if began.elapsed() < PURE_TIME {
                next.extend(self.run_pure(kernel, pure, &mut cycle.after).await);
            } else {
                // Whatever goes on without end (a playbook that starts itself) must not keep others from their commit.
                cycle.after.extend(pure);
                cycle.later.append(&mut next);
            }
            work = next;
        }
        self.submit(kernel, cycle).await;
    }

    async fn submit(&mut self, kernel: &Arc<Kernel>, mut cycle: Cycle) {
        if cycle.order.is_empty() {
            // Everything was refused or known; those who asked have been told, except who waits for a record.
            cycle.recorded.drain(..).for_each(|answer| drop(answer.send(Ok(false))));
            return;
        }
        for (tenant, bytes) in std::mem::take(&mut cycle.keep) {
            let digest = Digest::of(&bytes);
            let payloads = kernel.payloads();
            if let Err(error) = tokio::try_join!(payloads.put_bytes(bytes), payloads.give(&tenant, &digest)) {
                self.failed(cycle, &AppendError::Io(Arc::new(error)));
                return;
            }
        }
        let appends = cycle.order.iter().map(|execution| append(*execution, &cycle.segments[execution])).collect();
        let ticket = kernel.log().submit(appends);
        self.in_flight = Some(InFlight { ticket, cycle, submitted: Instant::now() });
    }

    /// The log has answered.
    pub(super) fn committed(&mut self, answer: Answer) {
        let Some(InFlight { cycle, submitted, .. }) = self.in_flight.take() else { return };
        self.shared.metrics.commit(submitted.elapsed(), cycle.order.len());
        if let Err(error) = answer {
            self.failed(cycle, &error);
            return;
        }
        for execution in &cycle.order {
            if let Some(live) = self.live.get_mut(execution) {
                live.version += 1;
                self.shared.consider_checkpoint(*execution, live.version);
            }
        }
        for (execution, ended) in cycle.ended {
            self.shared.metrics.ended(&ended.status);
            self.timers.clear(&Due::Wake(execution));
            self.evict.push(execution.0);
            for waiter in self.live.remove(&execution).into_iter().flat_map(|live| live.waiters) {
                // Whoever went away does not need the answer.
                let _ = waiter.send(Ok(ended.clone()));
            }
        }
        cycle.recorded.into_iter().for_each(|answer| drop(answer.send(Ok(true))));
        for key in cycle.withdrawn {
            self.withdraw(&key);
        }
        for mut queued in cycle.later {
            queued.about.derived = false;
            self.accept(queued);
        }
        for key in cycle.after {
            self.dispatch(key);
        }
    }

    /// Nothing of the cycle happened. Its executions are built anew from the log before they are driven again.
    fn failed(&mut self, cycle: Cycle, error: &AppendError) {
        tracing::error!(%error, executions = cycle.order.len(), "a commit failed; its inputs are driven again");
        self.shared.metrics.commit_failures.inc();
        let evict: Vec<u64> = cycle.order.iter().map(|execution| execution.0).collect();
        if let Some(service) = &self.orchestrator
            && self.residents.evict(&service.module, &evict).is_err()
        {
            self.residents.forget(service.digest());
        }
        let store = || EngineError::Store(error.to_string());
        for key in &cycle.issued {
            self.tasks.remove(key);
            if let Some(live) = self.live.get_mut(&key.execution) {
                live.commands.remove(&key.command);
            }
        }
        for execution in &cycle.order {
            let pending = &cycle.segments[execution];
            if pending.opens {
                let waiters = self.live.remove(execution).into_iter().flat_map(|live| live.waiters);
                waiters.for_each(|waiter| drop(waiter.send(Err(store()))));
            } else if let Some(live) = self.live.get_mut(execution) {
                live.last_event = pending.event_before;
            }
        }
        cycle.recorded.into_iter().for_each(|answer| drop(answer.send(Err(store()))));
        for (input, about) in cycle.inputs {
            match (&input.what, about.reply) {
                // Whoever asked for a start is told now, and asks again if it still matters.
                (Happening::Start(start), reply) if start.parent.is_none() => {
                    reply.refuse(store());
                }
                (_, reply) => {
                    reply.refuse(store());
                    let about = About { reply: Reply::Nobody, ..about };
                    let tenant = about.tenant.clone();
                    self.inbox.push(&tenant, ExecutionId(input.execution), Queued { input, about });
                }
            }
        }
        self.paused = true;
        self.timers.set(Due::Again, self.shared.clock.now_ms() + AGAIN_MS);
    }
}

fn append(execution: ExecutionId, pending: &Pending) -> Append {
    let header = Header {
        opens: pending.opens,
        ends: pending.ends,
        root: pending.root,
        decided_by: pending.decided_by,
        tenant: pending.tenant.clone(),
    };
    Append {
        stream: stream_of(execution),
        expected: Expected::Version(pending.version),
        key: None,
        body: header.encode(&pending.events),
    }
}

/// A cycle's segments together with decisions that are being made, while a failed batch is driven one by one.
pub(super) struct Overlay {
    cycle: Cycle,
    /// Last events as they were before.
    before: HashMap<ExecutionId, u64>,
}

impl Overlay {
    pub(super) fn new(cycle: &Cycle) -> Self {
        let segments = cycle.segments.iter().map(|(execution, pending)| (*execution, pending.clone())).collect();
        Self { cycle: Cycle { segments, ..Cycle::default() }, before: HashMap::new() }
    }

    pub(super) fn cycle(&self) -> &Cycle {
        &self.cycle
    }

    /// The events of a decision count for the next load and the next check of ids.
    pub(super) fn add(&mut self, input: &Input, decision: &Decision, live: &mut HashMap<ExecutionId, Live>) {
        let execution = ExecutionId(input.execution);
        let (Outcome::Decided(decided), Some(live)) = (&decision.outcome, live.get_mut(&execution)) else { return };
        self.before.entry(execution).or_insert(live.last_event);
        live.last_event = check_events(&decided.events, live.last_event).unwrap_or(live.last_event);
        let pending = self.cycle.segments.entry(execution).or_insert_with(|| Pending {
            events: Vec::new(),
            opens: false,
            ends: false,
            decided_by: decision.decided_by,
            tenant: live.tenant.clone(),
            root: live.root,
            version: live.version,
            event_before: live.last_event,
        });
        pending.events.extend_from_slice(&decided.events);
    }

    /// The decisions are settled as usual afterwards, and count then.
    pub(super) fn undo(self, live: &mut HashMap<ExecutionId, Live>) {
        for (execution, last_event) in self.before {
            if let Some(live) = live.get_mut(&execution) {
                live.last_event = last_event;
            }
        }
    }
}
