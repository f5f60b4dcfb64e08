//! Calling tools for commands: right here when the tool is pure, on the host's threads when it acts on the outside.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use noetl_contract::manifest::{InstancePolicy, World};
use noetl_contract::{CapabilitySet, Digest, PluginPath, Tenant, Version};
use noetl_host::caps::payload::Payload;
use noetl_host::services::orchestration::Command;
use noetl_host::services::running::{Answered, Call, Called, Failed, News};
use noetl_host::{Identity, Module, Output, Script};
use noetl_registry::{Entry, Selector};
use noetl_store::payloads::PayloadRef;
use serde::de::IgnoredAny;

use super::message::Message;
use super::shard::Shard;
use super::tasks::TaskKey;
use crate::calls::{CallInput, CallOutput};
use crate::error::CallError;
use crate::{Kernel, calls};

/// Tools that can be called on the shard's own thread, as far as they have been looked up.
#[derive(Default)]
pub struct InlineTools {
    known: HashMap<(Tenant, String), Option<Inline>>,
}

#[derive(Clone)]
struct Inline {
    entry: Arc<Entry>,
    module: Arc<Module>,
}

impl InlineTools {
    pub fn clear(&mut self) {
        self.known.clear();
    }

    pub fn digests(&self) -> impl Iterator<Item = Digest> + '_ {
        self.known.values().flatten().map(|inline| inline.entry.digest)
    }

    /// The tool of a kind, if it is pure and ready.
    fn get(&mut self, kernel: &Kernel, tenant: &Tenant, kind: &str) -> Option<&Inline> {
        let key = (tenant.clone(), kind.to_owned());
        self.known.entry(key).or_insert_with(|| look_up(kernel, tenant, kind)).as_ref()
    }
}

/// A kind without the mark that this call of it may be made again.
pub(super) fn plain(kind: &str) -> &str {
    kind.strip_suffix(":again").unwrap_or(kind)
}

fn look_up(kernel: &Kernel, tenant: &Tenant, kind: &str) -> Option<Inline> {
    let path = PluginPath::new(format!("tools/{kind}")).ok()?;
    let entry = kernel.catalog.resolve(tenant, &path, &Selector::default()).ok()?.entry;
    let manifest = &entry.manifest;
    // Source text runs in an interpreter, on the host's threads.
    let computes = manifest.world == World::Transform && manifest.source.is_none();
    if !computes || manifest.instance != InstancePolicy::Resident {
        return None;
    }
    let module = kernel.host.ready(&entry.digest)?;
    Some(Inline { entry, module })
}

impl Shard {
    /// Whether nothing outside can notice that the command ran.
    pub(super) fn is_pure(&mut self, kernel: &Kernel, key: &TaskKey) -> bool {
        let Some(task) = self.tasks.get(key) else { return false };
        let inline = &mut self.inline;
        !task.command.tools.is_empty()
            && task.command.timeout_ms.is_none()
            && task.command.tools.iter().all(|kind| inline.get(kernel, &task.tenant, plain(kind)).is_some())
    }

    /// Calls a pure tool here and now; nothing when it is not one after all.
    pub(super) async fn call_pure(&mut self, kernel: &Arc<Kernel>, key: &TaskKey, call: &Call) -> Option<Called> {
        if call.plugin.is_some() || call.body.is_some() {
            return None;
        }
        let task = self.tasks.get(key)?;
        let tenant = task.tenant.clone();
        let Inline { entry, module } = self.inline.get(kernel, &tenant, &call.kind)?.clone();
        let identity = Identity {
            tenant: tenant.clone(),
            path: entry.path.clone(),
            version: entry.version.clone(),
            call: key.command.to_string(),
            idempotency_key: key.idempotency_key(&call.label, call.visit),
            attempt: call.attempt,
        };
        let input = Bytes::copy_from_slice(call.arguments.as_bytes());
        let (outcome, took) = match self.residents.transform(&module, Arc::new(identity), input) {
            Ok(finished) => (finished.outcome, finished.usage.duration),
            Err(fault) => {
                let error = kernel.faulted(&tenant, &entry, fault).await;
                // It may have been taken back or set aside.
                self.inline.clear();
                return Some(called(&entry.path, &entry.version, &entry.digest, Duration::ZERO, Err(failed(&error))));
            }
        };
        let outcome = match crate::heard::answered(&tenant, outcome) {
            Ok(Output::Bytes(bytes)) => text_of(bytes).map(|output| Answered { output, body: None }),
            Ok(Output::Tool { output, .. }) => Ok(Answered { output, body: None }),
            Err(failure) => Err(own_failure(failure)),
        };
        Some(called(&entry.path, &entry.version, &entry.digest, took, outcome))
    }

