//! Running commands: turns of the runner, and what they ask for.
//!
//! All turns that are due go to the runner in one call. A runner that fails is treated as an orchestrator that does:
//! the turns are given one by one to a fresh instance and to the versions before, and a turn that fails on all of them
//! ends its command with an error, which the playbook can handle.

use std::sync::Arc;

use bytes::Bytes;
use noetl_contract::{Digest, Tenant};
use noetl_host::services::orchestration::{Happening, Report};
use noetl_host::services::running::{Action, News, Next, Turn};
use noetl_host::{Fault, FaultClass};

use super::decide::TRIES;
use super::message::{Queued, Reply};
use super::services::{Role, Service};
use super::shard::Shard;
use super::tasks::TaskKey;
use super::timers::Due;
use crate::Kernel;

/// Turns of pure commands in one go; beyond it something is wrong with the runner.
const MOST_PURE_TURNS: usize = 100_000;

impl Shard {
    /// A command's commit is durable, or it may run before: find it a slot.
    pub(super) fn dispatch(&mut self, key: TaskKey) {
        let Some(task) = self.tasks.get_mut(&key) else { return };
        if let Some(timeout) = task.command.timeout_ms {
            self.timers.set(Due::TimedOut(key.clone()), self.shared.clock.now_ms() + timeout);
        }
        let (pool, tenant) = (task.command.pool.clone(), task.tenant.clone());
        // The pool was found when the command was issued.
        let _known = self.pools.enqueue(&pool, &tenant, key.execution, key);
    }

    /// Something a turn asked for has happened.
    pub(super) fn news(&mut self, key: TaskKey, news: News) {
        if let Some(task) = self.tasks.get_mut(&key) {
            task.running = None;
            self.turns.push((key, news));
        }
    }

    /// A sleep is over: the command queues up for a slot again.
    pub(super) fn awake(&mut self, key: TaskKey) {
        let Some(task) = self.tasks.get(&key) else { return };
        let (pool, tenant) = (task.command.pool.clone(), task.tenant.clone());
        let _known = self.pools.enqueue(&pool, &tenant, key.execution, key);
    }

    pub(super) fn withdraw(&mut self, key: &TaskKey) {
        self.timers.clear(&Due::TimedOut(key.clone()));
        self.timers.clear(&Due::Slept(key.clone()));
        if let Some(task) = self.tasks.remove(key)
            && task.has_slot
        {
            self.pools.release(&task.command.pool);
        }
        if let Some(live) = self.live.get_mut(&key.execution) {
            live.commands.remove(&key.command);
        }
    }

    pub(super) fn timed_out(&mut self, key: &TaskKey) {
        let Some(task) = self.tasks.get(key) else { return };
        let tenant = task.tenant.clone();
        let after = task.command.timeout_ms.unwrap_or_default();
        self.withdraw(key);
        let message = format!("the step took longer than {after} ms");
        let queued = self.failure_report(key, &tenant, "timeout", &message);
        self.accept(queued);
    }

    /// A report the kernel makes itself.
    pub(super) fn failure_report(&self, key: &TaskKey, tenant: &Tenant, code: &str, message: &str) -> Queued {
        let body = serde_json::json!({
            "data": {"value": null},
            "error": {"code": code, "message": message, "retryable": false},
            "hard": code != "timeout",
        });
        let report = Report { command: key.command.to_string(), body: body.to_string().into_bytes(), stored: None };
        Queued::new(key.execution, tenant.clone(), Happening::Report(report), Reply::Nobody)
    }

    /// Gives the runner everything that is due, until nothing is.
    pub(super) async fn run_turns(&mut self, kernel: &Arc<Kernel>) {
        loop {
            let tasks = &mut self.tasks;
            for key in self.pools.ready(|key| tasks.contains_key(key)) {
                if let Some(task) = tasks.get_mut(&key) {
                    task.has_slot = true;
                    let news = if task.continuation.is_empty() { News::Begin } else { News::Slept };
                    self.turns.push((key, news));
                }
            }
            if self.turns.is_empty() {
                return;
            }
            let turns = std::mem::take(&mut self.turns);
            for (key, next) in self.advance(kernel, turns).await {
                if let Some(queued) = self.act(kernel, key, next) {
                    self.accept(queued);
                }
            }
        }
    }

    /// Runs commands that touch nothing outside to their end, and answers their reports. One that turns out to wait for
    /// something is run again from its beginning after the commit, the ordinary way.
    pub(super) async fn run_pure(
        &mut self,
        kernel: &Arc<Kernel>,
        keys: Vec<TaskKey>,
        after: &mut Vec<TaskKey>,
    ) -> Vec<Queued> {
        let mut reports = Vec::new();
        let mut turns: Vec<(TaskKey, News)> = keys.into_iter().map(|key| (key, News::Begin)).collect();
        let mut given = 0;
        while !turns.is_empty() && given < MOST_PURE_TURNS {
            given += turns.len();
            let mut again = Vec::new();
            for (key, next) in self.advance(kernel, turns).await {
                match next.action {
                    Action::Call(call) => {
                        if let Some(task) = self.tasks.get_mut(&key) {
                            task.continuation = next.continuation;
                        }
                        match self.call_pure(kernel, &key, &call).await {
                            Some(called) => again.push((key, News::Called(called))),
                            None => after.extend(self.begin_again(key)),
                        }
                    }
                    Action::Done(done) => {
                        if let Some(mut queued) = self.done(&key, done) {
                            queued.about.derived = true;
                            reports.push(queued);
                        }
                    }
                    _ => after.extend(self.begin_again(key)),
                }
            }
            turns = again;
        }
        reports
    }

