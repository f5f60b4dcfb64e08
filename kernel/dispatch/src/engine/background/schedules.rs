//! Starting what is scheduled. When something is due is decided in a component; the kernel waits and starts.
//!
//! A run has a key made of its playbook and time, so that a restart between starting it and noting it down does not
//! start it twice.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use noetl_contract::Tenant;
use noetl_registry::playbooks::PlaybookEntry;
use tokio::sync::watch;

use super::super::api::{Dedup, EngineError, Execute};
use super::super::services::Role;
use super::super::{Back, Shared};

/// The wall clock may be set at any time, so nobody sleeps longer than this.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);
/// A run is started once, however long ago its time was.
const WINDOW: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

pub async fn follow(kernel: Back, shared: Arc<Shared>, mut stopping: watch::Receiver<bool>) {
    let mut revision = shared.playbooks.revision();
    while !*stopping.borrow() {
        revision.borrow_and_update();
        let mut sleep = LONGEST_SLEEP;
        for entry in shared.playbooks.scheduled() {
            let Some(kernel) = kernel.upgrade() else { return };
            match due(&kernel, &shared, &entry).await {
                Ok(Some(next)) => sleep = sleep.min(Duration::from_millis(next.saturating_sub(wall_ms()))),
                Ok(None) => {}
                Err(problem) => {
                    tracing::error!(playbook = entry.path.as_str(), %problem, "the schedule could not be followed");
                }
            }
        }
        tokio::select! {
            () = tokio::time::sleep(sleep.max(Duration::from_millis(10))) => {}
            changed = revision.changed() => if changed.is_err() { return },
            _ = stopping.changed() => return,
        }
    }
}

/// Starts what is due of one playbook; answers when it is due next.
async fn due(kernel: &Arc<crate::Kernel>, shared: &Shared, entry: &PlaybookEntry) -> Result<Option<u64>, String> {
    let Some(schedule) = entry.schedule.as_ref() else { return Ok(None) };
    let tenant = entry.tenant.tenant().cloned().unwrap_or_else(Tenant::main);
    let (owner, path) = (tenant.as_str(), entry.path.as_str());
    let known = shared.projections.schedule_last_ms(owner, path).map_err(|error| error.to_string())?;
    let (last, now) = (known.unwrap_or(entry.registered_ms), wall_ms());
    let text = schedule.to_string();
    let engine = kernel.engine();
    let asked = engine
        .background
        .ask(Role::Orchestrator, move |residents, service| residents.due(&service.module, &text, last, now));
    let due = asked.await.map_err(|error| error.to_string())??;
    for time in &due.runs {
        let payload = serde_json::json!({"schedule": {"time_ms": time}});
        let mut payload = payload.as_object().cloned().unwrap_or_default();
        if let Some(given) = schedule.get("payload").and_then(|given| given.as_object()) {
            payload.extend(given.clone());
        }
        let execute = Execute {
            tenant: tenant.clone(),
            path: path.to_owned(),
            version: None,
            payload: serde_json::Value::Object(payload).to_string(),
            pool: None,
            trace: None,
            requested_by: "schedule".to_owned(),
            dedup: Some(Dedup { key: format!("schedule/{path}/{time}"), window: WINDOW }),
        };
        match engine.execute(execute).await {
            Ok(_) => {}
            Err(error @ (EngineError::Overloaded { .. } | EngineError::Stopping | EngineError::Store(_))) => {
                return Err(error.to_string());
            }
            Err(error) => tracing::error!(playbook = path, %error, "a scheduled run could not be started"),
        }
    }
    if !due.runs.is_empty() || known.is_none() {
        let upto = due.runs.last().copied().unwrap_or(last).max(last);
        shared.projections.put_schedule_last_ms(owner, path, upto).map_err(|error| error.to_string())?;
    }
    Ok(due.next_ms)
}

fn wall_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}
