//! Driving a batch: giving the orchestrator what it needs, and living with one that fails.
//!
//! A fault ends the instance and with it the states it held, which is no loss: they are built again from the log. The
//! batch is then driven one by one on a fresh instance, then on the version before, at last on the one compiled in. So
//! an innocent execution never pays for another, and only one that fails alone on all of them is ended, saying so.

use std::collections::BTreeSet;
use std::sync::Arc;

use noetl_contract::Digest;
use noetl_host::services::orchestration::{Decided, Ended, Happening, Input, LoadError, Need, Outcome};
use noetl_host::{Fault, FaultClass};

use super::cycle::Cycle;
use super::ids::ExecutionId;
use super::message::Queued;
use super::services::{Role, Service};
use super::settle::{Decision, check_events};
use super::shard::Shard;
use crate::Kernel;

/// Rounds of asking for what is needed before the orchestrator is taken to be broken.
const MOST_NEEDS: usize = 16;
/// A version that failed on this many inputs of a batch by themselves is not asked about the others: one that hangs
/// would hold up all of them.
pub(super) const TRIES: u32 = 2;

impl Shard {
    /// One decision an input, in order.
    pub(super) async fn decide(
        &mut self,
        kernel: &Arc<Kernel>,
        cycle: &mut Cycle,
        mut work: Vec<Queued>,
    ) -> Vec<(Queued, Decision)> {
        let now = self.shared.clock.now_ms();
        for queued in &mut work {
            let execution = queued.execution();
            let last = self.live.get(&execution).map_or(0, |live| live.last_ms);
            queued.input.time_ms = now.max(last);
            if let (Some(bytes), Happening::Report(report)) = (&queued.about.keep, &queued.input.what)
                && let Some((digest, _)) = &report.stored
            {
                cycle.coming.insert(digest.clone(), bytes.clone());
            }
            if let Some(live) = self.live.get_mut(&execution) {
                live.last_ms = now.max(last);
            }
        }
        if self.orchestrator.is_none() {
            self.refresh(kernel).await;
        }
        let (about, inputs): (Vec<_>, Vec<_>) = work.into_iter().map(|queued| (queued.about, queued.input)).unzip();
        let outcomes = match self.orchestrator.clone() {
            Some(service) => match self.drive_all(kernel, cycle, &service, &inputs).await {
                Ok(outcomes) => outcomes,
                Err(fault) => self.contain(kernel, cycle, &service, &inputs, fault).await,
            },
            None => inputs.iter().map(|input| self.last_words(input, "no orchestrator can be made ready")).collect(),
        };
        let queued = inputs.into_iter().zip(about).map(|(input, about)| Queued { input, about });
        queued.zip(outcomes).collect()
    }

    /// Drives all inputs on one version, supplying what it asks for.
    async fn drive_all(
        &mut self,
        kernel: &Arc<Kernel>,
        cycle: &Cycle,
        service: &Service,
        inputs: &[Input],
    ) -> Result<Vec<Decision>, Fault> {
        if !self.evict.is_empty() {
            let evict = std::mem::take(&mut self.evict);
            self.residents.evict(&service.module, &evict)?;
        }
        let began = std::time::Instant::now();
        let mut outcomes: Vec<Option<Outcome>> = self.drive_once(service, inputs)?.into_iter().map(Some).collect();
        for _ in 0..MOST_NEEDS {
            let mut needs: BTreeSet<(u64, String)> = BTreeSet::new();
            let mut again = Vec::new();
            for (at, outcome) in outcomes.iter().enumerate() {
                if let Some(Outcome::Needs(need)) = outcome {
                    needs.insert((inputs[at].execution, describe(need)));
                    again.push(at);
                }
            }
            if again.is_empty() {
                break;
            }
            let mut broken = Vec::new();
            for (execution, need) in needs {
                if let Err(reason) = self.supply_need(kernel, cycle, service, ExecutionId(execution), &need).await? {
                    broken.push((execution, reason));
                }
            }
            let batch: Vec<Input> = again.iter().map(|at| inputs[*at].clone()).collect();
            for (at, outcome) in again.iter().zip(self.drive_once(service, &batch)?) {
                outcomes[*at] = Some(outcome);
            }
            for (execution, reason) in broken {
                for at in again.iter().filter(|at| inputs[**at].execution == execution) {
                    outcomes[*at] = Some(self.last_words(&inputs[*at], &reason).outcome);
                }
            }
        }
        let decided_by = service.digest();
        let mut decisions = Vec::with_capacity(inputs.len());
        // Lines of an execution go on from input to input of the batch.
        let mut last_events = std::collections::HashMap::new();
        for (input, outcome) in inputs.iter().zip(outcomes.into_iter().flatten()) {
            if let Outcome::Decided(decided) = &outcome {
                let before = self.live.get(&ExecutionId(input.execution)).map_or(0, |live| live.last_event);
                let before = last_events.get(&input.execution).copied().unwrap_or(before);
                let last = check_events(&decided.events, before).map_err(|problem| garbage(&problem))?;
                last_events.insert(input.execution, last);
            }
            decisions.push(Decision { outcome, decided_by });
        }
        self.shared.metrics.drive(began.elapsed(), inputs.len());
        kernel.service_worked(&service.entry);
        Ok(decisions)
    }

