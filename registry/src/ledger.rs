//! A state folded from one stream of the log, and the one way to change it.
//!
//! A change is decided against a snapshot and appended with the version of the stream that snapshot stands
//! for. If something else was written meanwhile the append conflicts, the tail is folded in and the change
//! is decided anew: no two writers can interleave, whoever they are.
//!
//! Once an append was handed to the log it is followed to its end even if the caller goes away, so the
//! snapshot never lags behind what is durable. Readers load the snapshot without a lock.
//!
//! Bad input: an event this program does not know stops the fold with an error that says so. Skipping it
//! would serve a state that never was.

use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use noetl_store::log::{Append, AppendError, Expected, Log, ReadError, Segment, StreamId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{Mutex, watch};

/// Segments read from the log at once while folding.
const BATCH: usize = 1024;

/// An event with what the log added to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded<E> {
    /// Place in the whole log.
    pub position: u64,
    /// Place in the stream, from 1.
    pub version: u64,
    pub time_ms: u64,
    pub event: E,
}

/// Why recorded events cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FoldError {
    #[error(
        "event {version} of stream `{stream}` is a `{kind}`, which this version of noetl does not know: the data was \
         written by a newer version; start that version, or one newer still"
    )]
    Newer { stream: String, version: u64, kind: String },
    #[error("event {version} of stream `{stream}` cannot be read: {problem}")]
    Malformed { stream: String, version: u64, problem: String },
    #[error("event {version} contradicts the events before it: {problem}")]
    Contradiction { version: u64, problem: String },
}

#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    #[error(transparent)]
    Append(#[from] AppendError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Fold(#[from] FoldError),
    /// The task that follows an append to its end was lost, which only a shutdown does.
    #[error("the server is stopping: ask again when it runs, the change may or may not have been made")]
    Stopping,
}

/// An event type: JSON with a `type` tag.
pub(crate) trait Event: Serialize + DeserializeOwned + Clone + Send + Sync + 'static {
    /// The tags this program knows.
    const KINDS: &'static [&'static str];
}

/// A state that is nothing but its events.
pub(crate) trait Fold: Default + Clone + Send + Sync + 'static {
    type Event: Event;

    /// Takes in one event. Pure: the same events give the same state anywhere.
    fn apply(&mut self, recorded: &Recorded<Self::Event>) -> Result<(), FoldError>;
}

/// A state together with the version of the stream it stands for.
#[derive(Clone)]
struct Snapshot<S> {
    version: u64,
    state: Arc<S>,
}

pub(crate) struct Ledger<S: Fold> {
    log: Arc<dyn Log>,
    stream: StreamId,
    snapshot: ArcSwap<Snapshot<S>>,
    /// Held from decision to fold. It spares our own writers the conflicts; the expected version is what
    /// keeps the stream right.
    writer: Arc<Mutex<()>>,
    revision: watch::Sender<u64>,
}

/// A change that was made, or found to be made already.
pub(crate) struct Changed<S, T> {
    pub value: T,
    /// The state with the change in it.
    pub state: Arc<S>,
}

impl<S: Fold> Ledger<S> {
    /// Folds the whole stream.
    pub fn open(log: Arc<dyn Log>, stream: StreamId) -> Result<Arc<Self>, LedgerError> {
        let empty = Snapshot { version: 0, state: Arc::new(S::default()) };
        let (revision, _) = watch::channel(0);
        let writer = Arc::new(Mutex::new(()));
        let ledger = Self { log, stream, snapshot: ArcSwap::from_pointee(empty), writer, revision };
        ledger.catch_up()?;
        Ok(Arc::new(ledger))
    }

    pub fn state(&self) -> Arc<S> {
        self.snapshot.load().state.clone()
    }

    /// Runs `look` on the snapshot without counting a reference.
    pub fn with<R>(&self, look: impl FnOnce(&S) -> R) -> R {
        look(&self.snapshot.load().state)
    }

    /// Version of the stream the snapshot stands for; changes wake the receiver.
    pub fn revision(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    /// Decides and appends. `decide` sees the state the event will follow directly, and may run more than
    /// once; no event means that there is nothing to change.
    pub async fn change<T, E: From<LedgerError>>(
        self: &Arc<Self>,
        mut decide: impl FnMut(&S) -> Result<(Option<S::Event>, T), E>,
    ) -> Result<Changed<S, T>, E> {
        loop {
            let guard = self.writer.clone().lock_owned().await;
            let before = self.snapshot.load_full();
            let (event, value) = decide(&before.state)?;
            let Some(event) = event else {
                return Ok(Changed { value, state: before.state.clone() });
            };
            let ledger = self.clone();
            let followed = tokio::spawn(async move {
                let _held_until_folded = guard;
                ledger.append(&before, event).await
            });
            match followed.await.map_err(|_| LedgerError::Stopping)? {
                Ok(state) => return Ok(Changed { value, state }),
                Err(LedgerError::Append(AppendError::Conflict { .. })) => self.catch_up_alone().await?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn append(&self, before: &Snapshot<S>, event: S::Event) -> Result<Arc<S>, LedgerError> {
        let body = serde_json::to_vec(&event).map_err(|error| FoldError::Malformed {
            stream: self.stream.to_string(),
            version: before.version + 1,
            problem: error.to_string(),
        })?;
        let expected = Expected::Version(before.version);
        let append = Append { stream: self.stream.clone(), expected, key: None, body: Bytes::from(body) };
        let appended = self.log.append(append).await?;
        let recorded =
            Recorded { position: appended.position, version: appended.version, time_ms: appended.time_ms, event };
        let mut state = S::clone(&before.state);
        state.apply(&recorded)?;
        Ok(self.publish(state, recorded.version))
    }

    async fn catch_up_alone(&self) -> Result<(), LedgerError> {
        let _guard = self.writer.lock().await;
        self.catch_up()
    }

    /// Folds what the stream has beyond the snapshot. The caller holds the writer's lock or is alone.
    fn catch_up(&self) -> Result<(), LedgerError> {
        let before = self.snapshot.load_full();
        let (mut state, mut version) = (S::clone(&before.state), before.version);
        loop {
            let segments = self.log.read_stream(&self.stream, version + 1, BATCH)?;
            let Some(last) = segments.last() else { break };
            version = last.version;
            for segment in &segments {
                state.apply(&decode(segment)?)?;
            }
        }
        if version != before.version {
            self.publish(state, version);
        }
        Ok(())
    }

    fn publish(&self, state: S, version: u64) -> Arc<S> {
        let state = Arc::new(state);
        self.snapshot.store(Arc::new(Snapshot { version, state: state.clone() }));
        self.revision.send_replace(version);
        state
    }
}

/// The event of a segment.
pub(crate) fn decode<E: Event>(segment: &Segment) -> Result<Recorded<E>, FoldError> {
    #[derive(serde::Deserialize)]
    struct Tag {
        #[serde(rename = "type")]
        kind: String,
    }
    let stream = || segment.stream.to_string();
    let malformed = |error: serde_json::Error| FoldError::Malformed {
        stream: stream(),
        version: segment.version,
        problem: error.to_string(),
    };
    let Tag { kind } = serde_json::from_slice(&segment.body).map_err(malformed)?;
    if !E::KINDS.contains(&kind.as_str()) {
        return Err(FoldError::Newer { stream: stream(), version: segment.version, kind });
    }
    Ok(Recorded {
        position: segment.position,
        version: segment.version,
        time_ms: segment.time_ms,
        event: serde_json::from_slice(&segment.body).map_err(malformed)?,
    })
}
