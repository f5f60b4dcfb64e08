//! The embedded log: append-only, preallocated files and one thread that writes them.
//!
//! Why our own and not a storage engine: the log needs an append, a sync and reads by position, and of those
//! engines each adds a second write path (memtables, compaction) that the fold of a log never uses. The
//! comparison is in `docs/decisions/0002-embedded-log.md`.
//!
//! Parts: `disk` (what is asked of a disk), `volume` (the files), `frame` (a segment on disk), `skips` (finding a
//! version in a stream), `lookup` and `run` (finding a stream or key), `queue`, `writer` (group commit),
//! `housekeeper` (sidecars, spare volumes), `recover` (opening), `reader`, `verify`. Each describes its part
//! of the format, so that the log can be read without this code.
//!
//! Invariants:
//! 1. An answer `Ok` comes after the sync of the write that carried the commit.
//! 2. The segments of a commit are visible together, or not at all, also after a crash.
//! 3. Readers see only what is synced, and never wait for the writer.
//! 4. A batch is written only after the batch before it was synced.
//! 5. The volumes alone are the log; sidecars are made again from them.
//!
//! Memory: lookup tables of the newest volume, 1.35 bytes for each stream and key in older ones, the heads of
//! 16,384 streams in use, the queue (bounded by `queue_bytes`), one batch buffer. Nothing grows with the
//! number of segments, and only the 1.35 bytes grow with the number of streams.
//!
//! Crash: opening repairs a torn tail before anything is read, and refuses damage in the middle by naming it.
//! Overload: `commit` waits for room in the queue, `submit` is refused with `Overloaded`.
//! Disk errors: see `writer`.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::{OwnedSemaphorePermit, oneshot, watch};

use super::{Append, AppendError, Appended, Head, Log, ReadError, Segment, StreamId, Ticket, Verified};

mod disk;
mod frame;
mod housekeeper;
mod lookup;
mod queue;
mod reader;
mod recover;
mod run;
mod skips;
mod verify;
mod volume;
mod writer;

#[cfg(test)]
mod model_disk;
#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;

use disk::{Disk, Folder};
use housekeeper::Housekeeper;
use lookup::Lookup;
use queue::{Job, Queue};
use reader::Reader;
use volume::{DATA, Volumes};
use writer::Writer;

const MIB: usize = 1 << 20;

/// Sizes of an embedded log. The defaults suit a server; tests take smaller ones.
#[derive(Debug, Clone)]
pub struct FileLogOptions {
    /// Size of a file of the log.
    pub volume_bytes: u64,
    /// Size of the first file; each further one doubles until `volume_bytes`.
    pub first_volume_bytes: u64,
    /// A larger body is refused: large things are payloads.
    pub max_segment_bytes: usize,
    /// A commit that takes more on disk is refused.
    pub max_commit_bytes: usize,
    /// Memory of commits that wait to be written.
    pub queue_bytes: usize,
    /// A write to the disk is closed when it has reached this size.
    pub batch_bytes: usize,
}