    fn drive_once(&mut self, service: &Service, inputs: &[Input]) -> Result<Vec<Outcome>, Fault> {
        let decisions = self.residents.drive(&service.module, inputs)?;
        let fits = decisions.len() == inputs.len()
            && decisions.iter().zip(inputs).all(|(decision, input)| decision.execution == input.execution);
        if !fits {
            return Err(garbage("the decisions are not those of the inputs"));
        }
        Ok(decisions.into_iter().map(|decision| decision.outcome).collect())
    }

    /// `Err` inside: the execution cannot be built, and why.
    async fn supply_need(
        &mut self,
        kernel: &Arc<Kernel>,
        cycle: &Cycle,
        service: &Service,
        execution: ExecutionId,
        need: &str,
    ) -> Result<Result<(), String>, Fault> {
        match need.split_once(' ') {
            Some(("playbook", digest)) => self.teach(kernel, service, digest).await,
            Some(("value", digest)) => match value(kernel, cycle, digest).await {
                Ok(bytes) => self.residents.supply(&service.module, execution.0, digest, &bytes).map(Ok),
                Err(reason) => Ok(Err(reason)),
            },
            _ => {
                let pending = cycle.segments.get(&execution).map(|pending| pending.events.as_slice());
                let loaded = self.load_state(kernel, service, execution, pending).await?;
                Ok(loaded.map(|_| ()))
            }
        }
    }

    async fn teach(
        &mut self,
        kernel: &Arc<Kernel>,
        service: &Service,
        digest: &str,
    ) -> Result<Result<(), String>, Fault> {
        let text = match read_payload(kernel, digest).await {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(reason) => return Ok(Err(reason)),
        };
        self.residents.learn(&service.module, digest, &text)
    }

    /// Builds an execution's state from its checkpoint and chain, and what this cycle has added to it.
    pub(super) async fn load_state(
        &mut self,
        kernel: &Arc<Kernel>,
        service: &Service,
        execution: ExecutionId,
        pending: Option<&[u8]>,
    ) -> Result<Result<noetl_host::services::orchestration::Owed, String>, Fault> {
        self.shared.metrics.loads.inc();
        let mut chain = match self.shared.chain(execution) {
            Ok(chain) => chain,
            Err(error) => return Ok(Err(error.to_string())),
        };
        if let (Some(events), Some(live)) = (pending, self.live.get(&execution)) {
            chain.segments.push(noetl_host::services::chain::Segment {
                execution: execution.0,
                tenant: live.tenant.to_string(),
                version: live.version + 1,
                position: 0,
                time_ms: live.last_ms,
                decided_by: service.digest().hex(),
                events: events.to_vec(),
            });
        }
        for _ in 0..MOST_NEEDS {
            let checkpoint = chain.checkpoint.as_deref();
            match self.residents.load(&service.module, execution.0, checkpoint, &chain.segments)? {
                Ok(owed) => return Ok(Ok(owed)),
                Err(LoadError::Playbook(digest)) => {
                    if let Err(reason) = self.teach(kernel, service, &digest).await? {
                        return Ok(Err(reason));
                    }
                }
                // A checkpoint of another version of the fold is of no use; the whole chain always is.
                Err(LoadError::Broken(reason)) if chain.checkpoint.is_some() => {
                    tracing::info!(%execution, %reason, "the checkpoint is not used");
                    match self.shared.whole_chain(execution) {
                        Ok(segments) => {
                            chain.checkpoint = None;
                            let added = chain.segments.pop().filter(|_| pending.is_some());
                            chain.segments = segments;
                            chain.segments.extend(added);
                        }
                        Err(error) => return Ok(Err(error.to_string())),
                    }
                }
                Err(LoadError::Broken(reason)) => return Ok(Err(format!("its chain cannot be followed: {reason}"))),
            }
        }
        Ok(Err("the orchestrator keeps asking for the playbook".to_owned()))
    }

