//! Turning a component into machine code.
//!
//! Compilation is work an uploader chooses, and so is reading a component's types and imports. Both run in a
//! child process that is niced, has bounds on memory and processor time, and is killed when it takes too long;
//! the server itself parses no component of a stranger's. Processes are given out in turn by tenant, and the
//! bytes are read only when it is their turn: a hundred pushes that wait hold a hundred files, no memory. The result is cached by (component digest, engine fingerprint) together with a digest of itself,
//! which is checked before the code is mapped: machine code is trusted, so nothing but this cache, in the
//! server's private folder, may supply it.
//!
//! A crash in the middle leaves at most a temporary file, which the next start removes. Hashing, copying and syncing files is
//! done on threads that may block.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use noetl_contract::inspect::Inspection;
use noetl_contract::{Digest, Tenant};
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::engine::{self, EngineKind, Engines};
use crate::error::PrepareError;
use crate::fair::{Budget, Reservation};

mod cache;
pub mod child;

use cache::Cache;
pub use child::Task;

/// How compiler processes are run.
#[derive(Debug, Clone)]
pub struct CompileOptions {
    /// The program and leading arguments that reach [`child::main`].
    pub program: PathBuf,
    pub arguments: Vec<String>,
    pub timeout: Duration,
    pub memory_bytes: u64,
    /// How many may run at once.
    pub jobs: usize,
}

pub(crate) struct Compiler {
    options: CompileOptions,
    cache: Cache,
    jobs: Budget,
    large: Budget,
}

/// What there is to compile: a plugin, in its tenant's turn, or an interpreter, which comes from the platform's own
/// paths and never from a tenant.
#[derive(Debug, Clone, Copy)]
enum Work<'a> {
    Plugin(&'a Tenant),
    Interpreter,
}

impl Work<'_> {
    /// How many times as long as a plugin's its compilation may take: an interpreter is a hundred times as large.
    fn patience(self) -> u32 {
        match self {
            Work::Plugin(_) => 1,
            Work::Interpreter => 10,
        }
    }
}

/// A component ready to be linked, and how long the compiler took (none when the cache had it).
pub(crate) struct Compiled {
    pub(crate) component: Component,
    pub(crate) took: Option<Duration>,
}

impl Compiler {
    pub(crate) fn new(options: CompileOptions, cache_dir: &Path) -> Result<Self, PrepareError> {
        let jobs = Budget::new(0, 0, options.jobs.max(1));
        Ok(Self { options, cache: Cache::open(cache_dir)?, jobs, large: Budget::new(0, 0, 1) })
    }

    /// Load from the cache, compiling first when it is not there.
    pub(crate) async fn load(
        &self,
        engine: &Engine,
        kind: EngineKind,
        (digest, whose): (Digest, &Tenant),
        bytes: impl AsyncFnOnce() -> Result<bytes::Bytes, PrepareError>,
    ) -> Result<Compiled, PrepareError> {
        self.load_as(engine, kind, digest, Work::Plugin(whose), bytes).await
    }

    /// The same for an interpreter.
    pub(crate) async fn load_large(
        &self,
        engine: &Engine,
        kind: EngineKind,
        digest: Digest,
        bytes: impl AsyncFnOnce() -> Result<bytes::Bytes, PrepareError>,
    ) -> Result<Compiled, PrepareError> {
        self.load_as(engine, kind, digest, Work::Interpreter, bytes).await
    }

    /// Make an interpreter's machine code unless it is there; `true` when it was made.
    pub(crate) async fn precompile(
        &self,
        engine: &Engine,
        kind: EngineKind,
        digest: Digest,
        bytes: impl AsyncFnOnce() -> Result<bytes::Bytes, PrepareError>,
    ) -> Result<bool, PrepareError> {
        let entry = self.cache.entry(&engine::fingerprint(engine), digest);
        let _job = self.turn(Work::Interpreter).await;
        if entry.is_there() {
            return Ok(false);
        }
        self.compile(&entry, kind, digest, Work::Interpreter, bytes).await.map(|_| true)
    }

    async fn load_as(
        &self,
        engine: &Engine,
        kind: EngineKind,
        digest: Digest,
        work: Work<'_>,
        bytes: impl AsyncFnOnce() -> Result<bytes::Bytes, PrepareError>,
    ) -> Result<Compiled, PrepareError> {
        let entry = self.cache.entry(&engine::fingerprint(engine), digest);
        match load(&entry, engine).await {
            Ok(Some(component)) => return Ok(Compiled { component, took: None }),
            Ok(None) => {}
            Err(problem) => tracing::warn!(%digest, %problem, "cached machine code was thrown away"),
        }
        let _job = self.turn(work).await;
        // Somebody else may have compiled it while this call waited for its turn.
        if let Ok(Some(component)) = load(&entry, engine).await {
            return Ok(Compiled { component, took: None });
        }
        let took = self.compile(&entry, kind, digest, work, bytes).await?;
        let component = load(&entry, engine).await?.ok_or(PrepareError::Tampered { digest })?;
        Ok(Compiled { component, took: Some(took) })
    }

