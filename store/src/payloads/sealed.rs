//! A payload that is complete but not kept yet: known by its digest, readable, and gone with its last
//! handle unless somebody keeps it.
//!
//! An HTTP answer that a guest only looks at, or an upload that is refused, costs no sync and leaves no
//! orphan in the store.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use noetl_contract::Digest;
use tokio::sync::Mutex;

use super::writer::{Unfinished, name_durably};
use super::{PayloadRef, Payloads, blocking};

/// Complete bytes in a temporary file.
#[derive(Debug)]
pub struct SealedPayload {
    payloads: Payloads,
    file: Arc<fs::File>,
    digest: Digest,
    size: u64,
    /// Taken when the file gets its name; the open file stays readable under either.
    unfinished: Mutex<Option<Unfinished>>,
}

impl SealedPayload {
    pub(super) fn new(payloads: Payloads, file: fs::File, unfinished: Unfinished, reference: PayloadRef) -> Self {
        let PayloadRef { digest, size } = reference;
        Self { payloads, file: Arc::new(file), digest, size, unfinished: Mutex::new(Some(unfinished)) }
    }

    pub fn digest(&self) -> Digest {
        self.digest
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    /// Up to `length` bytes from `offset`; fewer only where the payload ends.
    pub async fn read_range(&self, offset: u64, length: u64) -> io::Result<Bytes> {
        let left = self.size.saturating_sub(offset).min(length);
        let file = self.file.clone();
        blocking(move || {
            let mut bytes = vec![0; usize::try_from(left).map_err(io::Error::other)?];
            file.read_exact_at(&mut bytes, offset)?;
            Ok(bytes.into())
        })
        .await
    }

    /// Makes the payload durable under its digest. Keeping it twice is keeping it once.
    pub async fn keep(&self) -> io::Result<PayloadRef> {
        let mut unfinished = self.unfinished.lock().await;
        if let Some(from) = unfinished.take() {
            let (file, to) = (self.file.clone(), self.payloads.path_of(&self.digest));
            let (kept, from) = blocking(move || Ok((name_durably(&file, from.path(), &to), from))).await?;
            if let Err(error) = kept {
                // It can be tried again: the file is still there under its temporary name.
                *unfinished = Some(from);
                return Err(error);
            }
        }
        Ok(PayloadRef { digest: self.digest, size: self.size })
    }
}
