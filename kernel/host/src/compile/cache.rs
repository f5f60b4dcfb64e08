//! Machine code on disk: `<cache>/<engine fingerprint>/<component digest>.cwasm` and, beside it, the
//! digest of that file.

use std::fs;
use std::io::{self, Write};
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
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
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
        let code = fs::File::open(compiled.path())
            .and_then(Digest::read)
            .map_err(PrepareError::io("read the machine code"))?;
        compiled.as_file().sync_all().map_err(PrepareError::io("sync the machine code"))?;
        compiled
            .persist(&self.code)
            .map_err(|error| PrepareError::io(format!("keep {}", self.code.display()))(error.error))?;
        let mut record = NamedTempFile::new_in(&self.folder).map_err(PrepareError::io("make a digest record"))?;
        record.write_all(code.to_string().as_bytes()).map_err(PrepareError::io("write a digest record"))?;
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
        let Some(recorded) = open_if_there(&self.record, io::read_to_string)? else { return Ok(None) };
        let Some(actual) = open_if_there(&self.code, Digest::read)? else { return Ok(None) };
        if recorded.trim().parse() != Ok(actual) {
            self.remove();
            return Err(PrepareError::Tampered { digest: self.digest });
        }
        // The file is mapped and not copied: what is never run is never in memory, and it is in memory once for all
        // servers. It may be deleted while it is mapped, and is only ever replaced by another file.
        // SAFETY: it was written by our own compiler process into a folder only this user can write, and was byte for
        // byte what was recorded when it was stored.
        match unsafe { Component::deserialize_file(engine, &self.code) } {
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

fn open_if_there<T>(path: &Path, read: impl FnOnce(fs::File) -> io::Result<T>) -> Result<Option<T>, PrepareError> {
    match fs::File::open(path).and_then(read) {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(PrepareError::io(format!("read {}", path.display()))(error)),
    }
}
