//! The log port: the one way anything becomes true.
//!
//! A *segment* is one pre-encoded record of one stream. Segments of a stream form a chain: each carries
//! the hash of the one before it, so a lost or changed record cannot hide. A *commit* is a list of
//! segments, of one or several streams, that become visible together or not at all.
//!
//! Every adapter settles, in this order and for all streams alike: is the idempotency key known (then the
//! earlier answer is given again), does the expected version hold, assign position, version and time, link
//! and hash, make durable, and only then move the heads and answer.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use noetl_contract::Digest;
use tokio::sync::{oneshot, watch};

pub mod file;

/// Name of a stream, for example `catalog` or `kv/acme`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(Arc<str>);

impl StreamId {
    /// `name` must be 1 to 200 bytes; callers build it from checked ids, so a longer one is our own mistake.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        let name = name.into();
        assert!((1..=200).contains(&name.len()), "a stream name has 1 to 200 bytes");
        Self(name)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What the writer believes about the stream it appends to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Append whatever is there.
    Any,
    /// Append only if the stream has exactly this many segments.
    Version(u64),
}

/// One segment to be written.
#[derive(Debug, Clone)]
pub struct Append {
    pub stream: StreamId,
    pub expected: Expected,
    /// Idempotency key, at most 200 bytes, unique within the stream. A second append with the same key
    /// writes nothing and answers as the first did.
    pub key: Option<String>,
    pub body: Bytes,
}

/// What became of one [`Append`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Place in the whole log; grows with every segment, gaps allowed.
    pub position: u64,
    /// Place in the stream: 1 for its first segment.
    pub version: u64,
    /// Milliseconds since 1970; never goes back within a log.
    pub time_ms: u64,
    /// The key was known: this is the earlier segment, nothing was written.
    pub duplicate: bool,
}

/// One segment as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    pub position: u64,
    pub stream: StreamId,
    pub version: u64,
    pub time_ms: u64,
    pub key: Option<String>,
    /// Hash of the stream's segment before this one; all zero for the first.
    pub previous: Digest,
    /// Hash over everything above and the body.
    pub hash: Digest,
    pub body: Bytes,
}

/// The tip of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub position: u64,
    pub version: u64,
    pub hash: Digest,
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum AppendError {
    #[error("stream `{stream}` is at version {actual}, not {expected}")]
    Conflict { stream: StreamId, expected: u64, actual: u64 },
    #[error("a segment of {size} bytes is over the limit of {limit}")]
    TooLarge { size: usize, limit: usize },
    #[error("a commit has {0}")]
    Invalid(&'static str),
    /// The disk refused. Nothing of this commit is or will become visible.
    #[error("the log could not be written: {0}")]
    Io(Arc<std::io::Error>),
    /// Too much waits to be written. Nothing of this commit was queued; try again later.
    #[error("the log's queue is full")]
    Overloaded,
    /// This or an earlier write left the log in a state only a restart can settle; it takes no more writes.
    /// Whether the commit that met the error is in the log shows after that restart.
    #[error("the log stopped taking writes after an error: {0}")]
    Stopped(String),
}

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("the log could not be read: {0}")]
    Io(#[from] std::io::Error),
    #[error("the log is damaged at position {position} in {file}: {problem}")]
    Damaged { position: u64, file: String, problem: String },
}

/// Answer to a submitted commit, in the order of its appends.
pub type Ticket = oneshot::Receiver<Result<Vec<Appended>, AppendError>>;

/// What a check of the whole log found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    pub segments: u64,
    pub streams: u64,
    pub bytes: u64,
    pub files: u64,
    /// One line each; empty when the log is whole.
    pub problems: Vec<String>,
}

/// The port. One process owns an embedded log; readers never wait for writers.
#[async_trait::async_trait]
pub trait Log: Send + Sync + 'static {
    /// Queue a commit. Commits take effect in the order of the calls, so whoever checks a condition and
    /// submits under one lock has checked it against exactly what precedes the commit. Refused with
    /// [`AppendError::Overloaded`] when too much waits already; [`Log::commit`] waits for room instead.
    fn submit(&self, commit: Vec<Append>) -> Ticket;

    /// Queue a commit and wait until it is durable.
    async fn commit(&self, commit: Vec<Append>) -> Result<Vec<Appended>, AppendError> {
        match self.submit(commit).await {
            Ok(answer) => answer,
            Err(_) => Err(AppendError::Stopped("the log's writer is gone".to_owned())),
        }
    }

    /// Append one segment.
    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        let mut answers = self.commit(vec![append]).await?;
        answers.pop().ok_or_else(|| AppendError::Stopped("the log answered nothing".to_owned()))
    }

    fn head(&self, stream: &StreamId) -> Result<Option<Head>, ReadError>;

    /// Segments of one stream from `from_version` (1 is the first), at most `limit`.
    fn read_stream(&self, stream: &StreamId, from_version: u64, limit: usize) -> Result<Vec<Segment>, ReadError>;

    /// Segments of all streams with a position greater than `after` (0: from the start), in log order.
    fn read_all(&self, after: u64, limit: usize) -> Result<Vec<Segment>, ReadError>;

    /// Position of the last durable segment, 0 when empty; changes wake the receiver.
    fn tip(&self) -> watch::Receiver<u64>;

    /// Read everything and check every checksum and chain link.
    fn verify(&self) -> Result<Verified, ReadError>;
}
