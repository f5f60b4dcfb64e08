//! Taking up what was running when the server stopped.
//!
//! Which executions are open is known from the headers in the log: the tables remember it up to their cursor, and the
//! tail behind it is read. No component is asked, so a broken one cannot hide an execution.
//!
//! The state of each is built from its chain. Commands that were under way are lost, because their worker was this
//! process: what may run again does, and what may not is reported with an unknown outcome.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use noetl_contract::{PluginPath, Tenant};
use noetl_host::services::orchestration::{ChildEnded, Command, Happening, Owed};
use noetl_registry::Selector;
use noetl_store::log::{Log, ReadError};

use super::ids::ExecutionId;
use super::message::{Message, Queued, Reply};
use super::segment::{Header, execution_of, stream_of};
use super::services::Role;
use super::shard::{Live, Shard};
use super::timers::Due;
use super::tools::plain;
use super::{PAGE, Shared};
use crate::Kernel;

/// Every execution that has begun and not ended: its tenant and the root of its tree.
pub fn open_executions(shared: &Shared) -> Result<Vec<(ExecutionId, Tenant, ExecutionId)>, ReadError> {
    let mut open = BTreeMap::new();
    for (execution, tenant, root) in shared.projections.open_executions().unwrap_or_default() {
        if let Ok(tenant) = Tenant::new(tenant) {
            open.insert(ExecutionId(execution), (tenant, ExecutionId(root)));
        }
    }
    let mut after = shared.projections.cursor();
    loop {
        let segments = shared.log.read_all(after, PAGE)?;
        let Some(last) = segments.last() else { break };
        after = last.position;
        for segment in &segments {
            let Some(execution) = execution_of(&segment.stream) else { continue };
            let Some((header, _)) = Header::decode(&segment.body) else { continue };
            if header.ends {
                open.remove(&execution);
            } else if header.opens {
                open.insert(execution, (header.tenant, header.root));
            }
        }
    }
    Ok(open.into_iter().map(|(execution, (tenant, root))| (execution, tenant, root)).collect())
}

impl Shard {
    pub(super) async fn recover(
        &mut self,
        kernel: &Arc<Kernel>,
        execution: ExecutionId,
        tenant: Tenant,
        root: ExecutionId,
    ) {
        let head = self.shared.log.head(&stream_of(execution)).ok().flatten();
        let Some(head) = head else { return };
        let live = Live {
            tenant: tenant.clone(),
            path: String::new(),
            root,
            parent: None,
            version: head.version,
            last_event: self.last_event(execution, head.version),
            last_ms: 0,
            depth: 0,
            commands: HashSet::new(),
            waiters: Vec::new(),
        };
        self.live.insert(execution, live);
        match self.load_anyhow(kernel, execution).await {
            Ok(owed) if owed.ended => {
                self.live.remove(&execution);
            }
            Ok(owed) => self.take_up(kernel, execution, &tenant, owed),
            Err(reason) => {
                let abort = Happening::Abort(format!("it could not be taken up after a restart: {reason}"));
                self.accept(Queued::new(execution, tenant, abort, Reply::Nobody));
            }
        }
    }

    /// Loads an execution on the version that serves, or on one before it.
    async fn load_anyhow(&mut self, kernel: &Arc<Kernel>, execution: ExecutionId) -> Result<Owed, String> {
        if self.orchestrator.is_none() {
            self.refresh(kernel).await;
        }
        let service = self.orchestrator.clone().ok_or("no orchestrator can be made ready")?;
        let fault = match self.load_state(kernel, &service, execution, None).await {
            Ok(loaded) => return loaded,
            Err(fault) => fault,
        };
        kernel.service_faulted(&service.entry, &fault).await;
        let mut reason = fault.message;
        for version in kernel.stand_ins(Role::Orchestrator, service.digest()).await {
            let loaded = self.load_state(kernel, &version, execution, None).await;
            // Its state must not be met again when the other version has gone on with it.
            self.residents.forget(version.digest());
            match loaded {
                Ok(loaded) => return loaded,
                Err(fault) => reason = fault.message,
            }
        }
        Err(reason)
    }

