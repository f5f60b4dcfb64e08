//! Writing one payload: hash on the way, sync, and only then give it its name.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use noetl_contract::Digest;
use sha2::{Digest as _, Sha256};
use tokio::fs::File;
use tokio::io::AsyncWriteExt;

use super::{PIECE, PayloadRef, Payloads, SealedPayload};
use crate::folder::sync_folder;

/// A payload in the making. Dropped before `finish` has answered, it leaves nothing.
#[derive(Debug)]
pub struct PayloadWriter {
    payloads: Payloads,
    file: File,
    unfinished: Unfinished,
    hasher: Sha256,
    size: u64,
}

/// Removes the file when dropped; after it was renamed there is nothing to remove.
#[derive(Debug)]
pub(super) struct Unfinished(PathBuf);

impl Unfinished {
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // What cannot be removed now is removed at the next start.
        let _removed = fs::remove_file(&self.0);
    }
}

impl PayloadWriter {
    pub(super) async fn create(payloads: Payloads, path: PathBuf) -> io::Result<Self> {
        let unfinished = Unfinished(path);
        let mut file = File::options().read(true).write(true).create_new(true).open(&unfinished.0).await?;
        file.set_max_buf_size(PIECE as usize);
        Ok(Self { payloads, file, unfinished, hasher: Sha256::new(), size: 0 })
    }

    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        // In pieces, so that hashing a large buffer does not keep an async thread for long.
        for piece in bytes.chunks(PIECE as usize) {
            self.hasher.update(piece);
            self.file.write_all(piece).await?;
            self.size += piece.len() as u64;
        }
        Ok(())
    }

    /// Bytes written so far.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Makes the payload durable under its digest.
    pub async fn finish(self) -> io::Result<PayloadRef> {
        self.seal().await?.keep().await
    }

    /// Ends the writing without making the payload durable yet.
    pub async fn seal(mut self) -> io::Result<SealedPayload> {
        self.file.flush().await?;
        let digest = Digest::from_bytes(self.hasher.finalize().into());
        let reference = PayloadRef { digest, size: self.size };
        Ok(SealedPayload::new(self.payloads, self.file.into_std().await, self.unfinished, reference))
    }
}

pub(super) fn name_durably(file: &fs::File, from: &Path, to: &Path) -> io::Result<()> {
    file.sync_all()?;
    // If the same payload is there already, this puts the same bytes in its place.
    fs::rename(from, to)?;
    sync_folder(to.parent().unwrap_or(to))
}
