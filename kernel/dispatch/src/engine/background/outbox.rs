//! The outbox: everything that was appended, handed on at least once and in order.
//!
//! What to publish and when is the publisher component's business; it is a function of a small state that the kernel
//! keeps, so a restart goes on where it was. Two receivers have a state each: the followers in this process (`hub`), and
//! whoever claims over the internal API (`outside`), for instance a bridge to a broker. Publishing is woken by the log
//! and by the times the component asks for, never by somebody else's traffic.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use noetl_host::Residents;
use noetl_host::services::publishing::{Extent, Lease, Plan, ResultOf};
use noetl_store::log::Log;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot, watch};

use super::super::api::EngineError;
use super::super::segment::{execution_of, for_services};
use super::super::services::Role;
use super::super::{Back, Engine, Shared};
use super::thread;

/// A claimed piece of the outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxRow {
    /// To be named when it is published or failed.
    pub lease: u64,
    pub subject: String,
    pub key: String,
    pub payload: Vec<u8>,
    pub attempts: u32,
}

/// What is kept between starts.
#[derive(Default, Serialize, Deserialize)]
struct Kept {
    hub: Vec<u8>,
    outside: Vec<u8>,
}

enum Ask {
    Claim { limit: usize, answer: oneshot::Sender<Result<Vec<OutboxRow>, EngineError>> },
    Settle { results: Vec<(u64, Option<String>)>, answer: oneshot::Sender<Result<usize, EngineError>> },
    Pending { answer: oneshot::Sender<Result<u64, EngineError>> },
}

pub struct Outbox(mpsc::UnboundedSender<Ask>);

struct Publisher {
    kernel: Back,
    shared: Arc<Shared>,
    residents: Residents,
    kept: Kept,
    /// Leases of the outside that are out, and up to where each goes.
    out: Vec<(u64, u64)>,
    kept_at: Instant,
}

/// How often the place of the followers is written down.
const KEEP_EVERY: Duration = Duration::from_secs(1);

impl Outbox {
    pub(super) fn start(
        kernel: Back,
        shared: Arc<Shared>,
        residents: Residents,
        stopping: watch::Receiver<bool>,
    ) -> io::Result<Self> {
        let (asks, asked) = mpsc::unbounded_channel();
        let kept = shared.projections.outbox_state().ok().flatten();
        let kept = kept.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        let publisher = Publisher { kernel, shared, residents, kept, out: Vec::new(), kept_at: Instant::now() };
        thread("publisher".to_owned(), publisher.run(asked, stopping))?;
        Ok(Self(asks))
    }
}

impl Engine {
    /// Hands out what has not been published, leased for a while.
    pub async fn outbox_claim(&self, limit: usize) -> Result<Vec<OutboxRow>, EngineError> {
        self.outbox(|answer| Ask::Claim { limit, answer }).await
    }

    pub async fn outbox_mark_published(&self, leases: &[u64]) -> Result<usize, EngineError> {
        let results = leases.iter().map(|lease| (*lease, None)).collect();
        self.outbox(|answer| Ask::Settle { results, answer }).await
    }

    /// It is handed out again after a while that doubles.
    pub async fn outbox_mark_failed(&self, lease: u64, error: &str) -> Result<usize, EngineError> {
        let results = vec![(lease, Some(error.to_owned()))];
        self.outbox(|answer| Ask::Settle { results, answer }).await
    }

    /// Positions of the log that have not been published outside.
    pub async fn outbox_pending(&self) -> Result<u64, EngineError> {
        self.outbox(|answer| Ask::Pending { answer }).await
    }

    async fn outbox<T>(
        &self,
        ask: impl FnOnce(oneshot::Sender<Result<T, EngineError>>) -> Ask,
    ) -> Result<T, EngineError> {
        let (answer, answered) = oneshot::channel();
        self.background.outbox.0.send(ask(answer)).map_err(|_| EngineError::Stopping)?;
        answered.await.map_err(|_| EngineError::Stopping)?
    }
}