    fn take_up(&mut self, kernel: &Arc<Kernel>, execution: ExecutionId, tenant: &Tenant, owed: Owed) {
        if let Some(live) = self.live.get_mut(&execution) {
            live.path = owed.path;
            live.parent = owed.parent.map(|parent| (ExecutionId(parent.execution), parent.command));
            live.last_event = owed.last_event;
            live.commands = owed.commands.iter().map(|command| command.id.as_str().into()).collect();
        }
        if let Some(at) = owed.wake_at {
            self.timers.set(Due::Wake(execution), at);
        }
        for command in owed.commands {
            let safe = may_run_again(kernel, tenant, &command);
            let lost = Happening::Lost((command.id, safe));
            self.accept(Queued::new(execution, tenant.clone(), lost, Reply::Nobody));
        }
        let mut next = Vec::new();
        for child in owed.children {
            self.bear(execution, tenant, child, &mut next);
        }
        for mut queued in next {
            queued.about.derived = false;
            self.accept(queued);
        }
        let waiting = owed.waiting.into_iter();
        self.unaccounted.extend(waiting.map(|(command, child)| (execution, command, ExecutionId(child))));
    }

    /// Everything is taken up: a parent whose child is not there any more is told what became of it.
    pub(super) fn recovered(&mut self, kernel: &Arc<Kernel>) {
        for (parent, command, child) in std::mem::take(&mut self.unaccounted) {
            let Some(live) = self.live.get(&parent).filter(|_| !self.live.contains_key(&child)) else { continue };
            let (tenant, sender, kernel) = (live.tenant.clone(), self.sender.clone(), kernel.clone());
            let Some(threads) = kernel.host.threads().cloned() else { continue };
            threads.spawn(async move {
                let (status, body) = match kernel.engine().ended(child).await {
                    Ok(ended) => (ended.status, ended.body),
                    Err(error) => {
                        let error = serde_json::json!({"code": error.code(), "message": error.to_string()});
                        (
                            "failed".to_owned(),
                            serde_json::json!({"output": {"value": null}, "error": error}).to_string(),
                        )
                    }
                };
                let told = ChildEnded { command, execution: child.0, status, body };
                let queued = Queued::new(parent, tenant, Happening::ChildEnded(told), Reply::Nobody);
                let _ = sender.send(Message::Input(Box::new(queued)));
            });
        }
    }

    /// The id of the last event of a chain, read without any component.
    fn last_event(&self, execution: ExecutionId, version: u64) -> u64 {
        let read = self.shared.log.read_stream(&stream_of(execution), version, 1).ok();
        let segment = read.and_then(|mut read| read.pop());
        segment.and_then(|segment| super::queries::last_event(&segment)).unwrap_or(0)
    }
}

/// Whether a command nobody knows the outcome of may be run again.
fn may_run_again(kernel: &Kernel, tenant: &Tenant, command: &Command) -> bool {
    command.retry_safe.unwrap_or_else(|| {
        !command.tools.is_empty()
            && command.tools.iter().all(|kind| {
                // A child that was started is found again, whatever it does.
                kind == "playbook" || is_retry_safe(kernel, tenant, kind)
            })
    })
}

fn is_retry_safe(kernel: &Kernel, tenant: &Tenant, kind: &str) -> bool {
    // The playbook says so of this very call.
    if plain(kind) != kind {
        return true;
    }
    let path = kind.strip_prefix("wasm:").map_or_else(|| format!("tools/{kind}"), str::to_owned);
    let Ok(path) = PluginPath::new(path) else { return false };
    let found = kernel.catalog.resolve(tenant, &path, &Selector::default());
    found.is_ok_and(|resolved| resolved.entry.manifest.retry_safe)
}
