//! One component in a kernel of its own, and what a test can ask of it.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use noetl_contract::manifest::World;
use noetl_contract::{Capability, CapabilitySet, PluginPath, Ring, Tenant, source};
use noetl_dispatch::case::Case;
use noetl_dispatch::{Call, CallInput, CallOutput, Kernel, Level, LogFilter, Payload, Push, Script};
use noetl_registry::{Actor, Selector};
use noetl_store::folder::DataFolder;
use noetl_store::index::{KvCommit, Namespace, ObjectInfo};

use super::canned::Canned;
use super::confused;
use super::protocol::{
    self, Answer, Base64, CallError, GuestFailure, LogLine, Outcome, PROTOCOL, Ready, Reply, Request,
};
use crate::serve::{Interpreters, options};

pub struct Session {
    kernel: Arc<Kernel>,
    http: Arc<Canned>,
    namespace: Namespace,
    world: World,
    /// Number of the last log line that was told.
    told: u64,
    /// Makes keys of our own writes differ.
    writes: u64,
}

/// What a request other than a call ends with.
type Done = Result<Answer, CallError>;

fn broken(error: impl std::fmt::Display) -> CallError {
    confused(format!("the harness itself failed: {error}"))
}

impl Session {
    /// Pushes the component into an empty kernel, as its owner would with every grant.
    pub async fn start(folder: &Path, component: Vec<u8>) -> Result<(Self, Ready), CallError> {
        let http = Arc::new(Canned::default());
        let mut options = options::base();
        options.outbound = Some(http.clone());
        let folder = DataFolder::open(folder).map_err(broken)?;
        let is_source = source::extract(&component).is_ok_and(|bundle| bundle.is_some());
        let interpreters = is_source.then(|| Interpreters::bring(&folder)).transpose().map_err(broken)?;
        let embedded = interpreters.as_ref().map(|found| found.embedded.clone()).unwrap_or_default();
        let kernel = Kernel::start(options, folder, embedded).await.map_err(broken)?;
        let mut writer = kernel.payloads().writer().await.map_err(broken)?;
        writer.write(&component).await.map_err(broken)?;
        let push = Push {
            component: writer.seal().await.map_err(broken)?,
            channel: None,
            privilege: Ring::System,
            ring: None,
            grant: CapabilitySet::all(),
            attestations: Vec::new(),
            dry_run: false,
            reason: String::new(),
        };
        let pushed = kernel
            .push(&Actor::server(), push)
            .await
            .map_err(|error| CallError { class: error.code().to_owned(), message: error.to_string() })?;
        if let Some(interpreters) = &interpreters {
            interpreters.keep();
        }
        let world = world_of(&kernel, &pushed.path).ok_or_else(|| broken("the pushed component is not there"))?;
        let ready = Ready {
            protocol: PROTOCOL,
            path: pushed.path.to_string(),
            version: pushed.version.to_string(),
            world: world.name().to_owned(),
        };
        let tenant = pushed.path.owner().unwrap_or_else(Tenant::main);
        let namespace = Namespace { tenant, path: pushed.path };
        Ok((Self { kernel, http, namespace, world, told: 0, writes: 0 }, ready))
    }

    pub async fn serve(&mut self, request: Request) -> Reply {
        let done = match request {
            Request::Call(call) => return self.call(call).await,
            Request::Logs {} => {
                let mut reply = Reply::from(Outcome::Ok(Answer::default()));
                reply.logs = self.logs_after(0);
                return reply;
            }
            Request::HttpRespond(answer) => {
                self.http.add(answer);
                Ok(Answer::default())
            }
            Request::KvPut(put) => self.kv_put(put).await,
            Request::KvGet(protocol::Key { key }) => self.kv_get(&key),
            Request::ObjectPut(put) => self.object_put(put).await,
            Request::ObjectGet(protocol::Key { key }) => self.object_get(&key).await,
        };
        Reply::from(done.map_or_else(Outcome::Error, Outcome::Ok))
    }

    /// Plays a recorded call; none when the case cannot be played.
    pub async fn play(&self, case: &Case) -> Result<Option<Case>, noetl_dispatch::CallError> {
        let played = self.kernel.play(&self.namespace.path, case).await;
        if played.is_err() {
            // Cases are judged one by one: faults of some must not put the plugin to rest for the others.
            let _ = self.kernel.release(&self.namespace.path);
        }
        played
    }

