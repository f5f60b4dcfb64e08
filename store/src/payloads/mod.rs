//! Payloads: bytes by their sha256, immutable, on the local disk.
//!
//! A payload is written to a file under `tmp/`, hashed on the way, synced, and then renamed to
//! `ab/cdef...` after its digest, and that folder is synced too. So a named payload is whole and
//! durable, and writing the same bytes twice ends in the same file.
//!
//! Invariants:
//! 1. A file under a digest has exactly the bytes of that digest; `read` checks it again.
//! 2. When `finish` answers `Ok`, the payload survives a power cut.
//! 3. A writer that is dropped, or dies, leaves nothing: the file under `tmp/` is removed at once, or at the
//!    next start.
//!
//! Large payloads pass through in pieces; only `read`, `read_at_most` and `put_bytes` hold a whole one in
//! memory.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Bytes, BytesMut};
use futures::Stream;
use noetl_contract::Digest;
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};

use crate::folder::{create_folder_durably, sync_folder};

mod owners;
mod sealed;
mod writer;

#[cfg(test)]
mod tests;

pub use sealed::SealedPayload;
pub use writer::PayloadWriter;

/// Bytes that `stream` hands on at once.
const PIECE: u64 = 256 * 1024;

/// Where to find a payload, and how long it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct PayloadRef {
    pub digest: Digest,
    pub size: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum PayloadError {
    #[error("there is no payload {0}")]
    NotFound(Digest),
    #[error("the payload {digest} is damaged: its bytes have the digest {actual}; push it again")]
    Damaged { digest: Digest, actual: Digest },
    #[error("the payload {digest} has {size} bytes, more than the {limit} that are read at once")]
    TooLarge { digest: Digest, size: u64, limit: u64 },
    #[error("the payload store failed: {0}")]
    Io(#[from] io::Error),
}

/// The store. Clones share it.
#[derive(Debug, Clone)]
pub struct Payloads {
    place: Arc<Place>,
}

#[derive(Debug)]
struct Place {
    folder: PathBuf,
    unfinished: PathBuf,
    /// Makes the names under `tmp/` differ.
    started: AtomicU64,
}

impl Payloads {
    /// Opens the store in `folder`, which this process owns, and removes what unfinished writers left.
    pub fn open(folder: impl AsRef<Path>) -> io::Result<Self> {
        let folder = folder.as_ref().to_owned();
        let unfinished = folder.join("tmp");
        create_folder_durably(&folder)?;
        // All folders are made here, so that no payload has to wait until the folder it goes to is durable.
        let parts = (0..=u8::MAX).map(|first| folder.join(format!("{first:02x}")));
        for part in parts.chain([unfinished.clone()]).filter(|part| !part.is_dir()) {
            std::fs::create_dir(part)?;
        }
        // Also when nothing was missing: whoever made them may have died before this.
        sync_folder(&folder)?;
        for entry in std::fs::read_dir(&unfinished)? {
            std::fs::remove_file(entry?.path())?;
        }
        Ok(Self { place: Arc::new(Place { folder, unfinished, started: AtomicU64::new(0) }) })
    }

    /// A writer whose payload appears when it is finished.
    pub async fn writer(&self) -> io::Result<PayloadWriter> {
        let number = self.place.started.fetch_add(1, Ordering::Relaxed);
        PayloadWriter::create(self.clone(), self.place.unfinished.join(number.to_string())).await
    }

    pub async fn put_bytes(&self, bytes: Bytes) -> io::Result<PayloadRef> {
        let mut writer = self.writer().await?;
        writer.write(&bytes).await?;
        writer.finish().await
    }

    pub fn contains(&self, digest: &Digest) -> bool {
        self.size(digest).is_some()
    }

    pub fn size(&self, digest: &Digest) -> Option<u64> {
        std::fs::metadata(self.path_of(digest)).ok().map(|file| file.len())
    }

    /// Where the bytes are, or would be. The file must not be changed.
    pub fn path_of(&self, digest: &Digest) -> PathBuf {
        let name = digest.hex();
        self.place.folder.join(&name[..2]).join(&name[2..])
    }

    /// The whole payload, checked against its digest.
    pub async fn read(&self, digest: &Digest) -> Result<Bytes, PayloadError> {
        let (path, digest) = (self.path_of(digest), *digest);
        let bytes = blocking(move || std::fs::read(path)).await.map_err(|error| not_found(error, digest))?;
        let (bytes, actual) = blocking(move || {
            let actual = Digest::of(&bytes);
            Ok((bytes, actual))
        })
        .await?;
        if actual == digest { Ok(bytes.into()) } else { Err(PayloadError::Damaged { digest, actual }) }
    }

    /// As [`Payloads::read`], of a payload that may be too large to be held.
    pub async fn read_at_most(&self, digest: &Digest, limit: u64) -> Result<Bytes, PayloadError> {
        match self.size(digest) {
            Some(size) if size > limit => Err(PayloadError::TooLarge { digest: *digest, size, limit }),
            _ => self.read(digest).await,
        }
    }

    /// Up to `length` bytes from `offset`; fewer only where the payload ends. Not checked against the digest.
    pub async fn read_range(&self, digest: &Digest, offset: u64, length: u64) -> Result<Bytes, PayloadError> {
        let mut file = self.open_file(digest).await.map_err(|error| not_found(error, *digest))?;
        let left = file.metadata().await?.len().saturating_sub(offset).min(length);
        file.seek(io::SeekFrom::Start(offset)).await?;
        let mut bytes = BytesMut::with_capacity(usize::try_from(left).unwrap_or(0));
        let mut part = file.take(left);
        while part.read_buf(&mut bytes).await? > 0 {}
        Ok(bytes.freeze())
    }

    /// The bytes of `range` piece by piece; a range beyond the end stops at the end.
    pub fn stream(&self, digest: &Digest, range: Range<u64>) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
        let (payloads, digest) = (self.clone(), *digest);
        futures::stream::try_unfold((None, range), move |(file, range): (Option<File>, Range<u64>)| {
            let payloads = payloads.clone();
            async move {
                if range.is_empty() {
                    return Ok(None);
                }
                let mut file = match file {
                    Some(file) => file,
                    None => {
                        let mut file = payloads.open_file(&digest).await?;
                        file.seek(io::SeekFrom::Start(range.start)).await?;
                        file
                    }
                };
                let mut piece = BytesMut::with_capacity((range.end - range.start).min(PIECE) as usize);
                let mut part = (&mut file).take((range.end - range.start).min(PIECE));
                while part.read_buf(&mut piece).await? > 0 {}
                if piece.is_empty() {
                    return Ok(None);
                }
                let next = range.start + piece.len() as u64..range.end;
                Ok(Some((piece.freeze(), (Some(file), next))))
            }
        })
    }

    /// Removes a payload; answers whether it was there. Whoever reads it at this moment reads on.
    pub async fn delete(&self, digest: &Digest) -> io::Result<bool> {
        let path = self.path_of(digest);
        blocking(move || match std::fs::remove_file(&path) {
            Ok(()) => path.parent().map_or(Ok(()), sync_folder).map(|()| true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        })
        .await
    }

    async fn open_file(&self, digest: &Digest) -> io::Result<File> {
        let mut file = File::open(self.path_of(digest)).await?;
        file.set_max_buf_size(PIECE as usize);
        Ok(file)
    }
}

fn not_found(error: io::Error, digest: Digest) -> PayloadError {
    if error.kind() == io::ErrorKind::NotFound { PayloadError::NotFound(digest) } else { PayloadError::Io(error) }
}

/// Runs file work off the async threads.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}
