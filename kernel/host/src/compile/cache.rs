//! Machine code on disk: `<cache>/<engine fingerprint>/<component digest>.cwasm` and, beside it, the
//! digest of that file.
//!
//! Everything here reads, hashes or syncs whole files and so belongs on a thread that may block. What is here for a
//! version that was never kept, or for another engine, is removed when the push ends ([`Cache::forget`]) and when the
//! server starts ([`Cache::keep_only`]).

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use noetl_contract::Digest;
use tempfile::NamedTempFile;
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::error::PrepareError;

const SCRATCH: &str = "tmp";

#[derive(Clone)]
pub(super) struct Cache {
    root: PathBuf,
    scratch: PathBuf,
}

impl Cache {
    pub(super) fn open(root: &Path) -> Result<Self, PrepareError> {
        let scratch = root.join(SCRATCH);
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

    /// Removes what was compiled of a component; whoever runs it goes on.
    pub(super) fn forget(&self, fingerprints: &HashSet<String>, digest: Digest) {
        fingerprints.iter().for_each(|fingerprint| self.entry(fingerprint, digest).remove());
    }

    /// Removes everything but machine code of these components for these engines. What cannot be removed is left.
    pub(super) fn keep_only(&self, fingerprints: &HashSet<String>, digests: &HashSet<Digest>) {
        let known: HashSet<String> = digests.iter().map(Digest::hex).collect();
        let text = |part: Option<&std::ffi::OsStr>| part.and_then(|part| part.to_str()).unwrap_or_default().to_owned();
        for folder in listed(&self.root) {
            let name = text(folder.file_name());
            if name == SCRATCH {
                continue;
            }
            if !fingerprints.contains(&name) {
                let _ = fs::remove_dir_all(&folder);
                continue;
            }
            for file in listed(&folder).into_iter().filter(|file| !known.contains(&text(file.file_stem()))) {
                let _ = fs::remove_file(file);
            }
        }
    }
}

fn listed(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect()
}

/// One artefact's place.
#[derive(Clone)]
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
    pub(super) fn load(&self, engine: &Engine) -> Result<Option<Component>, PrepareError> {
        let Some(recorded) = open_if_there(&self.record, io::read_to_string)? else { return Ok(None) };
        let Some(actual) = open_if_there(&self.code, Digest::read)? else { return Ok(None) };
        if recorded.trim().parse() != Ok(actual) {
            self.remove();
            return Err(PrepareError::Tampered { digest: self.digest });
        }
        match self.map(engine) {
            Ok(component) => Ok(Some(component)),
            // A file system that is mounted `noexec` lets nothing run that is mapped from it.
            Err(_) => self.copy(engine, actual).inspect_err(|_| self.remove()).map(Some),
        }
    }

    /// Mapped and not copied: what is never run is never in memory, and it is in memory once for all servers. The file
    /// may be deleted while it is mapped, and is only ever replaced by another file.
    #[allow(unsafe_code)]
    fn map(&self, engine: &Engine) -> wasmtime::Result<Component> {
        // SAFETY: it was written by our own compiler process into a folder only this user can write, and was byte for
        // byte what was recorded when it was stored.
        unsafe { Component::deserialize_file(engine, &self.code) }
    }

    #[allow(unsafe_code)]
    fn copy(&self, engine: &Engine, recorded: Digest) -> Result<Component, PrepareError> {
        let bytes = fs::read(&self.code).map_err(PrepareError::io(format!("read {}", self.code.display())))?;
        if Digest::of(&bytes) != recorded {
            return Err(PrepareError::Tampered { digest: self.digest });
        }
        // SAFETY: as above, and these are the very bytes that were compared with what was recorded.
        let copied = unsafe { Component::deserialize(engine, &bytes) };
        copied.map_err(|error| PrepareError::Rejected(format!("it does not fit this server: {error:#}")))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(cache: &Cache, fingerprint: &str, content: &[u8]) -> Digest {
        let mut compiled = cache.scratch().expect("a file");
        compiled.write_all(content).expect("written");
        let digest = Digest::of(content);
        cache.entry(fingerprint, digest).store(compiled).expect("stored");
        digest
    }

    #[test]
    fn only_code_of_known_components_for_these_engines_stays() {
        let root = tempfile::tempdir().expect("a folder");
        let cache = Cache::open(root.path()).expect("a cache");
        let ours = HashSet::from(["this".to_owned(), "pure".to_owned()]);
        let (kept, tried) = (stored(&cache, "this", b"kept"), stored(&cache, "this", b"tried"));
        stored(&cache, "other", b"kept");
        fs::write(root.path().join("this/.tmp-half"), b"half").expect("written");
        cache.keep_only(&ours, &HashSet::from([kept]));
        assert!(cache.entry("this", kept).is_there() && !cache.entry("this", tried).is_there());
        assert_eq!(listed(&root.path().join("this")).len(), 2, "code and record");
        assert!(!root.path().join("other").exists() && root.path().join(SCRATCH).exists());

        cache.forget(&ours, kept);
        assert_eq!(listed(&root.path().join("this")).len(), 0);
    }
}