impl Publisher {
    async fn run(mut self, mut asked: mpsc::UnboundedReceiver<Ask>, mut stopping: watch::Receiver<bool>) {
        let mut tip = self.shared.log.tip();
        loop {
            let upto = *tip.borrow_and_update();
            let wake_at = match self.publish(upto).await {
                Ok(next) => next,
                Err(problem) => {
                    tracing::error!(%problem, "nothing could be published; trying again");
                    Some(self.shared.clock.now_ms() + 1000)
                }
            };
            let clock = self.shared.clock;
            let timer = async move {
                match wake_at {
                    Some(at) => tokio::time::sleep(clock.until(at)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                changed = tip.changed() => if changed.is_err() { return },
                ask = asked.recv() => match ask {
                    Some(ask) => self.answer(ask).await,
                    None => return,
                },
                () = timer => {}
                _ = stopping.changed() => return,
            }
        }
    }

    /// Publishes to the followers in this process until nothing is left.
    async fn publish(&mut self, tip: u64) -> Result<Option<u64>, String> {
        let (mut extents, mut results) = (Vec::new(), Vec::new());
        loop {
            let state = std::mem::take(&mut self.kept.hub);
            let plan = self.tick(&state, tip, &extents, &results).await;
            let plan = match plan {
                Ok(plan) => plan,
                Err(problem) => {
                    self.kept.hub = state;
                    return Err(problem);
                }
            };
            self.shared.metrics.outbox_lag.set(tip.saturating_sub(plan.published));
            self.kept.hub = plan.state;
            if plan.leases.is_empty() {
                // Followers in this process end with it, so where they are is worth a write only now and then.
                if self.kept_at.elapsed() >= KEEP_EVERY {
                    self.keep()?;
                }
                return Ok(plan.wake_at);
            }
            extents.clear();
            results.clear();
            for lease in plan.leases {
                let upto = self.announce(&lease, tip)?;
                extents.push(Extent { lease: lease.id, upto });
                results.push(ResultOf { lease: lease.id, error: None });
            }
        }
    }

    /// Tells the followers of every execution in a range; answers where the range ends.
    fn announce(&self, lease: &Lease, tip: u64) -> Result<u64, String> {
        let read = self.shared.log.read_all(lease.after, lease.limit as usize).map_err(|error| error.to_string())?;
        let end = lease.upto.unwrap_or(tip);
        let mut upto = lease.after;
        for segment in read.iter().filter(|segment| segment.position <= end) {
            upto = segment.position;
            if let Some(execution) = execution_of(&segment.stream) {
                self.shared.metrics.published.inc();
                self.shared.hub.publish(execution);
            }
        }
        Ok(if upto == lease.after { end } else { upto })
    }

    async fn answer(&mut self, ask: Ask) {
        match ask {
            Ask::Claim { limit, answer } => drop(answer.send(self.claim(limit).await)),
            Ask::Settle { results, answer } => drop(answer.send(self.settle(results).await)),
            Ask::Pending { answer } => {
                let tip = *self.shared.log.tip().borrow();
                let plan = self.outside(&[], &[]).await;
                drop(answer.send(plan.map(|plan| tip.saturating_sub(plan.published))));
            }
        }
    }

    async fn claim(&mut self, limit: usize) -> Result<Vec<OutboxRow>, EngineError> {
        let plan = self.outside(&[], &[]).await?;
        let mut rows = Vec::new();
        let (mut extents, mut empty) = (Vec::new(), Vec::new());
        for lease in plan.leases {
            let most = (lease.limit as usize).min(limit.max(1));
            let store = |error: noetl_store::log::ReadError| EngineError::Store(error.to_string());
            let mut read = self.shared.log.read_all(lease.after, most).map_err(store)?;
            read.retain(|segment| lease.upto.is_none_or(|upto| segment.position <= upto));
            let upto = read.last().map_or(lease.after, |segment| segment.position);
            let segments: Vec<_> = read.iter().filter_map(for_services).collect();
            extents.push(Extent { lease: lease.id, upto });
            if segments.is_empty() {
                // Nothing for anybody is in the range: it is published as it is.
                empty.push(ResultOf { lease: lease.id, error: None });
                continue;
            }
            let messages = self.encode(&segments).await?;
            self.out.push((lease.id, upto));
            rows.extend(messages.into_iter().map(|message| OutboxRow {
                lease: lease.id,
                subject: message.subject,
                key: message.key,
                payload: message.body,
                attempts: lease.attempt,
            }));
        }
        if !extents.is_empty() {
            self.outside(&extents, &empty).await?;
        }
        Ok(rows)
    }

    async fn settle(&mut self, results: Vec<(u64, Option<String>)>) -> Result<usize, EngineError> {
        let known: Vec<_> =
            results.into_iter().filter(|(lease, _)| self.out.iter().any(|(out, _)| out == lease)).collect();
        self.out.retain(|(out, _)| !known.iter().any(|(lease, _)| lease == out));
        let count = known.len();
        let results: Vec<_> = known.into_iter().map(|(lease, error)| ResultOf { lease, error }).collect();
        self.outside(&[], &results).await?;
        Ok(count)
    }

    /// A tick for the receivers outside.
    async fn outside(&mut self, extents: &[Extent], results: &[ResultOf]) -> Result<Plan, EngineError> {
        let tip = *self.shared.log.tip().borrow();
        let state = self.kept.outside.clone();
        let service = |reason: String| EngineError::Service { service: Role::Publisher.path().to_string(), reason };
        let plan = self.tick(&state, tip, extents, results).await.map_err(service)?;
        self.kept.outside = plan.state.clone();
        self.keep().map_err(EngineError::Store)?;
        Ok(plan)
    }

    fn keep(&mut self) -> Result<(), String> {
        self.kept_at = Instant::now();
        let bytes = serde_json::to_vec(&self.kept).map_err(|error| error.to_string())?;
        self.shared.projections.put_outbox_state(&bytes).map_err(|error| error.to_string())
    }

    async fn tick(&mut self, state: &[u8], tip: u64, extents: &[Extent], results: &[ResultOf]) -> Result<Plan, String> {
        let now = self.shared.clock.now_ms();
        self.ask(|residents, module| residents.tick(module, state, now, tip, extents, results)).await
    }

    async fn encode(
        &mut self,
        segments: &[noetl_host::services::chain::Segment],
    ) -> Result<Vec<noetl_host::services::publishing::Message>, EngineError> {
        let answer = self.ask(|residents, module| residents.encode(module, segments)).await;
        answer.map_err(|reason| EngineError::Service { service: Role::Publisher.path().to_string(), reason })
    }

    /// The version that serves, then those before it.
    async fn ask<T>(
        &mut self,
        question: impl Fn(&mut Residents, &Arc<noetl_host::Module>) -> Result<T, noetl_host::Fault>,
    ) -> Result<T, String> {
        let kernel = self.kernel.upgrade().ok_or("the server is stopping")?;
        let service = kernel.service(Role::Publisher).await?;
        self.residents.keep_only(&[service.digest()]);
        let fault = match question(&mut self.residents, &service.module) {
            Ok(answer) => {
                kernel.service_worked(&service.entry);
                return Ok(answer);
            }
            Err(fault) => fault,
        };
        kernel.service_faulted(&service.entry, &fault).await;
        for version in kernel.stand_ins(Role::Publisher, service.digest()).await {
            if let Ok(answer) = question(&mut self.residents, &version.module) {
                return Ok(answer);
            }
        }
        Err(fault.message)
    }
}
