//! The target folder that all guest builds of a user share.
//!
//! Compiling the standard library and the binding generator takes a minute; a shared folder makes that the price of the
//! first project only. Cargo does not expect unrelated projects in one target folder, which shows in two ways:
//!
//! - a `cdylib` is written without a hash in its name, so two crates called `greet`, or one crate with two sets of
//!   features, overwrite each other's `greet.wasm`;
//! - a path dependency is told apart by its path *within* the project and judged fresh by file times, so the vendored SDK of
//!   one project can pass for the older SDK of another.
//!
//! Both are wrong only when a package name changes hands. So the folder remembers, for each path package, who built it
//! last ([`SharedTarget::strangers`]), and the caller cleans those packages first. From that check until the artefact has been
//! read, the caller holds the folder's lock. A crash in between leaves packages cleaned or half-built, which Cargo repairs.
//!
//! Invariant: the record names an owner only after the package's old artefacts are gone.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use noetl_contract::manifest::BuildTarget;

/// Calls the compiler with the flags that replace this machine's paths. A wrapper and not `RUSTFLAGS`, because those
/// are part of every crate's identity: a flag that names the project would compile the standard library anew for each.
/// When several prefixes match, the last one counts.
const WRAPPER: &str = r#"#!/bin/sh
exec "$@" \
    --remap-path-prefix="$NOETL_SOURCE_ROOT=/source" \
    --remap-path-prefix="$NOETL_RUST_SOURCE=/rust" \
    --remap-path-prefix="$NOETL_CARGO_HOME=/cargo"
"#;

/// The user's cache folder; none if the environment names no home.
pub fn cache_folder() -> Option<PathBuf> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(base.join("noetl"))
}

/// Where guests are compiled unless a request names another folder.
pub fn default_target_folder() -> Option<PathBuf> {
    Some(cache_folder()?.join("guest-target"))
}

/// A target folder, locked until this is dropped.
pub(crate) struct SharedTarget {
    folder: PathBuf,
    _lock: File,
}

/// Package name to whoever built it last.
pub(crate) type Owners = BTreeMap<String, String>;

impl SharedTarget {
    /// Creates the folder if needed and waits for other builds in it; `waiting` is called once if there is one.
    pub fn lock(folder: &Path, waiting: impl FnOnce()) -> io::Result<SharedTarget> {
        fs::create_dir_all(folder)?;
        let lock = File::create(folder.join("noetl.lock"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                waiting();
                lock.lock()?;
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        Ok(SharedTarget { folder: folder.to_owned(), _lock: lock })
    }

    /// The packages among `wanted` whose artefacts are somebody else's.
    pub fn strangers(&self, target: BuildTarget, wanted: &Owners) -> Vec<String> {
        let recorded = self.read_owners(target);
        wanted.iter().filter(|(name, owner)| recorded.get(*name) != Some(owner)).map(|(name, _)| name.clone()).collect()
    }

    /// Remembers the new owners; call it when the strangers' artefacts are gone.
    pub fn record(&self, target: BuildTarget, owners: Owners) -> io::Result<()> {
        let mut all = self.read_owners(target);
        all.extend(owners);
        let text = serde_json::to_vec_pretty(&all)?;
        replace(&self.owners_file(target), &text)
    }

    fn owners_file(&self, target: BuildTarget) -> PathBuf {
        self.folder.join(format!("noetl-owners-{}.json", target.name()))
    }

    /// A record that cannot be read counts as none: everything is then cleaned once more.
    fn read_owners(&self, target: BuildTarget) -> Owners {
        let text = fs::read(self.owners_file(target)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// The script to be used as `RUSTC_WRAPPER`.
    pub fn wrapper(&self) -> io::Result<PathBuf> {
        let path = self.folder.join("noetl-rustc");
        if fs::read(&path).is_ok_and(|found| found == WRAPPER.as_bytes()) {
            return Ok(path);
        }
        replace(&path, WRAPPER.as_bytes())?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        Ok(path)
    }

    /// A folder in which the given lld is called `rust-lld`.
    pub fn lld_folder(&self, lld: Option<&Path>) -> io::Result<PathBuf> {
        let folder = self.folder.join("noetl-linkers");
        let Some(lld) = lld else { return Ok(folder) };
        fs::create_dir_all(&folder)?;
        let link = folder.join("rust-lld");
        if fs::read_link(&link).is_ok_and(|to| to == lld) {
            return Ok(folder);
        }
        match fs::remove_file(&link) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => symlink(lld, &link)?,
        }
        Ok(folder)
    }
}

/// Writes a file in one step, so that a crash leaves the old or the new content.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("new");
    fs::write(&temporary, content)?;
    fs::rename(&temporary, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owners(pairs: &[(&str, &str)]) -> Owners {
        pairs.iter().map(|(name, owner)| ((*name).to_owned(), (*owner).to_owned())).collect()
    }

    #[test]
    fn a_package_is_strange_when_another_project_built_it_last() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let shared = SharedTarget::lock(folder.path(), || panic!("nobody else is here")).expect("lock");
        let (first, second) = (owners(&[("greet", "/a"), ("sdk", "/a/sdk")]), owners(&[("greet", "/b")]));
        assert_eq!(shared.strangers(BuildTarget::Unknown, &first), ["greet", "sdk"]);
        shared.record(BuildTarget::Unknown, first.clone()).expect("record");
        assert!(shared.strangers(BuildTarget::Unknown, &first).is_empty());
        assert_eq!(shared.strangers(BuildTarget::Wasip2, &first).len(), 2, "targets have folders of their own");
        shared.record(BuildTarget::Unknown, second).expect("record");
        assert_eq!(shared.strangers(BuildTarget::Unknown, &first), ["greet"]);
    }

    #[test]
    fn a_damaged_record_makes_everything_strange() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let shared = SharedTarget::lock(folder.path(), || panic!("nobody else is here")).expect("lock");
        let wanted = owners(&[("greet", "/a")]);
        shared.record(BuildTarget::Unknown, wanted.clone()).expect("record");
        fs::write(shared.owners_file(BuildTarget::Unknown), "{ torn").expect("write");
        assert_eq!(shared.strangers(BuildTarget::Unknown, &wanted), ["greet"]);
    }
}
