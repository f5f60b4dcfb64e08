//! Playbooks a pipeline starts. (A step that is nothing but a sub-playbook is started by the drive itself.)
//!
//! A pipeline that is run again after a crash must find the child it started, not start another: the child's id is
//! put down under the command's key first, and the log knows a key it has seen. A rule that tries a playbook again, or
//! comes back to it, asks for another child, and its key is another one.
//!
//! Which step's result is wanted goes into the child's start, so that its end tells it, whoever asks and whenever.

use std::sync::Arc;
use std::time::Duration;

use noetl_contract::Tenant;
use noetl_host::services::orchestration::{ChildStarted, Happening};
use noetl_host::services::running::{Execute, Executed, News};
use noetl_store::log::{Append, Expected, Log, StreamId};
use tokio::sync::oneshot;

use super::api::{Ended, EngineError};
use super::ids::ExecutionId;
use super::message::{Message, Queued, Reply};
use super::settle::DEEPEST;
use super::shard::Shard;
use super::tasks::TaskKey;
use crate::Kernel;

/// A child may take as long as it likes, unless its tool says how long; its own time-outs end it.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// The end of a child that was not waited for any longer, by a code that no playbook ends with by itself: the runner makes
/// `timeout` of it.
const LATE: &str = "child_timeout";

impl Shard {
    pub(super) fn execute_child(&mut self, kernel: &Arc<Kernel>, key: TaskKey, execute: Execute) {
        let Some(threads) = kernel.host.threads() else { return };
        let (root, depth) = self.live.get(&key.execution).map_or((key.execution, 0), |live| (live.root, live.depth));
        let Some(task) = self.tasks.get_mut(&key) else { return };
        // While its child runs it keeps no tool busy; with its slot, a tree of playbooks could wait for itself.
        if std::mem::take(&mut task.has_slot) {
            self.pools.release(&task.command.pool);
        }
        let (sender, tenant, kernel) = (self.sender.clone(), task.tenant.clone(), kernel.clone());
        let running = threads.spawn(async move {
            let started = match depth < DEEPEST {
                true => start_and_wait(&kernel, &tenant, &key, root, execute).await,
                false => Err(EngineError::Refused(format!("playbooks start each other {DEEPEST} deep"))),
            };
            let executed = match started {
                Ok(executed) => executed,
                Err(error) => {
                    let body = failure(error.code(), &error.to_string());
                    Executed { execution: 0, status: "failed".to_owned(), body }
                }
            };
            let _ = sender.send(Message::News(key, News::Executed(executed)));
        });
        task.running = Some(running.abort_handle());
    }
}

async fn start_and_wait(
    kernel: &Arc<Kernel>,
    tenant: &Tenant,
    key: &TaskKey,
    root: ExecutionId,
    execute: Execute,
) -> Result<Executed, EngineError> {
    let engine = kernel.engine();
    let Execute { path, version, payload, wait, returns, timeout_ms, label, visit } = execute;
    let entry = engine.shared().playbook(tenant, &path, version);
    let entry = entry.ok_or_else(|| EngineError::PlaybookNotFound { path: path.clone(), version })?;
    let (execution, known) = claim(kernel, key, &label, visit).await?;
    let store = |error: noetl_store::log::ReadError| EngineError::Store(error.to_string());
    let exists = known && kernel.log().head(&super::segment::stream_of(execution)).map_err(store)?.is_some();
    if !exists {
        let (answer, recorded) = oneshot::channel();
        // No parent is named: the pipeline waits for it itself, and its end is no input of the parent.
        let requested_by = format!("execution {}", key.execution);
        let mut start = engine.shared().start(&entry, tenant, payload, None, root, requested_by);
        start.returns = returns;
        let queued = Queued::new(execution, tenant.clone(), Happening::Start(start), Reply::Recorded(answer));
        engine.send(root, Message::Input(Box::new(queued)))?;
        recorded.await.map_err(|_| EngineError::Stopping)??;
    }
    if !wait {
        return Ok(Executed { execution: execution.0, status: "started".to_owned(), body: "{}".to_owned() });
    }
    // So that the parent's chain says who is waited for, and the child ends with it.
    let told = ChildStarted { command: key.command.to_string(), execution: execution.0, by: Some((label, path)) };
    let queued = Queued::new(key.execution, tenant.clone(), Happening::ChildStarted(told), Reply::Nobody);
    engine.send(root, Message::Input(Box::new(queued)))?;
    let patience = timeout_ms.map_or(FOR_EVER, Duration::from_millis);
    if let Some(Ended { status, body }) = engine.wait(execution, patience).await? {
        return Ok(Executed { execution: execution.0, status, body });
    }
    let late = format!("the playbook did not end in {} ms", patience.as_millis());
    // Its end may have come at the same moment; then there is nothing to cancel.
    let _ = engine.cancel(execution, &late, &format!("execution {}", key.execution)).await;
    Ok(Executed { execution: execution.0, status: "failed".to_owned(), body: failure(LATE, &late) })
}

fn failure(code: &str, message: &str) -> String {
    let error = serde_json::json!({"code": code, "message": message, "retryable": false});
    serde_json::json!({"output": {"value": null}, "error": error}).to_string()
}

/// The child's id, and whether it was put down before.
async fn claim(kernel: &Kernel, key: &TaskKey, label: &str, visit: u32) -> Result<(ExecutionId, bool), EngineError> {
    let fresh = kernel.engine().shared().mint.next();
    let append = Append {
        stream: StreamId::new(format!("children/{}", key.execution)),
        expected: Expected::Any,
        key: Some(noetl_contract::Digest::of(key.idempotency_key(label, visit).as_bytes()).hex()),
        body: fresh.to_string().into_bytes().into(),
    };
    let appended = kernel.log().append(append).await.map_err(|error| EngineError::Store(error.to_string()))?;
    if !appended.duplicate {
        return Ok((fresh, false));
    }
    let store = |error: noetl_store::log::ReadError| EngineError::Store(error.to_string());
    let segments = kernel.log().read_all(appended.position.saturating_sub(1), 1).map_err(store)?;
    let text = segments.first().map(|segment| String::from_utf8_lossy(&segment.body).into_owned());
    let known = text.and_then(|text| text.parse().ok());
    known.map(|execution| (execution, true)).ok_or_else(|| EngineError::Store("a child's id cannot be read".to_owned()))
}