    /// The batch failed: find out whose fault it is.
    async fn contain(
        &mut self,
        kernel: &Arc<Kernel>,
        cycle: &Cycle,
        service: &Service,
        inputs: &[Input],
        fault: Fault,
    ) -> Vec<Decision> {
        self.shared.metrics.contained.inc();
        kernel.service_faulted(&service.entry, &fault).await;
        self.residents.forget(service.digest());
        let mut versions = vec![service.clone()];
        versions.extend(kernel.stand_ins(Role::Orchestrator, service.digest()).await);
        let mut faults = vec![0; versions.len()];
        let mut decisions = Vec::with_capacity(inputs.len());
        // What the earlier inputs of this batch came to is not in the log yet; it counts for the later ones.
        let mut so_far = super::cycle::Overlay::new(cycle);
        for input in inputs {
            let mut decision = None;
            let mut last_fault = fault.clone();
            for (at, version) in versions.iter().enumerate() {
                if faults[at] == TRIES && at + 1 < versions.len() {
                    continue;
                }
                // A fresh instance for every try: what failed before must not fail this one.
                self.residents.forget(version.digest());
                match self.drive_all(kernel, so_far.cycle(), version, std::slice::from_ref(input)).await {
                    Ok(decided) => {
                        decision = decided.into_iter().next();
                        break;
                    }
                    Err(fault) => {
                        faults[at] += 1;
                        kernel.service_faulted(&version.entry, &fault).await;
                        last_fault = fault;
                    }
                }
            }
            let decision = decision.unwrap_or_else(|| {
                let reason = format!("the orchestrator fails on this execution alone: {}", last_fault.message);
                self.last_words(input, &reason)
            });
            so_far.add(input, &decision, &mut self.live);
            decisions.push(decision);
        }
        so_far.undo(&mut self.live);
        for version in &versions {
            self.residents.forget(version.digest());
        }
        // The catalog may name another version by now.
        self.refresh(kernel).await;
        decisions
    }

    /// The one event the kernel writes itself: the end of an execution that no orchestrator can go on with.
    pub(super) fn last_words(&self, input: &Input, reason: &str) -> Decision {
        let execution = ExecutionId(input.execution);
        let decided_by = self.orchestrator.as_ref().map_or(Digest::of(b""), Service::digest);
        let error = serde_json::json!({"code": "engine", "message": reason, "retryable": false});
        let body = serde_json::json!({"output": {"value": null}, "error": error}).to_string();
        let Some(live) = self.live.get(&execution) else {
            return Decision { outcome: Outcome::Refused(reason.to_owned()), decided_by };
        };
        if matches!(input.what, Happening::Start(_)) {
            return Decision { outcome: Outcome::Refused(reason.to_owned()), decided_by };
        }
        let event = serde_json::json!({
            "id": live.last_event + 1,
            "at": input.time_ms,
            "by": live.last_event,
            "e": {"finished": {"status": "failed", "output": {"value": null}, "error": error}},
        });
        tracing::error!(%execution, %reason, "the execution is ended by the kernel");
        let outcome = Outcome::Decided(Decided {
            events: format!("{event}\n").into_bytes(),
            keep: Vec::new(),
            commands: Vec::new(),
            children: Vec::new(),
            withdrawn: live.commands.iter().map(|command| command.to_string()).collect(),
            orphaned: Vec::new(),
            wake_at: None,
            ended: Some(Ended { status: "failed".to_owned(), body }),
        });
        Decision { outcome, decided_by }
    }
}

fn describe(need: &Need) -> String {
    match need {
        Need::State => "state".to_owned(),
        Need::Playbook(digest) => format!("playbook {digest}"),
        Need::Value(digest) => format!("value {digest}"),
    }
}

fn garbage(problem: &str) -> Fault {
    Fault::new(FaultClass::Trap, format!("the orchestrator's answer makes no sense: {problem}"))
}

/// A value by its digest: one that this cycle keeps is not in the store yet.
async fn value(kernel: &Kernel, cycle: &Cycle, digest: &str) -> Result<bytes::Bytes, String> {
    match cycle.coming.get(digest) {
        Some(bytes) => Ok(bytes.clone()),
        None => read_payload(kernel, digest).await,
    }
}

async fn read_payload(kernel: &Kernel, digest: &str) -> Result<bytes::Bytes, String> {
    let parsed: Digest = digest.parse().map_err(|_| format!("`{digest}` is not a digest"))?;
    kernel.payloads().read(&parsed).await.map_err(|error| error.to_string())
}
