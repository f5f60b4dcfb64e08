//! One call, from a tenant's request to the answer and its committed effects.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use bytes::Bytes;
use noetl_contract::{CapabilitySet, Digest, PluginPath, Tenant, Version};
use noetl_host::caps::payload::Payload;
use noetl_host::{Effects, Failure, Fault, FaultClass, Finished, HostCall, Identity, Input, Output, Script};
use noetl_registry::{Actor, Entry, Resolved, Selector, Source};
use noetl_store::index::{KvCommit, KvCommitError, Namespace};

use crate::Kernel;
use crate::error::{CallError, ReadyError};
use crate::health::{Admission, Subject, Trial};

/// What is asked for.
pub struct Call {
    pub tenant: Tenant,
    pub service: PluginPath,
    pub selector: Selector,
    /// The caller's own narrowing of what the plugin may hold.
    pub capabilities: Option<CapabilitySet>,
    pub input: CallInput,
    /// The same for every attempt at the same work; made up when absent.
    pub idempotency_key: Option<String>,
    pub attempt: u32,
    /// Where the host's answers come from.
    pub script: Script,
}

pub enum CallInput {
    Bytes(Bytes),
    /// Bytes that are read once the call has its room.
    Bulk(Payload),
    /// One JSON object, and bulk beside it.
    Json {
        arguments: String,
        body: Option<Payload>,
    },
}

pub enum CallOutput {
    Bytes(Bytes),
    /// One JSON value, and bulk by reference; the bulk goes with its handle unless somebody keeps it.
    Json {
        output: String,
        body: Option<Payload>,
    },
}

/// An answer and who gave it.
pub struct Reply {
    pub path: PluginPath,
    pub version: Version,
    pub digest: Digest,
    pub source: Source,
    pub call: String,
    pub duration_us: u64,
    pub queue_us: u64,
    pub memory_bytes: u64,
    pub outcome: Result<CallOutput, Failure>,
    /// What it asked of the host, when that was to be written down.
    pub host_calls: Vec<HostCall>,
}

impl Kernel {
    pub async fn call(&self, call: Call) -> Result<Reply, CallError> {
        let resolved = self.catalog.resolve(&call.tenant, &call.service, &call.selector)?;
        let resolved = self.admit(&call, resolved)?;
        let entry = resolved.entry.clone();
        let module = match self.host.ready(&entry.digest) {
            Some(module) => module,
            None => match self.prepare(&resolved).await {
                Ok(module) => module,
                // Nothing ran, and nothing the plugin could do better.
                Err(ReadyError::Unsigned(unsigned)) => return Err(CallError::Unsigned(unsigned)),
                Err(ReadyError::Host(error)) => {
                    return Err(self.faulted(&call.tenant, &entry, error.into_fault()).await);
                }
            },
        };
        let identity = Arc::new(self.identity(&call, &entry));
        let input = match call.input {
            CallInput::Bytes(bytes) => Input::Bytes(bytes),
            CallInput::Bulk(payload) => Input::Bulk(payload),
            CallInput::Json { arguments, body } => Input::Tool { arguments, body },
        };
        let played = matches!(call.script, Script::Play { .. });
        let (capabilities, script) = (call.capabilities, call.script);
        let run = noetl_host::Call { identity: identity.clone(), capabilities, input, script };
        let mut finished = match self.host.call(&module, run).await {
            Ok(finished) => finished,
            Err(fault) => return Err(self.faulted(&call.tenant, &entry, fault).await),
        };
        self.health.succeeded(&subject(&call.tenant, &entry), &self.rollback, Instant::now());
        let host_calls = std::mem::take(&mut finished.host_calls);
        if played {
            // What a case answered was never read here, so what follows from it is not written here either.
            finished.effects = Effects::default();
        }
        let (outcome, usage) = self.commit(&entry, &identity, finished).await?;
        Ok(Reply {
            path: entry.path.clone(),
            version: entry.version.clone(),
            digest: entry.digest,
            source: resolved.source,
            call: identity.call.clone(),
            duration_us: micros(usage.duration),
            queue_us: micros(usage.queue),
            memory_bytes: usage.memory_bytes,
            outcome,
            host_calls,
        })
    }

