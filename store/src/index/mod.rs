//! kv and objects: the streams `kv/<tenant>` and `objects/<tenant>` of the log, folded into SQLite for reading.
//!
//! The log is the truth. The database can be deleted, or found damaged, at any time: it is then folded again
//! from the first segment. It is not synced with every change; after a power cut it is merely behind, and the
//! cursor in it (changed in the same transaction as the rows) says from where to go on.
//!
//! Invariants:
//! 1. All segments of these streams are written through one `Index`, so whatever is neither in the tables
//!    nor under way does not exist.
//! 2. A commit is checked and submitted under one lock, and a check waits for commits under way that
//!    touch the same key. So a condition is checked against exactly what precedes the commit in the log.
//! 3. A commit has been applied when its caller gets `Ok`: its own next read sees it.
//! 4. The version of a key is the log position of its last write, so it never repeats, also after a delete.
//!
//! Crash: commits in the log and not in the tables are applied at the next start, before anything is read.
//! Overload: the log's queue refuses, and the caller gets that. Database error while applying: the commit is in the
//! log, the tables are behind; reads and writes are refused until a restart catches up.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;

use bytes::Bytes;
use noetl_contract::{Digest, PluginPath, Tenant};
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};

use crate::log::{Append, AppendError, Expected, Log, ReadError, StreamId};

mod applier;
mod events;
mod tables;

#[cfg(test)]
mod tests;

use applier::Task;
use events::Event;
use tables::Tables;

/// Segments folded at once when catching up.
const CATCH_UP: usize = 128;

/// Whose keys these are: those of one plugin of one tenant, all its versions alike.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace {
    pub tenant: Tenant,
    pub path: PluginPath,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KvEntry {
    pub value: Bytes,
    pub version: u64,
}

/// The staged writes of one call.
#[derive(Debug, Clone)]
pub struct KvCommit {
    pub namespace: Namespace,
    /// Idempotency key of the call: a second commit with it changes nothing and answers `Ok`.
    pub call: String,
    /// Versions that must still hold; none: the key must be absent.
    pub conditions: Vec<(String, Option<u64>)>,
    /// New values; none: delete.
    pub writes: Vec<(String, Option<Bytes>)>,
}

/// A named payload.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ObjectInfo {
    pub key: String,
    pub size: u64,
    pub digest: Digest,
    pub media_type: String,
}

#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    #[error("the index could not be read or written: {0}")]
    Database(#[from] rusqlite::Error),
    #[error("the index file could not be replaced: {0}")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Log(#[from] AppendError),
    #[error("segment {position} of stream `{stream}` is not understood: {problem}")]
    Segment { position: u64, stream: String, problem: String },
    #[error("the index fell behind the log after an error and is rebuilt at the next start: {0}")]
    Behind(String),
}

#[derive(Debug, thiserror::Error)]
pub enum KvCommitError {
    #[error("key `{key}` has version {}, not {}", shown(.actual), shown(.expected))]
    Conflict { key: String, expected: Option<u64>, actual: Option<u64> },
    #[error(transparent)]
    Log(#[from] AppendError),
    #[error(transparent)]
    Index(IndexError),
}

fn shown(version: &Option<u64>) -> String {
    version.map_or_else(|| "none".to_owned(), |version| version.to_string())
}

impl From<IndexError> for KvCommitError {
    fn from(error: IndexError) -> Self {
        match error {
            IndexError::Log(error) => Self::Log(error),
            other => Self::Index(other),
        }
    }
}

/// What a commit under way touches.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Touched {
    Kv(Namespace, String),
    Object(Namespace, String),
}

/// The lock under which commits are checked and submitted, and what it guards.
#[derive(Default)]
struct Gate {
    /// The newest commit under way for each key, and a signal for when it has been settled.
    under_way: HashMap<Touched, (u64, watch::Receiver<bool>)>,
    submitted: u64,
    settled: u64,
    /// Why the tables are behind the log.
    behind: Option<String>,
}

impl Gate {
    fn waits_for<'a>(&self, touched: impl Iterator<Item = &'a Touched>) -> Option<watch::Receiver<bool>> {
        touched
            .filter_map(|key| self.under_way.get(key))
            .max_by_key(|(number, _)| *number)
            .map(|(_, done)| done.clone())
    }

    fn check(&self) -> Result<(), IndexError> {
        self.behind.as_ref().map_or(Ok(()), |reason| Err(IndexError::Behind(reason.clone())))
    }
}

/// The answer to a submitted change, once it is in the log and in the tables.
type Applied = oneshot::Receiver<Result<(), IndexError>>;

