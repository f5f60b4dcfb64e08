//! Machine code on disk: `<cache>/<engine fingerprint>/<component digest>.cwasm` and, beside it, the
//! digest of that file.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use noetl_contract::Digest;
use tempfile::NamedTempFile;
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::error::PrepareError;

pub(super) struct Cache {
    root: PathBuf,
    scratch: PathBuf,
}

impl Cache {
    pub(super) fn open(root: &Path) -> Result<Self, PrepareError> {
        let scratch = root.join("tmp");
        // Whatever an earlier process left half-written is of no use to anyone.
        match fs::remove_dir_all(&scratch) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(PrepareError::io(format!("clear {}", scratch.display()))(error));
            }
            _ => {}
        }
        fs::create_dir_all(&scratch).map_err(PrepareError::io(format!("create {}", scratch.display())))?;
        Ok(Self { root: root.to_owned(), scratch })
    }

    pub(super) fn entry(&self, fingerprint: &str, digest: Digest) -> Entry {
        let folder = self.root.join(fingerprint);
        Entry {
            digest,
            code: folder.join(format!("{}.cwasm", digest.hex())),
            record: folder.join(format!("{}.sha256", digest.hex())),
            folder,
        }
    }

    pub(super) fn scratch(&self) -> Result<NamedTempFile, PrepareError> {
        NamedTempFile::new_in(&self.scratch).map_err(PrepareError::io("make a temporary file for machine code"))
    }

    pub(super) fn stage(&self, bytes: &[u8]) -> Result<NamedTempFile, PrepareError> {
        let mut file = self.scratch()?;
        file.write_all(bytes).map_err(PrepareError::io("write the component for the compiler"))?;
        Ok(file)
    }
}

/// One artefact's place.
pub(super) struct Entry {
    digest: Digest,
    folder: PathBuf,
    code: PathBuf,
    record: PathBuf,
}

impl Entry {
    /// The record is written last, so an artefact without one is an interrupted store.
    pub(super) fn store(&self, compiled: NamedTempFile) -> Result<(), PrepareError> {
        fs::create_dir_all(&self.folder).map_err(PrepareError::io(format!("create {}", self.folder.display())))?;
        let code = fs::read(compiled.path()).map_err(PrepareError::io("read the machine code"))?;
        compiled.as_file().sync_all().map_err(PrepareError::io("sync the machine code"))?;
        compiled
            .persist(&self.code)
            .map_err(|error| PrepareError::io(format!("keep {}", self.code.display()))(error.error))?;
        let mut record = NamedTempFile::new_in(&self.folder).map_err(PrepareError::io("make a digest record"))?;
        record
            .write_all(Digest::of(&code).to_string().as_bytes())
            .map_err(PrepareError::io("write a digest record"))?;
        record.as_file().sync_all().map_err(PrepareError::io("sync a digest record"))?;
        record
            .persist(&self.record)
            .map_err(|error| PrepareError::io(format!("keep {}", self.record.display()))(error.error))?;
        Ok(())
    }

    /// Whether it was compiled and stored whole; what is in it is checked when it is loaded.
    pub(super) fn is_there(&self) -> bool {
        self.record.is_file() && self.code.is_file()
    }

    /// `None` when it was never compiled; an error, after removing it, when it is not what was recorded.
    #[allow(unsafe_code)]
    pub(super) fn load(&self, engine: &Engine) -> Result<Option<Component>, PrepareError> {
        let Some(recorded) = read_if_there(&self.record)? else { return Ok(None) };
        let Some(code) = read_if_there(&self.code)? else { return Ok(None) };
        let recorded = String::from_utf8_lossy(&recorded).trim().parse::<Digest>();
        if recorded != Ok(Digest::of(&code)) {
            self.remove();
            return Err(PrepareError::Tampered { digest: self.digest });
        }
        // SAFETY: the file was written by our own compiler process into a folder only this user can write,
        // and is byte for byte what was recorded when it was stored.
        match unsafe { Component::deserialize(engine, &code) } {
            Ok(component) => Ok(Some(component)),
            Err(error) => {
                self.remove();
                Err(PrepareError::Rejected(format!("it does not fit this server: {error:#}")))
            }
        }
    }

    fn remove(&self) {
        let _ = fs::remove_file(&self.record);
        let _ = fs::remove_file(&self.code);
    }
}

fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, PrepareError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(PrepareError::io(format!("read {}", path.display()))(error)),
    }
}