    /// Calls a tool on the host's threads; the answer comes as a message.
    pub(super) fn call_tool(&mut self, kernel: &Arc<Kernel>, key: TaskKey, call: Call) {
        let Some(task) = self.tasks.get_mut(&key) else { return };
        let Some(threads) = kernel.host.threads() else { return };
        let (sender, tenant) = (self.sender.clone(), task.tenant.clone());
        let kernel = kernel.clone();
        let said = may_repeat(&task.command, &call.kind);
        let calling = threads.spawn(async move {
            let called = outside(&kernel, tenant, &key, call, said).await;
            // The shard is gone only when the server is.
            let _ = sender.send(Message::News(key, News::Called(called)));
        });
        task.running = Some(calling.abort_handle());
    }

    pub(super) fn resolve_payloads(&mut self, kernel: &Arc<Kernel>, key: TaskKey, digests: Vec<String>) {
        let Some(task) = self.tasks.get_mut(&key) else { return };
        let Some(threads) = kernel.host.threads() else { return };
        let (sender, payloads) = (self.sender.clone(), kernel.payloads().clone());
        let reading = threads.spawn(async move {
            let mut resolved = Vec::with_capacity(digests.len());
            for text in digests {
                let bytes = match text.parse::<Digest>() {
                    Ok(digest) => payloads.read(&digest).await.ok().map(Vec::from),
                    Err(_) => None,
                };
                resolved.push((text, bytes));
            }
            let _ = sender.send(Message::News(key, News::Resolved(resolved)));
        });
        task.running = Some(reading.abort_handle());
    }
}

/// Whether the playbook says that a call of that kind may be made again; nothing where it leaves that to the tool.
fn may_repeat(command: &Command, kind: &str) -> Option<bool> {
    let mut marked = command.tools.iter().filter(|known| plain(known) == kind).map(|known| plain(known) != known);
    // Several tools of a kind are not told apart here, so all of them have to be.
    let all = marked.next().map(|first| first && marked.all(|marked| marked));
    all.filter(|all| *all).or(command.retry_safe)
}

/// One call of a tool that may act on the outside. `said` is whether it may be made again, where the playbook says so.
async fn outside(kernel: &Arc<Kernel>, tenant: Tenant, key: &TaskKey, call: Call, said: Option<bool>) -> Called {
    let began = Instant::now();
    let nobody = |failure: Failed| Called {
        outcome: Err(failure),
        duration_ms: 0,
        plugin: call.plugin.clone().unwrap_or_else(|| format!("tools/{}", call.kind)),
        digest: String::new(),
    };
    let asked = match ask(kernel, &tenant, key, &call) {
        Ok(asked) => asked,
        Err(failure) => return nobody(failure),
    };
    let entry = match kernel.catalog.resolve(&tenant, &asked.service, &asked.selector) {
        Ok(resolved) => resolved.entry,
        Err(error) => {
            let hint = if call.plugin.is_none() { "; `noetl plugin list` shows the tools there are" } else { "" };
            return nobody(failure("unknown_tool", format!("no tool of kind `{}`: {error}{hint}", call.kind)));
        }
    };
    let repeatable = said.unwrap_or(entry.manifest.retry_safe);
    let limit = call.timeout_ms.map(Duration::from_millis);
    let reply = match limit {
        None => kernel.call(asked).await,
        Some(limit) => match tokio::time::timeout(limit, kernel.call(asked)).await {
            Ok(reply) => reply,
            Err(_) => {
                let message = format!("the tool did not answer within {} ms", limit.as_millis());
                // It may have acted before its time was over.
                let failure = Failed { retryable: repeatable, ..failure("timeout", message) };
                return called(&entry.path, &entry.version, &entry.digest, began.elapsed(), Err(failure));
            }
        },
    };
    match reply {
        Err(error) => {
            let mut failure = failed(&error);
            failure.retryable &= repeatable || failure.code != "timeout";
            called(&entry.path, &entry.version, &entry.digest, began.elapsed(), Err(failure))
        }
        Ok(reply) => {
            let outcome = match reply.outcome {
                Err(failure) => Err(own_failure(failure)),
                Ok(output) => answered(kernel, &tenant, output).await,
            };
            called(&reply.path, &reply.version, &reply.digest, began.elapsed(), outcome)
        }
    }
}