/// What the check of a change led to.
enum Step {
    Wait(watch::Receiver<bool>),
    Conflict { key: String, expected: Option<u64>, actual: Option<u64> },
    Submitted(Applied),
    NothingToDo,
}

pub struct Index {
    log: Arc<dyn Log>,
    file: PathBuf,
    readers: Mutex<Vec<Tables>>,
    gate: Arc<Mutex<Gate>>,
    tasks: Option<mpsc::Sender<Task>>,
    thread: Option<JoinHandle<()>>,
}

impl Index {
    /// Opens the index and brings it up to the log's tip.
    pub fn open(file: impl AsRef<Path>, log: Arc<dyn Log>) -> Result<Arc<Self>, IndexError> {
        let file = file.as_ref().to_owned();
        let tables = match open_caught_up(&file, &*log) {
            Err(IndexError::Database(error)) => {
                tracing::warn!(%error, "the index is damaged and is rebuilt from the log");
                tables::delete(&file)?;
                open_caught_up(&file, &*log)?
            }
            other => other?,
        };
        let gate = Arc::new(Mutex::new(Gate::default()));
        let (tasks, receiver) = mpsc::channel();
        let thread = applier::start(tables, Arc::clone(&log), Arc::clone(&gate), receiver)?;
        let readers = Mutex::new(vec![Tables::reader(&file)?]);
        Ok(Arc::new(Self { log, file, readers, gate, tasks: Some(tasks), thread: Some(thread) }))
    }

    fn read<T>(&self, query: impl FnOnce(&Tables) -> rusqlite::Result<T>) -> Result<T, IndexError> {
        let free = self.readers.lock().pop();
        let tables = free.map_or_else(|| Tables::reader(&self.file), Ok)?;
        let found = query(&tables)?;
        self.readers.lock().push(tables);
        Ok(found)
    }

    fn read_current<T>(&self, query: impl FnOnce(&Tables) -> rusqlite::Result<T>) -> Result<T, IndexError> {
        self.gate.lock().check()?;
        self.read(query)
    }

    pub fn kv_get(&self, namespace: &Namespace, key: &str) -> Result<Option<KvEntry>, IndexError> {
        self.read_current(|tables| tables.kv_get(namespace, key))
    }