    async fn call(&mut self, asked: protocol::Call) -> Reply {
        let call = match self.prepare(asked) {
            Ok(call) => call,
            Err(error) => return Reply::from(Outcome::Error(error)),
        };
        let started = Instant::now();
        let ended = self.kernel.call(call).await;
        let mut reply = match ended {
            Ok(answer) => {
                let outcome = match answer.outcome {
                    Ok(output) => self.answer(output).await.map_or_else(Outcome::Error, Outcome::Ok),
                    Err(failure) => Outcome::Failure(GuestFailure {
                        code: failure.code,
                        message: failure.message,
                        retryable: failure.retryable,
                    }),
                };
                let mut reply = Reply::from(outcome);
                reply.memory_bytes = Some(answer.memory_bytes);
                reply.duration_us = Some(answer.duration_us);
                reply
            }
            Err(error) => {
                let class = error.class().map_or_else(|| error.code(), |class| class.name());
                let mut reply =
                    Reply::from(Outcome::Error(CallError { class: class.to_owned(), message: error.to_string() }));
                reply.duration_us = Some(u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX));
                reply
            }
        };
        reply.logs = self.logs_after(self.told);
        self.told = self.last_line();
        reply
    }

    fn prepare(&self, asked: protocol::Call) -> Result<Call, CallError> {
        let input = match self.world {
            World::Transform => CallInput::Bytes(match (asked.input_base64, asked.input_json) {
                (Some(bytes), _) => Bytes::from(bytes.0),
                (None, Some(value)) => Bytes::from(value.to_string()),
                (None, None) => Bytes::new(),
            }),
            World::Tool => {
                let arguments = asked.input_json.unwrap_or_else(|| serde_json::json!({}));
                if !arguments.is_object() {
                    return Err(confused("a tool takes one JSON object as its arguments".to_owned()));
                }
                let body = asked.input_base64.map(|bytes| Payload::memory(bytes.0.into(), "application/octet-stream"));
                CallInput::Json { arguments: arguments.to_string(), body }
            }
            world => return Err(confused(format!("a component of the world `{world}` is called by the engine alone"))),
        };
        let named = asked.capabilities.map(|names| names.iter().map(|name| name.parse::<Capability>()).collect());
        Ok(Call {
            tenant: self.namespace.tenant.clone(),
            service: self.namespace.path.clone(),
            selector: Selector::default(),
            capabilities: named.transpose().map_err(|error| confused(error.to_string()))?,
            input,
            idempotency_key: asked.idempotency_key,
            attempt: asked.attempt.unwrap_or(1),
            script: Script::Live,
        })
    }

    async fn answer(&self, output: CallOutput) -> Done {
        match output {
            CallOutput::Bytes(bytes) => Ok(Answer { output_base64: Some(Base64(bytes.to_vec())), ..Answer::default() }),
            CallOutput::Json { output, body } => {
                let output_json = serde_json::from_str(&output).map_err(broken)?;
                let body = match body {
                    Some(body) => Some(body.read(self.kernel.payloads(), 0, body.size()).await.map_err(broken)?),
                    None => None,
                };
                let output_base64 = body.map(|body| Base64(body.to_vec()));
                Ok(Answer { output_json: Some(output_json), output_base64, ..Answer::default() })
            }
        }
    }

    async fn kv_put(&mut self, put: protocol::KvPut) -> Done {
        self.writes += 1;
        let commit = KvCommit {
            namespace: self.namespace.clone(),
            call: format!("harness-{}", self.writes),
            conditions: Vec::new(),
            writes: vec![(put.key, Some(Bytes::from(put.value_base64.0)))],
        };
        self.kernel.index().kv_commit(commit).await.map_err(broken)?;
        Ok(Answer::default())
    }

    fn kv_get(&self, key: &str) -> Done {
        let entry = self.kernel.index().kv_get(&self.namespace, key).map_err(broken)?;
        Ok(Answer { value_base64: entry.map(|entry| Base64(entry.value.to_vec())), ..Answer::default() })
    }

    async fn object_put(&self, put: protocol::ObjectPut) -> Done {
        let stored = self.kernel.payloads().put_bytes(Bytes::from(put.value_base64.0)).await.map_err(broken)?;
        let object = ObjectInfo {
            key: put.key,
            size: stored.size,
            digest: stored.digest,
            media_type: put.media_type.unwrap_or_else(|| "application/octet-stream".to_owned()),
        };
        self.kernel.index().object_put(&self.namespace, object).await.map_err(broken)?;
        Ok(Answer::default())
    }

    async fn object_get(&self, key: &str) -> Done {
        let Some(object) = self.kernel.index().object_get(&self.namespace, key).map_err(broken)? else {
            return Ok(Answer::default());
        };
        let bytes = self.kernel.payloads().read(&object.digest).await.map_err(broken)?;
        let value_base64 = Some(Base64(bytes.to_vec()));
        Ok(Answer { value_base64, media_type: Some(object.media_type), ..Answer::default() })
    }

    fn logs_after(&self, after: u64) -> Vec<LogLine> {
        let lines = self.kernel.logbook().recent(&LogFilter { after, ..LogFilter::default() }, usize::MAX);
        lines
            .iter()
            .map(|line| LogLine {
                level: level_name(line.level).to_owned(),
                message: line.message.clone(),
                fields: line.fields.clone(),
            })
            .collect()
    }

    fn last_line(&self) -> u64 {
        self.kernel.logbook().recent(&LogFilter::default(), 1).last().map_or(0, |line| line.seq)
    }
}

fn level_name(level: Level) -> &'static str {
    match level {
        Level::Trace => "trace",
        Level::Debug => "debug",
        Level::Info => "info",
        Level::Warn => "warn",
        Level::Error => "error",
    }
}

fn world_of(kernel: &Kernel, path: &PluginPath) -> Option<World> {
    let plugin = kernel.catalog().plugin(path)?;
    Some(plugin.versions.last()?.entry.manifest.world)
}