/// The call, or why it must not be made.
fn ask(kernel: &Kernel, tenant: &Tenant, key: &TaskKey, call: &Call) -> Result<calls::Call, Failed> {
    let path = call.plugin.clone().unwrap_or_else(|| format!("tools/{}", call.kind));
    let service = PluginPath::new(path).map_err(|error| failure("unknown_tool", error.to_string()))?;
    let own = service.owner().is_none_or(|owner| owner == *tenant || *tenant == Tenant::main());
    let tool = !service.is_reserved() || service.as_str().starts_with("tools/");
    if !own || !tool {
        let message = format!("a playbook of `{tenant}` may not call `{service}`");
        return Err(failure("forbidden_plugin", message));
    }
    let version = call.version.as_deref().map(Version::parse).transpose();
    let version = version.map_err(|error| failure("unknown_tool", format!("version of `{service}`: {error}")))?;
    let body = call.body.as_deref().map(|digest| stored(kernel, tenant, digest)).transpose()?;
    let capabilities =
        call.capabilities.as_ref().map(|names| {
            names.iter().map(|name| name.parse()).collect::<Result<CapabilitySet, _>>().map_err(
                |error: noetl_contract::ids::InvalidId| failure("invalid_input", format!("capabilities: {error}")),
            )
        });
    Ok(calls::Call {
        tenant: tenant.clone(),
        service,
        selector: Selector { channel: None, version },
        capabilities: capabilities.transpose()?,
        input: CallInput::Json { arguments: call.arguments.clone(), body },
        idempotency_key: Some(key.idempotency_key(&call.label, call.visit)),
        attempt: call.attempt,
        script: Script::Live,
    })
}

/// A payload that a playbook refers to. A digest can be written by anybody, so only what was kept for the tenant counts,
/// and what was kept for another one is as absent as what never was.
fn stored(kernel: &Kernel, tenant: &Tenant, digest: &str) -> Result<Payload, Failed> {
    let parsed: Digest =
        digest.parse().map_err(|_| failure("reference_missing", format!("`{digest}` is not a digest")))?;
    let size = kernel.payloads().size(&parsed).filter(|_| kernel.payloads().belongs(tenant, &parsed));
    let size = size.ok_or_else(|| {
        failure(
            "reference_missing",
            format!("`{tenant}` has no payload {digest}; it may be of another tenant, or gone"),
        )
    })?;
    Ok(Payload::stored(PayloadRef { digest: parsed, size }, "application/octet-stream"))
}

async fn answered(kernel: &Kernel, tenant: &Tenant, output: CallOutput) -> Result<Answered, Failed> {
    match output {
        CallOutput::Bytes(bytes) => match text_of(bytes.clone()) {
            Ok(output) => Ok(Answered { output, body: None }),
            Err(_) => keep(kernel, tenant, Payload::memory(bytes, "application/octet-stream"), "{}".to_owned()).await,
        },
        CallOutput::Json { output, body: None } => Ok(Answered { output, body: None }),
        CallOutput::Json { output, body: Some(body) } => keep(kernel, tenant, body, output).await,
    }
}

async fn keep(kernel: &Kernel, tenant: &Tenant, body: Payload, output: String) -> Result<Answered, Failed> {
    let unkept = |error| failure("store_unavailable", format!("the result could not be kept: {error}"));
    let kept = body.keep(kernel.payloads()).await.map_err(unkept)?;
    kernel.payloads().give(tenant, &kept.digest).await.map_err(unkept)?;
    Ok(Answered { output, body: Some((kept.digest.hex(), kept.size, body.media_type().to_owned())) })
}

/// Bytes as JSON: as they are if they are some, text as a string.
fn text_of(bytes: Bytes) -> Result<String, Failed> {
    let text = String::from_utf8(bytes.into()).map_err(|_| failure("output", "the answer is not text".to_owned()))?;
    match serde_json::from_str::<IgnoredAny>(&text) {
        Ok(_) => Ok(text),
        Err(_) => Ok(serde_json::Value::String(text).to_string()),
    }
}

fn called(
    path: &PluginPath,
    version: &Version,
    digest: &Digest,
    took: Duration,
    outcome: Result<Answered, Failed>,
) -> Called {
    let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    Called { outcome, duration_ms, plugin: format!("{path}@{version}"), digest: digest.hex() }
}

fn failure(code: &str, message: String) -> Failed {
    Failed { code: code.to_owned(), message, retryable: false, unknown: false }
}

fn own_failure(failure: noetl_host::Failure) -> Failed {
    let noetl_host::Failure { code, message, retryable } = failure;
    Failed { code, message, retryable, unknown: false }
}

fn failed(error: &CallError) -> Failed {
    let retryable =
        matches!(error, CallError::Quarantined { .. } | CallError::Conflict { .. } | CallError::NotStored { .. });
    let retryable = retryable || error.code() == "timeout";
    Failed { code: error.code().to_owned(), message: error.to_string(), retryable, unknown: false }
}
