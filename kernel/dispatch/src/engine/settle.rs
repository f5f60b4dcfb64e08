//! What one decision means for the kernel: what goes into the commit, and what follows from it.
//!
//! The orchestrator is a component like any other and may be wrong. What it answers is checked before it touches
//! anything: event lines must be JSON with ids that go on from the last one, and a command that is under way already
//! is not issued again.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use noetl_contract::{Digest, Tenant};
use noetl_host::services::orchestration::{
    Cancel, Child, ChildEnded, ChildStarted, Command, Decided, Happening, Outcome, Parent, Start,
};
use serde::Deserialize;

use super::api::{Ended, EngineError};
use super::cycle::{Cycle, Pending};
use super::ids::ExecutionId;
use super::message::{Queued, Reply};
use super::pools::SYSTEM;
use super::shard::{Live, Shard};
use super::tasks::{Task, TaskKey};
use super::timers::Due;
use crate::Kernel;

/// Playbooks that start each other, one below the other.
pub(super) const DEEPEST: u32 = 64;

/// What came of one input.
pub(super) struct Decision {
    pub(super) outcome: Outcome,
    pub(super) decided_by: Digest,
}

/// The part of an event the kernel looks at.
#[derive(Deserialize)]
struct Line {
    id: u64,
}

/// The id of the last event, or what is wrong with the lines.
pub(super) fn check_events(events: &[u8], last_event: u64) -> Result<u64, String> {
    let mut last = last_event;
    for line in events.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let Line { id } = serde_json::from_slice(line).map_err(|error| format!("an event is not JSON: {error}"))?;
        if id != last + 1 {
            return Err(format!("event {id} does not follow event {last}"));
        }
        last = id;
    }
    Ok(last)
}

impl Shard {
    pub(super) fn settle(
        &mut self,
        kernel: &Arc<Kernel>,
        cycle: &mut Cycle,
        mut queued: Queued,
        decision: Decision,
        next: &mut Vec<Queued>,
        pure: &mut Vec<TaskKey>,
    ) {
        let execution = queued.execution();
        let reply = std::mem::replace(&mut queued.about.reply, Reply::Nobody);
        match decision.outcome {
            Outcome::Ignored(reason) => {
                tracing::debug!(%execution, %reason, "an input changes nothing");
                match reply {
                    Reply::Recorded(answer) => drop(answer.send(Ok(false))),
                    other => other.refuse(EngineError::Refused(reason)),
                }
            }
            Outcome::Refused(reason) => {
                if let Happening::Start(Start { parent: Some(parent), .. }) = &queued.input.what {
                    let error = serde_json::json!({"code": "engine", "message": reason, "retryable": false});
                    let body = serde_json::json!({"output": {"value": null}, "error": error}).to_string();
                    let (command, status) = (parent.command.clone(), "failed".to_owned());
                    let told = ChildEnded { command, execution: execution.0, status, body };
                    let parent = ExecutionId(parent.execution);
                    next.push(Queued::derived(parent, queued.about.tenant.clone(), Happening::ChildEnded(told)));
                }
                reply.refuse(EngineError::Refused(reason));
            }
            Outcome::Needs(_) => reply.refuse(EngineError::Service {
                service: "system/orchestrate".to_owned(),
                reason: "it keeps asking for what it was given".to_owned(),
            }),
            Outcome::Decided(decided) => {
                if let Happening::Start(start) = &queued.input.what {
                    self.open(execution, &queued.about.tenant, start);
                }
                match reply {
                    Reply::Nobody => {}
                    Reply::Recorded(answer) => cycle.recorded.push(answer),
                    Reply::Ended(answer) => {
                        if let Some(live) = self.live.get_mut(&execution) {
                            live.waiters.push(answer);
                        }
                    }
                }
                let kept = queued.about.keep.take();
                cycle.keep.extend(kept.map(|bytes| (queued.about.tenant.clone(), bytes)));
                self.reported(&queued.input.what, execution);
                self.apply(kernel, cycle, &queued, decided, decision.decided_by, next, pure);
                if !queued.about.derived {
                    cycle.inputs.push((queued.input, queued.about));
                }
            }
        }
    }