    /// The version that takes the call. One that keeps faulting is set aside; for the platform's own services
    /// the version before it, and at last the one compiled in, serves instead.
    fn admit(&self, call: &Call, resolved: Resolved) -> Result<Resolved, CallError> {
        let now = Instant::now();
        let admission = |entry: &Entry| self.health.admit(&subject(&call.tenant, entry), &entry.manifest.failure, now);
        let Admission::Closed(retry_after) = admission(&resolved.entry) else { return Ok(resolved) };
        let (path, version) = (resolved.entry.path.clone(), resolved.entry.version.clone());
        if path.is_reserved() && call.selector.version.is_none() {
            let channel = call.selector.channel.clone().unwrap_or_default();
            let compiled_in = self.catalog.plugin(&path).into_iter().flat_map(|plugin| plugin.versions);
            let compiled_in = compiled_in.filter(|listed| listed.embedded).map(|listed| listed.entry.version.clone());
            for earlier in self.catalog.previous_of(&path, &channel).into_iter().chain(compiled_in) {
                let selector = Selector { channel: None, version: Some(earlier) };
                if let Ok(instead) = self.catalog.resolve(&call.tenant, &path, &selector)
                    && instead.entry.digest != resolved.entry.digest
                    && instead.entry.manifest.world == resolved.entry.manifest.world
                    && admission(&instead.entry) == Admission::Go
                {
                    return Ok(instead);
                }
            }
        }
        Err(CallError::Quarantined { path, version, retry_after })
    }

    fn identity(&self, call: &Call, entry: &Entry) -> Identity {
        let id = format!("{:x}-{:x}", self.boot, self.calls.fetch_add(1, Ordering::Relaxed));
        Identity {
            tenant: call.tenant.clone(),
            path: entry.path.clone(),
            version: entry.version.clone(),
            idempotency_key: call.idempotency_key.clone().unwrap_or_else(|| id.clone()),
            call: id,
            attempt: call.attempt,
        }
    }

    /// Makes what the call staged true.
    async fn commit(
        &self,
        entry: &Entry,
        identity: &Identity,
        finished: Finished,
    ) -> Result<(Result<CallOutput, Failure>, noetl_host::Usage), CallError> {
        if !finished.effects.is_empty() {
            let (path, version) = (entry.path.clone(), entry.version.clone());
            let commit = KvCommit {
                namespace: Namespace { tenant: identity.tenant.clone(), path: entry.path.clone() },
                call: identity.idempotency_key.clone(),
                conditions: finished.effects.kv_conditions,
                writes: finished.effects.kv_writes,
            };
            match self.index.kv_commit(commit).await {
                Ok(()) => {}
                Err(error @ KvCommitError::Conflict { .. }) => {
                    return Err(CallError::Conflict { path, version, reason: error.to_string() });
                }
                Err(error) => return Err(CallError::NotStored { path, version, reason: error.to_string() }),
            }
        }
        let outcome = match crate::heard::answered(&identity.tenant, finished.outcome) {
            Err(failure) => Err(failure),
            Ok(Output::Bytes(bytes)) => Ok(CallOutput::Bytes(bytes)),
            Ok(Output::Tool { output, body }) => Ok(CallOutput::Json { output, body }),
        };
        Ok((outcome, finished.usage))
    }

    /// Counts the fault, and takes the version back when it has failed its trial. The rollback is awaited:
    /// whoever is told of the last fault finds the old version serving.
    pub(crate) async fn faulted(&self, tenant: &Tenant, entry: &Entry, fault: Fault) -> CallError {
        let (policy, whose) = (&entry.manifest.failure, subject(tenant, entry));
        let failed = self.health.faulted(&whose, fault.class, policy, &self.rollback, Instant::now());
        if let Some(trial) = failed {
            self.take_back(&trial, fault.class).await;
        }
        let message = noetl_scrub::scrub_text_for(tenant.as_str(), &fault.message).into_owned();
        let fault = Fault::new(fault.class, message);
        CallError::Fault { path: entry.path.clone(), version: entry.version.clone(), fault }
    }

    pub(crate) async fn take_back(&self, trial: &Trial, class: FaultClass) {
        let Trial { path, channel, version, previous } = trial;
        let reason = format!(
            "{version} faulted {} times within its first {} calls, last with `{class}`",
            self.rollback.max_failures, self.rollback.calls
        );
        let serving = self.catalog.plugin(path).and_then(|plugin| plugin.channels.get(channel).cloned());
        if serving.as_ref() != Some(version) {
            return;
        }
        let mut moved = self.switch_back(&Actor::server(), path, channel, Some(previous), &reason).await;
        if moved.is_err() {
            // The version before may have been deleted meanwhile; any earlier one is better than this.
            moved = self.switch_back(&Actor::server(), path, channel, None, &reason).await;
        }
        match moved {
            Ok(_) => {
                self.rollbacks.inc();
                tracing::warn!(plugin = %path, %version, back_to = %previous, %reason, "version taken back");
            }
            Err(error) => tracing::error!(plugin = %path, %version, %error, "a bad version could not be taken back"),
        }
    }
}

fn subject(tenant: &Tenant, entry: &Entry) -> Subject {
    Subject { digest: entry.digest, tenant: tenant.clone(), shared: entry.path.is_reserved() }
}

fn micros(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
