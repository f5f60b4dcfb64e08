//! The data folder: one server's whole state, owned by one process at a time.
//!
//! | name | what |
//! |---|---|
//! | `lock` | held by the running server; its text is that server's process id |
//! | `log/` | the log: the truth |
//! | `payloads/` | bytes by digest |
//! | `index.sqlite` | kv and objects, folded from the log; can be deleted |
//! | `projections.sqlite` | executions and their parts, for queries; can be deleted |
//! | `wallet.sqlite` | credentials, sealed, and the audit of their uses; keep a copy, nothing else has them |
//! | `wallet.key` | what opens them, unless the operator gives the key in another way |
//! | `cache/` | compiled components; can be deleted |
//!
//! The lock is one of the operating system, so it ends with the process however that ends; a left-over file
//! locks nobody out. The folder is made for its owner only (0700): it holds every tenant's data.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error("the data folder {} is in use by {holder}: stop that server or give this one another folder", .path.display())]
    InUse { path: PathBuf, holder: String },
    #[error("the data folder {} could not be opened: {error}", .path.display())]
    Io { path: PathBuf, error: io::Error },
}

/// A locked data folder. The lock is held until this is dropped.
#[derive(Debug)]
pub struct DataFolder {
    path: PathBuf,
    _lock: File,
}

impl DataFolder {
    /// Locks the folder and makes what is missing in it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FolderError> {
        let path = path.as_ref().to_owned();
        let failed = |error| FolderError::Io { path: path.clone(), error };
        create_folder_durably(&path).map_err(failed)?;
        let lock = lock(&path)?;
        for part in ["log", "payloads", "cache"] {
            create_folder_durably(&path.join(part)).map_err(failed)?;
        }
        // Also when nothing was missing: whoever made the parts may have died before this.
        sync_folder(&path).map_err(failed)?;
        Ok(Self { path, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn log_dir(&self) -> PathBuf {
        self.path.join("log")
    }

    pub fn payloads_dir(&self) -> PathBuf {
        self.path.join("payloads")
    }

    pub fn cache_dir(&self) -> PathBuf {
        self.path.join("cache")
    }

    pub fn index_file(&self) -> PathBuf {
        self.path.join("index.sqlite")
    }

    pub fn wallet_file(&self) -> PathBuf {
        self.path.join("wallet.sqlite")
    }

    pub fn wallet_key_file(&self) -> PathBuf {
        self.path.join("wallet.key")
    }

    pub fn projections_file(&self) -> PathBuf {
        self.path.join("projections.sqlite")
    }
}

fn lock(folder: &Path) -> Result<File, FolderError> {
    let failed = |error| FolderError::Io { path: folder.to_owned(), error };
    // Not emptied on opening: until the lock is ours, the text is the holder's.
    let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(folder.join("lock"));
    let mut file = options.map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let read = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse::<u32>().ok());
            let holder = read.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
            return Err(FolderError::InUse { path: folder.to_owned(), holder });
        }
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(failed)?;
    Ok(file)
}

/// Makes the entries of a folder durable: a created, renamed or removed file is not, until its folder is synced.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Makes `path` and its missing parents, for their owner only, durably. Not meant for several makers at once.
pub(crate) fn create_folder_durably(path: &Path) -> io::Result<()> {
    // The parent of a plain name is the empty path, which means the current folder.
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    let parent = path.parent().unwrap_or(path);
    create_folder_durably(parent)?;
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
        Err(error) => return Err(error),
    }
    sync_folder(if parent.as_os_str().is_empty() { Path::new(".") } else { parent })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use std::fs;

    #[test]
    fn a_second_opener_is_told_who_has_it_and_gets_it_after_the_first() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("deep/data");
        let first = DataFolder::open(&path).expect("free");
        let refused = DataFolder::open(&path).expect_err("held").to_string();
        assert!(refused.contains(&format!("process {}", std::process::id())), "{refused}");
        drop(first);
        DataFolder::open(&path).expect("free again");
    }

    #[test]
    fn the_folder_is_for_its_owner_only_and_has_its_parts() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = DataFolder::open(place.path().join("data")).expect("free");
        for path in [folder.path(), &folder.log_dir(), &folder.payloads_dir(), &folder.cache_dir()] {
            let mode = fs::metadata(path).expect("made").permissions().mode();
            assert_eq!(mode & 0o777, 0o700, "{}", path.display());
        }
    }
}