impl Default for FileLogOptions {
    fn default() -> Self {
        Self {
            volume_bytes: 64 * MIB as u64,
            first_volume_bytes: 4 * MIB as u64,
            max_segment_bytes: 16 * MIB,
            max_commit_bytes: 32 * MIB,
            queue_bytes: 64 * MIB,
            batch_bytes: 4 * MIB,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the log could not be opened: {0}")]
    Io(#[from] io::Error),
    #[error(
        "the log is damaged in {file} at position {position}: {problem}; nothing was changed, restore the file from a copy"
    )]
    Damaged { file: String, position: u64, problem: String },
    #[error("the log's options do not fit together: {0}")]
    Options(&'static str),
}

/// Milliseconds since 1970.
type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// A log in a folder that this process owns.
pub struct FileLog {
    reader: Arc<Reader>,
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
}

impl FileLog {
    /// Opens the log in `folder`, or makes an empty one. Recovery is over when this returns.
    ///
    /// The caller makes sure that no other process has it open (`DataFolder` does).
    pub fn open(folder: impl AsRef<Path>, options: FileLogOptions) -> Result<Arc<Self>, OpenError> {
        let disk = Arc::new(Folder::open(folder.as_ref().to_owned())?);
        let (reader, writer) = open_parts(disk, options.clone(), Arc::new(wall_clock), true)?;
        let queue = Arc::new(Queue::new(options.queue_bytes));
        Ok(Arc::new(Self { reader, thread: Some(start(writer, Arc::clone(&queue))?), queue }))
    }

    fn enqueue(&self, commit: Vec<Append>, room: Option<OwnedSemaphorePermit>) -> Ticket {
        let (answer, ticket) = oneshot::channel();
        if let Err(job) = self.queue.push(Job { commit, answer, room }) {
            // The receiver is still in our hands, so the answer arrives.
            let _delivered = job.answer.send(Err(AppendError::Stopped("the log is closed".to_owned())));
        }
        ticket
    }
}

/// Recovery, then a reader and a writer that are not yet tied to a thread.
fn open_parts(
    disk: Arc<dyn Disk>,
    options: FileLogOptions,
    clock: Clock,
    background: bool,
) -> Result<(Arc<Reader>, Writer), OpenError> {
    if options.first_volume_bytes < 2 * DATA || options.volume_bytes < 2 * DATA {
        return Err(OpenError::Options("a file of the log has at least 8192 bytes"));
    }
    if options.max_commit_bytes > u32::MAX as usize || options.max_segment_bytes >= options.max_commit_bytes {
        return Err(OpenError::Options("a segment must be smaller than a commit, a commit smaller than 4 GiB"));
    }
    let recovered = recover::recover(&*disk, &options)?;
    let newest = Arc::clone(recovered.volumes.last().expect("recovery makes the first volume"));
    let lookup = Arc::new(Lookup::new(recovered.newest, recovered.runs));
    let housekeeper = Housekeeper::start(Arc::clone(&disk), Arc::clone(&lookup), background)?;
    let volumes = Volumes::new(disk, recovered.volumes);
    let reader = Arc::new(Reader { volumes, lookup, tip: watch::Sender::new(recovered.tip) });
    let writer = Writer::new(Arc::clone(&reader), housekeeper, options, clock, newest, recovered.time_ms)?;
    Ok((reader, writer))
}

fn wall_clock() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn start(mut writer: Writer, queue: Arc<Queue>) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name("log-writer".to_owned()).spawn(move || {
        // Whoever waits for a commit waits for this thread to be run again after the disk is done. On a busy
        // machine that costs more than the disk, so it asks to go first; most users may not, which is fine.
        if let Err(error) = rustix::process::setpriority_process(None, -15) {
            tracing::debug!(%error, "the log's thread keeps the ordinary priority");
        }
        // Also when the writer panics: nobody must queue up behind a thread that is gone.
        let _close = CloseOnDrop(&queue);
        while let Some(jobs) = queue.take() {
            writer.process(jobs);
        }
    })
}

struct CloseOnDrop<'a>(&'a Queue);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Drop for FileLog {
    /// Writes what is queued, then ends the threads.
    fn drop(&mut self) {
        self.queue.close();
        if let Some(thread) = self.thread.take() {
            // A panic there has closed the queue and been reported by the runtime.
            let _finished = thread.join();
        }
    }
}

#[async_trait::async_trait]
impl Log for FileLog {
    fn submit(&self, commit: Vec<Append>) -> Ticket {
        if let Some(room) = self.queue.try_enter(&commit) {
            return self.enqueue(commit, Some(room));
        }
        let (answer, ticket) = oneshot::channel();
        // The receiver is still in our hands, so the answer arrives.
        let _delivered = answer.send(Err(AppendError::Overloaded));
        ticket
    }

    async fn commit(&self, commit: Vec<Append>) -> Result<Vec<Appended>, AppendError> {
        let room = self.queue.enter(&commit).await;
        let ticket = self.enqueue(commit, room);
        ticket.await.unwrap_or_else(|_| Err(AppendError::Stopped("the log's writer is gone".to_owned())))
    }

    fn head(&self, stream: &StreamId) -> Result<Option<Head>, ReadError> {
        self.reader.head(stream)
    }

    fn read_stream(&self, stream: &StreamId, from_version: u64, limit: usize) -> Result<Vec<Segment>, ReadError> {
        self.reader.stream(stream, from_version, limit)
    }

    fn read_all(&self, after: u64, limit: usize) -> Result<Vec<Segment>, ReadError> {
        self.reader.volumes.segments_after(after, limit)
    }

    fn tip(&self) -> watch::Receiver<u64> {
        self.reader.tip.subscribe()
    }

    fn verify(&self) -> Result<Verified, ReadError> {
        verify::verify(&self.reader)
    }
}