    fn begin_again(&mut self, key: TaskKey) -> Option<TaskKey> {
        self.tasks.get_mut(&key)?.continuation.clear();
        Some(key)
    }

    /// One answer a turn. Turns of commands that are gone are left out.
    async fn advance(&mut self, kernel: &Arc<Kernel>, turns: Vec<(TaskKey, News)>) -> Vec<(TaskKey, Next)> {
        let time_ms = self.shared.clock.now_ms();
        let mut keys = Vec::with_capacity(turns.len());
        let mut given = Vec::with_capacity(turns.len());
        for (key, news) in turns {
            let Some(task) = self.tasks.get_mut(&key) else { continue };
            let begins = matches!(news, News::Begin);
            given.push(Turn {
                execution: key.execution.0,
                command: key.command.to_string(),
                time_ms,
                task: task.command.task.clone(),
                continuation: if begins { Vec::new() } else { std::mem::take(&mut task.continuation) },
                news,
            });
            keys.push(key);
        }
        if given.is_empty() {
            return Vec::new();
        }
        if self.runner.is_none() {
            self.refresh(kernel).await;
        }
        let Some(service) = self.runner.clone() else {
            let reason = "no runner can be made ready";
            return keys.into_iter().map(|key| (key, fault_next(reason))).collect();
        };
        match self.advance_once(&service, &given) {
            Ok(nexts) => {
                kernel.service_worked(&service.entry);
                keys.into_iter().zip(nexts).collect()
            }
            Err(fault) => self.contain_turns(kernel, &service, keys, given, fault).await,
        }
    }

    fn advance_once(&mut self, service: &Service, turns: &[Turn]) -> Result<Vec<Next>, Fault> {
        let nexts = self.residents.advance(&service.module, turns)?;
        if nexts.len() != turns.len() {
            return Err(Fault::new(FaultClass::Trap, "the runner's answers are not those of the turns"));
        }
        Ok(nexts)
    }

    async fn contain_turns(
        &mut self,
        kernel: &Arc<Kernel>,
        service: &Service,
        keys: Vec<TaskKey>,
        turns: Vec<Turn>,
        fault: Fault,
    ) -> Vec<(TaskKey, Next)> {
        self.shared.metrics.contained.inc();
        kernel.service_faulted(&service.entry, &fault).await;
        let mut versions = vec![service.clone()];
        versions.extend(kernel.stand_ins(Role::Runner, service.digest()).await);
        let mut faults = vec![0; versions.len()];
        let mut answers = Vec::with_capacity(turns.len());
        for (key, turn) in keys.into_iter().zip(&turns) {
            let mut answer = None;
            let mut last = fault.message.clone();
            for (at, version) in versions.iter().enumerate() {
                if faults[at] == TRIES && at + 1 < versions.len() {
                    continue;
                }
                self.residents.forget(version.digest());
                match self.advance_once(version, std::slice::from_ref(turn)) {
                    Ok(nexts) => {
                        answer = nexts.into_iter().next();
                        break;
                    }
                    Err(fault) => {
                        faults[at] += 1;
                        kernel.service_faulted(&version.entry, &fault).await;
                        last = fault.message;
                    }
                }
            }
            let answer =
                answer.unwrap_or_else(|| fault_next(&format!("the runner fails on this command alone: {last}")));
            answers.push((key, answer));
        }
        for version in &versions {
            self.residents.forget(version.digest());
        }
        self.refresh(kernel).await;
        answers
    }

    /// Does what a turn asks for. Answers the report of a command that is done.
    fn act(&mut self, kernel: &Arc<Kernel>, key: TaskKey, next: Next) -> Option<Queued> {
        if let Some(task) = self.tasks.get_mut(&key) {
            task.continuation = next.continuation;
        }
        match next.action {
            Action::Done(done) => return self.done(&key, done),
            Action::Call(call) => self.call_tool(kernel, key, call),
            Action::Resolve(digests) => self.resolve_payloads(kernel, key, digests),
            Action::Execute(execute) => self.execute_child(kernel, key, execute),
            Action::Sleep(ms) => {
                if let Some(task) = self.tasks.get_mut(&key) {
                    if std::mem::take(&mut task.has_slot) {
                        self.pools.release(&task.command.pool);
                    }
                    self.timers.set(Due::Slept(key), self.shared.clock.now_ms().saturating_add(ms));
                }
            }
        }
        None
    }

    fn done(&mut self, key: &TaskKey, done: noetl_host::services::running::Done) -> Option<Queued> {
        self.timers.clear(&Due::TimedOut(key.clone()));
        let task = self.tasks.remove(key)?;
        if task.has_slot {
            self.pools.release(&task.command.pool);
        }
        let bulk = done.bulk.map(Bytes::from);
        let stored = bulk.as_ref().map(|bytes| (Digest::of(bytes).hex(), bytes.len() as u64));
        let report = Report { command: key.command.to_string(), body: done.report, stored };
        let mut queued = Queued::new(key.execution, task.tenant.clone(), Happening::Report(report), Reply::Nobody);
        queued.about.keep = bulk;
        Some(queued)
    }
}

/// What takes the place of an answer no runner gave.
fn fault_next(reason: &str) -> Next {
    let report = serde_json::json!({
        "data": {"value": null},
        "error": {"code": "runner", "message": reason, "retryable": false},
        "hard": true,
    });
    let report = report.to_string().into_bytes();
    let done = noetl_host::services::running::Done { report, bulk: None };
    Next { action: Action::Done(done), continuation: Vec::new() }
}
