//! What the engine does beside driving: bring the log into the tables, publish, write checkpoints, start what is
//! scheduled, and answer questions that need a component.
//!
//! All of it follows the log with a cursor of its own, so each can stop, fall behind or be broken without holding up an
//! execution, and catches up by itself.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use noetl_contract::Tenant;
use noetl_host::{Fault, Residents};
use noetl_store::log::{Append, Expected, Log, StreamId};
use parking_lot::RwLock;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{oneshot, watch};

use super::api::EngineError;
use super::ids::ExecutionId;
use super::services::{Role, Service};
use super::{Back, Shared};
use crate::Kernel;

mod checkpoints;
pub mod outbox;
mod projector;
mod schedules;

pub use checkpoints::CHECKPOINT_EVERY;

/// Ids of executions that were deleted, a segment each.
pub(super) const DELETED: &str = "executions/deleted";

type Question = Box<dyn FnOnce(&mut Residents) + Send>;

pub struct Background {
    kernel: Back,
    questions: UnboundedSender<Question>,
    deleted: Arc<RwLock<HashSet<ExecutionId>>>,
    pub(super) outbox: outbox::Outbox,
}

/// Runs a future on a thread of its own, which ends with it.
pub(super) fn thread(name: String, work: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name(name).spawn(move || runtime.block_on(work)).map(|_| ())
}

impl Background {
    pub(super) fn start(
        kernel: &Arc<Kernel>,
        shared: &Arc<Shared>,
        due: UnboundedReceiver<ExecutionId>,
        stopping: watch::Receiver<bool>,
    ) -> io::Result<Self> {
        let (questions, mut asked) = unbounded_channel::<Question>();
        let mut residents = kernel.host.residents();
        thread("engine-answers".to_owned(), async move {
            while let Some(question) = asked.recv().await {
                question(&mut residents);
            }
        })?;
        let back = Arc::downgrade(kernel);
        let deleted = Arc::new(RwLock::new(read_deleted(shared)));
        projector::start(back.clone(), shared.clone(), kernel.host.residents(), stopping.clone())?;
        let outbox = outbox::Outbox::start(back.clone(), shared.clone(), kernel.host.residents(), stopping.clone())?;
        tokio::spawn(checkpoints::write(back.clone(), shared.clone(), due));
        tokio::spawn(schedules::follow(back.clone(), shared.clone(), stopping));
        Ok(Self { kernel: back, questions, deleted, outbox })
    }

    /// Asks a service something; a version that fails is replaced by the one before it.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        role: Role,
        question: impl Fn(&mut Residents, &Service) -> Result<T, Fault> + Send + Sync + 'static,
    ) -> Result<T, EngineError> {
        let kernel = self.kernel.upgrade().ok_or(EngineError::Stopping)?;
        let unavailable = |reason: String| EngineError::Service { service: role.path().to_string(), reason };
        let first = kernel.service(role).await.map_err(unavailable)?;
        let question = Arc::new(question);
        let mut reason = match self.ask_version(&first, &question).await? {
            Ok(answer) => {
                kernel.service_worked(&first.entry);
                return Ok(answer);
            }
            Err(fault) => {
                kernel.service_faulted(&first.entry, &fault).await;
                fault.message
            }
        };
        for version in kernel.stand_ins(role, first.digest()).await {
            match self.ask_version(&version, &question).await? {
                Ok(answer) => return Ok(answer),
                Err(fault) => reason = fault.message,
            }
        }
        Err(unavailable(reason))
    }

    async fn ask_version<T: Send + 'static>(
        &self,
        service: &Service,
        question: &Arc<impl Fn(&mut Residents, &Service) -> Result<T, Fault> + Send + Sync + 'static>,
    ) -> Result<Result<T, Fault>, EngineError> {
        let (answer, answered) = oneshot::channel();
        let (service, question) = (service.clone(), question.clone());
        let asked = self.questions.send(Box::new(move |residents| {
            // Whoever asked may have gone away.
            let _ = answer.send(question(residents, &service));
        }));
        asked.map_err(|_| EngineError::Stopping)?;
        answered.await.map_err(|_| EngineError::Stopping)
    }

    /// Lets go of instances of versions that do not serve any more.
    pub(super) async fn release(&self) {
        let Some(kernel) = self.kernel.upgrade() else { return };
        let mut digests = Vec::new();
        for role in Role::ALL {
            digests.extend(kernel.service(role).await.map(|service| service.digest()).ok());
        }
        let _ = self.questions.send(Box::new(move |residents| residents.keep_only(&digests)));
    }

    pub(super) fn is_deleted(&self, execution: ExecutionId) -> bool {
        self.deleted.read().contains(&execution)
    }

    pub(super) async fn delete(
        &self,
        shared: &Shared,
        execution: ExecutionId,
        tenant: &Tenant,
    ) -> Result<(), EngineError> {
        let body = serde_json::json!({"execution": execution.to_string(), "tenant": tenant}).to_string();
        let key = Some(execution.to_string());
        let append = Append { stream: StreamId::new(DELETED), expected: Expected::Any, key, body: body.into() };
        shared.log.append(append).await.map_err(|error| EngineError::Store(error.to_string()))?;
        self.deleted.write().insert(execution);
        Ok(())
    }
}

/// The execution a segment of [`DELETED`] names.
fn deleted_id(body: &[u8]) -> Option<ExecutionId> {
    let body: serde_json::Value = serde_json::from_slice(body).ok()?;
    body["execution"].as_str()?.parse().ok()
}

fn read_deleted(shared: &Shared) -> HashSet<ExecutionId> {
    let stream = StreamId::new(DELETED);
    let mut deleted = HashSet::new();
    let mut from = 1;
    while let Ok(read) = shared.log.read_stream(&stream, from, super::PAGE)
        && !read.is_empty()
    {
        from += read.len() as u64;
        deleted.extend(read.iter().filter_map(|segment| deleted_id(&segment.body)));
    }
    deleted
}