    /// Keys that start with `prefix`, in byte order, after `after`.
    pub fn kv_list(
        &self,
        namespace: &Namespace,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, IndexError> {
        self.read_current(|tables| tables.kv_list(namespace, prefix, after, limit))
    }

    pub fn object_get(&self, namespace: &Namespace, key: &str) -> Result<Option<ObjectInfo>, IndexError> {
        self.read_current(|tables| tables.object_get(namespace, key))
    }

    /// Objects whose keys start with `prefix`, in byte order, after `after`.
    pub fn object_list(
        &self,
        namespace: &Namespace,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectInfo>, IndexError> {
        self.read_current(|tables| tables.object_list(namespace, prefix, after, limit))
    }

    /// Applies the writes of a call if all its conditions hold, all of them or none.
    pub async fn kv_commit(&self, commit: KvCommit) -> Result<(), KvCommitError> {
        let KvCommit { namespace, call, conditions, writes } = commit;
        let stream = StreamId::new(format!("kv/{}", namespace.tenant));
        // Calls of different plugins share the stream; the digest keeps any call's key within the log's limit.
        let key = Digest::of(format!("{}\n{call}", namespace.path).as_bytes()).hex();
        let touched = |key: &String| Touched::Kv(namespace.clone(), key.clone());
        let conditional: Vec<_> = conditions.iter().map(|(key, _)| touched(key)).collect();
        let written: Vec<_> = writes.iter().map(|(key, _)| touched(key)).collect();
        let body = Event::KvWritten { path: namespace.path.clone(), writes }.encode();
        let append = Append { stream, expected: Expected::Any, key: Some(key), body };
        let check = || {
            for (key, expected) in &conditions {
                let actual = self.read(|tables| tables.kv_version(&namespace, key))?;
                if actual != *expected {
                    return Ok(Some(Step::Conflict { key: key.clone(), expected: *expected, actual }));
                }
            }
            Ok(if written.is_empty() { Some(Step::NothingToDo) } else { None })
        };
        match self.change(&conditional, written.clone(), &append, check).await? {
            None => Ok(()),
            Some((key, expected, actual)) => {
                if self.was_committed(append).await? {
                    return Ok(());
                }
                Err(KvCommitError::Conflict { key, expected, actual })
            }
        }
    }

    /// Whether the append's key is in the log already. The log looks at the key before the version, and no
    /// stream is ever that long, so this asks without writing.
    async fn was_committed(&self, append: Append) -> Result<bool, AppendError> {
        let question = Append { expected: Expected::Version(u64::MAX), body: Bytes::new(), ..append };
        match self.log.append(question).await {
            Ok(answer) => Ok(answer.duplicate),
            Err(AppendError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Names a payload. The same payload under the same name again writes nothing.
    pub async fn object_put(&self, namespace: &Namespace, object: ObjectInfo) -> Result<(), IndexError> {
        let check = || {
            let present = self.read(|tables| tables.object_get(namespace, &object.key))?;
            Ok((present.as_ref() == Some(&object)).then_some(Step::NothingToDo))
        };
        let event = Event::ObjectPut { path: namespace.path.clone(), object: object.clone() };
        self.change_object(namespace, &object.key, &event, check).await
    }

    pub async fn object_delete(&self, namespace: &Namespace, key: &str) -> Result<(), IndexError> {
        let check = || {
            let present = self.read(|tables| tables.object_get(namespace, key))?;
            Ok(present.is_none().then_some(Step::NothingToDo))
        };
        let event = Event::ObjectDeleted { path: namespace.path.clone(), key: key.to_owned() };
        self.change_object(namespace, key, &event, check).await
    }

    async fn change_object(
        &self,
        namespace: &Namespace,
        key: &str,
        event: &Event,
        check: impl Fn() -> Result<Option<Step>, IndexError>,
    ) -> Result<(), IndexError> {
        let touched = vec![Touched::Object(namespace.clone(), key.to_owned())];
        let stream = StreamId::new(format!("objects/{}", namespace.tenant));
        let append = Append { stream, expected: Expected::Any, key: None, body: event.encode() };
        self.change(&touched, touched.clone(), &append, check).await.map(drop)
    }

    /// Waits until nothing under way touches `read`, checks, submits, and waits until it has been applied.
    /// Answers the conflict, if the check found one.
    async fn change(
        &self,
        read: &[Touched],
        written: Vec<Touched>,
        append: &Append,
        check: impl Fn() -> Result<Option<Step>, IndexError>,
    ) -> Result<Option<(String, Option<u64>, Option<u64>)>, IndexError> {
        loop {
            let step = {
                let mut gate = self.gate.lock();
                gate.check()?;
                match gate.waits_for(read.iter()) {
                    Some(settled) => Step::Wait(settled),
                    None => match check()? {
                        Some(step) => step,
                        None => Step::Submitted(self.submit(&mut gate, written.clone(), append.clone())),
                    },
                }
            };
            match step {
                // An error means the other side is gone, which settles it as well.
                Step::Wait(mut settled) => drop(settled.wait_for(|settled| *settled).await),
                Step::Conflict { key, expected, actual } => return Ok(Some((key, expected, actual))),
                Step::NothingToDo => return Ok(None),
                Step::Submitted(applied) => {
                    let gone = |_| Err(IndexError::Behind("its thread is gone".to_owned()));
                    return applied.await.unwrap_or_else(gone).map(|()| None);
                }
            }
        }
    }

    fn submit(&self, gate: &mut Gate, written: Vec<Touched>, append: Append) -> Applied {
        gate.submitted += 1;
        let number = gate.submitted;
        let (settle, settled) = watch::channel(false);
        gate.under_way.extend(written.iter().map(|key| (key.clone(), (number, settled.clone()))));
        let (reply, applied) = oneshot::channel();
        let (stream, body) = (append.stream.clone(), append.body.clone());
        let ticket = self.log.submit(vec![append]);
        let task = Task { number, stream, body, ticket, written, settle, reply };
        if let Some(tasks) = &self.tasks {
            // If the thread is gone, the reply is dropped with the task and the caller learns of it.
            let _sent = tasks.send(task);
        }
        applied
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        // The writer closes last: only it can fold SQLite's write-ahead file into the database and remove it.
        self.readers.lock().clear();
        self.tasks = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported by the runtime; the next start catches up.
            let _finished = thread.join();
        }
    }
}

fn open_caught_up(file: &Path, log: &dyn Log) -> Result<Tables, IndexError> {
    let mut tables = Tables::open(file)?;
    let tip = *log.tip().borrow();
    if tables.cursor()? > tip {
        tracing::warn!("the index is not of this log and is rebuilt");
        drop(tables);
        tables::delete(file)?;
        tables = Tables::open(file)?;
    }
    loop {
        let segments = log.read_all(tables.cursor()?, CATCH_UP)?;
        let Some(last) = segments.last().map(|segment| segment.position) else { return Ok(tables) };
        tables.apply(segments.iter().map(|segment| (segment.position, &segment.stream, &segment.body)), last)?;
    }
}