    fn open(&mut self, execution: ExecutionId, tenant: &Tenant, start: &Start) {
        self.shared.metrics.started.inc();
        let starter = start.requested_by.strip_prefix("execution ").and_then(|id| id.parse().ok());
        let starter = starter.and_then(|starter: ExecutionId| self.live.get(&starter));
        let depth = starter.map_or(0, |starter| starter.depth + 1);
        let parent = start.parent.as_ref().map(|parent| (ExecutionId(parent.execution), parent.command.clone()));
        let live = Live {
            tenant: tenant.clone(),
            path: start.path.clone(),
            root: ExecutionId(start.root),
            parent,
            version: 0,
            last_event: 0,
            last_ms: 0,
            depth,
            commands: HashSet::new(),
            waiters: Vec::new(),
        };
        self.live.insert(execution, live);
    }

    /// A command that is reported is not under way any more.
    fn reported(&mut self, what: &Happening, execution: ExecutionId) {
        let command = match what {
            Happening::Report(report) => &report.command,
            Happening::Lost((command, _)) => command,
            Happening::ChildEnded(ended) => &ended.command,
            _ => return,
        };
        if let Some(live) = self.live.get_mut(&execution) {
            live.commands.remove(command.as_str());
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn apply(
        &mut self,
        kernel: &Arc<Kernel>,
        cycle: &mut Cycle,
        queued: &Queued,
        decided: Decided,
        decided_by: Digest,
        next: &mut Vec<Queued>,
        pure: &mut Vec<TaskKey>,
    ) {
        let execution = queued.execution();
        let Some(live) = self.live.get_mut(&execution) else { return };
        let tenant = live.tenant.clone();
        self.shared.metrics.events.inc_by(record(cycle, live, execution, &decided, decided_by));
        for bytes in decided.keep {
            let bytes = Bytes::from(bytes);
            cycle.coming.insert(Digest::of(&bytes).hex(), bytes.clone());
            cycle.keep.push((tenant.clone(), bytes));
        }
        if let Some(at) = decided.wake_at {
            self.timers.set(Due::Wake(execution), at);
        } else {
            self.timers.clear(&Due::Wake(execution));
        }
        for command in decided.commands {
            if let Some(key) = self.issue(execution, &tenant, command, next) {
                cycle.issued.push(key.clone());
                if self.is_pure(kernel, &key) {
                    pure.push(key);
                } else {
                    cycle.after.push(key);
                }
            }
        }
        for command in decided.withdrawn {
            cycle.withdrawn.push(TaskKey { execution, command: command.into() });
        }
        for child in decided.children {
            self.bear(execution, &tenant, child, next);
        }
        for orphan in decided.orphaned {
            let reason = unwanted(execution, decided.ended.as_ref().map(|ended| ended.status.as_str()));
            let cancel = Cancel { reason, requested_by: "server".to_owned() };
            next.push(Queued::derived(ExecutionId(orphan), tenant.clone(), Happening::Cancel(cancel)));
        }
        if let Some(ended) = decided.ended {
            self.tell_parent(execution, &ended, next);
            cycle.ended.push((execution, Ended { status: ended.status, body: ended.body }));
        }
        next.retain(|queued| {
            matches!(queued.input.what, Happening::Start(_)) || self.live.contains_key(&queued.execution())
        });
    }

    /// Takes on a command, unless it must not run; then its report is made at once.
    fn issue(
        &mut self,
        execution: ExecutionId,
        tenant: &Tenant,
        command: Command,
        next: &mut Vec<Queued>,
    ) -> Option<TaskKey> {
        let live = self.live.get_mut(&execution)?;
        let key = TaskKey { execution, command: command.id.as_str().into() };
        if !live.commands.insert(key.command.clone()) {
            tracing::error!(%execution, command = %key.command, "the orchestrator issued a command twice; once is enough");
            return None;
        }
        self.shared.metrics.commands.inc();
        let refusal = self.refusal(execution, &command);
        self.tasks.insert(key.clone(), Task::new(tenant.clone(), command));
        if let Some((code, message)) = refusal {
            self.tasks.remove(&key);
            next.push(self.failure_report(&key, tenant, code, &message));
            return None;
        }
        Some(key)
    }

    /// Why a command must not run.
    fn refusal(&self, execution: ExecutionId, command: &Command) -> Option<(&'static str, String)> {
        let system = self.live.get(&execution).is_some_and(|live| live.path.starts_with("system/"));
        let privileged = command.pool == SYSTEM || command.tools.iter().any(|kind| kind.starts_with("system_"));
        if privileged && !system {
            let message = "the pool `system` and `system_*` tools are for playbooks under `system/` only".to_owned();
            return Some(("forbidden_pool", message));
        }
        if !self.pools.names().contains(&command.pool.as_str()) {
            let known = self.pools.names().join(", ");
            let message = format!("there is no pool `{}`; this server has {known} (`engine.pools`)", command.pool);
            return Some(("unknown_pool", message));
        }
        None
    }

    /// Starts a child in the same commit as the decision to.
    pub(super) fn bear(&mut self, execution: ExecutionId, tenant: &Tenant, child: Child, next: &mut Vec<Queued>) {
        let Child { command, path, version, payload, returns } = child;
        let Some(live) = self.live.get_mut(&execution) else { return };
        if !live.commands.insert(command.as_str().into()) {
            tracing::error!(%execution, %command, "the orchestrator started a child twice; once is enough");
            return;
        }
        let (root, depth) = (live.root, live.depth);
        if depth >= DEEPEST {
            let message = format!("playbooks start each other {DEEPEST} deep; one that starts itself never ends");
            let error = serde_json::json!({"code": "too_deep", "message": message, "retryable": false});
            let body = serde_json::json!({"output": {"value": null}, "error": error}).to_string();
            let ended = ChildEnded { command, execution: 0, status: "failed".to_owned(), body };
            next.push(Queued::derived(execution, tenant.clone(), Happening::ChildEnded(ended)));
            return;
        }
        let Some(entry) = self.shared.playbook(tenant, &path, version) else {
            let error = EngineError::PlaybookNotFound { path, version }.to_string();
            let error = serde_json::json!({"code": "playbook_not_found", "message": error, "retryable": false});
            let body = serde_json::json!({"output": {"value": null}, "error": error}).to_string();
            let ended = ChildEnded { command, execution: 0, status: "failed".to_owned(), body };
            next.push(Queued::derived(execution, tenant.clone(), Happening::ChildEnded(ended)));
            return;
        };
        let id = self.shared.mint.next();
        let parent = Parent { execution: execution.0, command: command.clone() };
        let mut start =
            self.shared.start(&entry, tenant, payload, Some(parent), root, format!("execution {execution}"));
        start.returns = returns;
        let told = ChildStarted { command, execution: id.0, by: None };
        next.push(Queued::derived(execution, tenant.clone(), Happening::ChildStarted(told)));
        next.push(Queued::derived(id, tenant.clone(), Happening::Start(start)));
    }

    /// A parent learns of its child's end in the same commit.
    fn tell_parent(
        &self,
        execution: ExecutionId,
        ended: &noetl_host::services::orchestration::Ended,
        next: &mut Vec<Queued>,
    ) {
        let Some(live) = self.live.get(&execution) else { return };
        let Some((parent, command)) = live.parent.clone() else { return };
        let (status, body) = (ended.status.clone(), ended.body.clone());
        let told = ChildEnded { command, execution: execution.0, status, body };
        next.push(Queued::derived(parent, live.tenant.clone(), Happening::ChildEnded(told)));
    }
}

/// Puts the events of a decision into the execution's segment. Answers how many they are.
fn record(cycle: &mut Cycle, live: &mut Live, execution: ExecutionId, decided: &Decided, decided_by: Digest) -> u64 {
    let before = live.last_event;
    // It was checked when the decision came in, so counting is all that is left.
    live.last_event = check_events(&decided.events, before).unwrap_or(before);
    if live.last_event == before {
        return 0;
    }
    let pending = cycle.segments.entry(execution).or_insert_with(|| {
        cycle.order.push(execution);
        Pending {
            events: Vec::new(),
            opens: live.version == 0,
            ends: false,
            decided_by,
            tenant: live.tenant.clone(),
            root: live.root,
            version: live.version,
            event_before: before,
        }
    });
    pending.events.extend_from_slice(&decided.events);
    if pending.events.last() != Some(&b'\n') {
        pending.events.push(b'\n');
    }
    pending.ends |= decided.ended.is_some();
    pending.decided_by = decided_by;
    live.last_event - before
}

/// Why a child is cancelled that nobody waits for. `ended`: how its parent has ended, if it has. A step can give up waiting,
/// because its time is over or its worker is lost, while the parent goes on.
fn unwanted(parent: ExecutionId, ended: Option<&str>) -> String {
    match ended {
        Some("cancelled") => format!("its parent {parent} was cancelled"),
        Some(status) => format!("its parent {parent} has ended: {status}"),
        None => format!("the step of {parent} that started it does not wait for it any longer"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_told_why_nobody_waits_for_it() {
        for (ended, said) in [
            (Some("cancelled"), "its parent 7 was cancelled"),
            (Some("failed"), "its parent 7 has ended: failed"),
            (None, "the step of 7 that started it does not wait for it any longer"),
        ] {
            assert_eq!(unwanted(ExecutionId(7), ended), said);
        }
    }
}