    /// An interpreter compiles for many seconds; a push of a plugin does not wait behind it.
    async fn turn(&self, work: Work<'_>) -> Reservation {
        match work {
            Work::Plugin(whose) => self.jobs.reserve(whose, 0, 1, false).await,
            Work::Interpreter => self.large.reserve(&Tenant::main(), 0, 1, false).await,
        }
    }

    async fn compile(
        &self,
        entry: &cache::Entry,
        kind: EngineKind,
        digest: Digest,
        work: Work<'_>,
        bytes: impl AsyncFnOnce() -> Result<bytes::Bytes, PrepareError>,
    ) -> Result<Duration, PrepareError> {
        let (bytes, cache) = (bytes().await?, self.cache.clone());
        let started = Instant::now();
        let staged = blocking(move || {
            let actual = Digest::of(&bytes);
            if actual != digest {
                return Err(PrepareError::WrongBytes { expected: digest, actual });
            }
            Ok((cache.stage(&bytes)?, cache.scratch()?))
        });
        let (input, output) = staged.await?;
        self.run_child(Task::Compile(kind), work.patience(), input.path(), output.path()).await?;
        let entry = entry.clone();
        blocking(move || entry.store(output)).await?;
        Ok(started.elapsed())
    }

    /// Removes the machine code of a component that is not kept.
    pub(crate) fn forget(&self, engines: &Engines, digest: Digest) {
        self.cache.forget(&fingerprints(engines), digest);
    }

    /// Removes all machine code but that of these components.
    pub(crate) async fn keep_only(&self, engines: &Engines, digests: HashSet<Digest>) {
        let (cache, fingerprints) = (self.cache.clone(), fingerprints(engines));
        let _ = blocking(move || {
            cache.keep_only(&fingerprints, &digests);
            Ok(())
        })
        .await;
    }

    /// What a component is, before anything of it is compiled.
    pub(crate) async fn inspect(
        &self,
        whose: &Tenant,
        bytes: impl AsyncFnOnce() -> Result<bytes::Bytes, PrepareError>,
    ) -> Result<Inspection, PrepareError> {
        let _job = self.jobs.reserve(whose, 0, 1, false).await;
        let (bytes, cache) = (bytes().await?, self.cache.clone());
        let (input, output) = blocking(move || Ok((cache.stage(&bytes)?, cache.scratch()?))).await?;
        self.run_child(Task::Inspect, 1, input.path(), output.path()).await?;
        let told = std::fs::read(output.path()).map_err(PrepareError::io("read what the component is"))?;
        serde_json::from_slice(&told).map_err(|error| PrepareError::Crashed {
            status: "an answer of no use".to_owned(),
            stderr: error.to_string(),
        })
    }

    async fn run_child(&self, task: Task, patience: u32, input: &Path, output: &Path) -> Result<(), PrepareError> {
        let timeout = self.options.timeout * patience;
        let seconds = timeout.as_secs().max(1);
        let mut child = Command::new(&self.options.program)
            .args(&self.options.arguments)
            .arg("--task")
            .arg(task.name())
            .arg("--input")
            .arg(input)
            .arg("--output")
            .arg(output)
            .arg("--memory-bytes")
            .arg(self.options.memory_bytes.to_string())
            .arg("--cpu-seconds")
            .arg(seconds.saturating_mul(2).to_string())
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(PrepareError::io(format!("start the compiler process {}", self.options.program.display())))?;
        let mut stderr = child.stderr.take();
        let finished = async {
            let mut said = Vec::new();
            if let Some(stderr) = &mut stderr {
                // A compiler message is a line or two; the rest of a flood is not worth its memory.
                let _ = stderr.take(16 << 10).read_to_end(&mut said).await;
            }
            (child.wait().await, String::from_utf8_lossy(&said).trim().to_owned())
        };
        match tokio::time::timeout(timeout, finished).await {
            Err(_) => Err(PrepareError::TimedOut { seconds }),
            Ok((Err(error), _)) => {
                Err(PrepareError::Io { doing: "wait for the compiler process".into(), source: error })
            }
            Ok((Ok(status), _)) if status.success() => Ok(()),
            Ok((Ok(status), stderr)) if status.code() == Some(child::REJECTED) => {
                tracing::debug!(%status, %stderr, "component rejected");
                Err(PrepareError::Rejected(stderr))
            }
            Ok((Ok(status), stderr)) => Err(PrepareError::Crashed { status: status.to_string(), stderr }),
        }
    }
}

async fn load(entry: &cache::Entry, engine: &Engine) -> Result<Option<Component>, PrepareError> {
    let (entry, engine) = (entry.clone(), engine.clone());
    blocking(move || entry.load(&engine)).await
}

fn fingerprints(engines: &Engines) -> HashSet<String> {
    EngineKind::ALL.into_iter().map(|kind| engine::fingerprint(engines.get(kind))).collect()
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, PrepareError> + Send + 'static,
) -> Result<T, PrepareError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| PrepareError::io("read or write machine code")(std::io::Error::other(error)))?
}
