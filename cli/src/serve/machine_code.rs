//! Machine code of the embedded components, kept between runs.
//!
//! A new data folder has no machine code, and compiling the engine's components into it takes longer than most
//! playbooks. So what was compiled once is kept in the user's cache folder and put into the next data folder before the
//! kernel starts. Files are linked where the file system can, and copied otherwise.
//!
//! Only components of this binary are kept; what an older binary left is removed when something new comes. The
//! folder is its owner's only, as a data folder is: machine code is trusted. The host checks each file against its
//! recorded digest, so a file cut short is compiled again. Whatever goes wrong here costs time and nothing else, so
//! nothing here fails a run.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use noetl_contract::manifest::World;
use noetl_registry::Embedded;

/// The files of a component: `<fingerprint of the engine>/<digest>.<extension>`. The record makes the code valid, so
/// it is put in place last.
const EXTENSIONS: [&str; 2] = ["cwasm", "sha256"];

#[derive(Clone)]
pub struct MachineCode {
    kept: PathBuf,
    digests: BTreeSet<String>,
    /// Those that are compiled when they are first needed, and not when a kernel starts.
    later: BTreeSet<String>,
}

impl MachineCode {
    /// Nothing when the user has no cache folder, or it cannot be trusted.
    pub fn of_user(embedded: &[Embedded]) -> Option<Self> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let base = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
        // Source text has no machine code at all, and waits for that of its interpreter.
        let is_later =
            |embedded: &&Embedded| embedded.manifest.world == World::Interpreter || embedded.manifest.source.is_some();
        let digests = |embedded: &Embedded| embedded.digest.hex();
        let code = Self::at(base.join("noetl/machine-code"), embedded.iter().map(digests))?;
        Some(Self { later: embedded.iter().filter(is_later).map(digests).collect(), ..code })
    }

    fn at(kept: PathBuf, digests: impl IntoIterator<Item = String>) -> Option<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(&kept).ok()?;
        let about = fs::metadata(&kept).ok()?;
        let ours = fs::metadata("/proc/self").ok()?.uid();
        // Somebody else's folder could hold somebody else's code.
        (about.uid() == ours && about.mode() & 0o022 == 0).then(|| Self {
            kept,
            digests: digests.into_iter().collect(),
            later: BTreeSet::new(),
        })
    }

    /// Puts what is kept into the cache of a new data folder; tells whether that is all there is to compile.
    pub fn bring(&self, cache: &Path) -> bool {
        let mut missing = self.digests.clone();
        for (fingerprint, digest) in self.entries(&self.kept) {
            if copy_entry(&self.kept, cache, &fingerprint, &digest).is_ok() {
                missing.remove(&digest);
            }
        }
        missing.is_subset(&self.later)
    }

    /// Keeps what a run compiled.
    pub fn keep(&self, cache: &Path) {
        let known = self.entries(&self.kept);
        let new: Vec<_> = self.entries(cache).into_iter().filter(|entry| !known.contains(entry)).collect();
        if new.is_empty() {
            return;
        }
        for (fingerprint, digest) in &new {
            let _ = copy_entry(cache, &self.kept, fingerprint, digest);
        }
        self.tidy();
    }

    /// Components of this binary whose machine code is in a folder.
    fn entries(&self, folder: &Path) -> BTreeSet<(String, String)> {
        records(folder).into_iter().filter(|(_, digest)| self.digests.contains(digest)).collect()
    }

    /// Removes what no component of this binary needs.
    fn tidy(&self) {
        for (fingerprint, digest) in
            records(&self.kept).into_iter().filter(|(_, digest)| !self.digests.contains(digest))
        {
            // The record first: code without one counts for nothing.
            for extension in EXTENSIONS.iter().rev() {
                let _ = fs::remove_file(place(&self.kept, &fingerprint, &digest, extension));
            }
        }
    }
}

/// Fingerprint and digest of every record in a folder.
fn records(folder: &Path) -> BTreeSet<(String, String)> {
    let names = |folder: &Path| -> Vec<PathBuf> {
        fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect()
    };
    let text = |part: Option<&std::ffi::OsStr>| part.and_then(|part| part.to_str()).map(str::to_owned);
    let mut found = BTreeSet::new();
    for below in names(folder) {
        for file in names(&below).into_iter().filter(|file| file.extension().is_some_and(|it| it == EXTENSIONS[1])) {
            found.extend(text(below.file_name()).zip(text(file.file_stem())));
        }
    }
    found
}

fn place(folder: &Path, fingerprint: &str, digest: &str, extension: &str) -> PathBuf {
    folder.join(fingerprint).join(format!("{digest}.{extension}"))
}

fn copy_entry(from: &Path, to: &Path, fingerprint: &str, digest: &str) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(to.join(fingerprint))?;
    for extension in EXTENSIONS {
        let (from, to) = (place(from, fingerprint, digest, extension), place(to, fingerprint, digest, extension));
        if fs::hard_link(&from, &to).is_ok() || to.exists() {
            continue;
        }
        // Two runs may do this at once: each writes a file of its own and moves it into place whole.
        let folder = to.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        io::copy(&mut fs::File::open(&from)?, &mut file)?;
        file.persist(&to).map_err(|error| error.error)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn compiled(cache: &Path, fingerprint: &str, digest: &str) {
        fs::create_dir_all(cache.join(fingerprint)).expect("a folder");
        for extension in EXTENSIONS {
            fs::write(place(cache, fingerprint, digest, extension), format!("{digest} {extension}")).expect("write");
        }
    }

    #[test]
    fn what_one_run_compiled_the_next_one_has() {
        let place_of = tempfile::tempdir().expect("a folder");
        let (kept, first, second) =
            (place_of.path().join("kept"), place_of.path().join("1"), place_of.path().join("2"));
        let code = |digests: &[&str]| {
            MachineCode::at(kept.clone(), digests.iter().map(|digest| (*digest).to_owned())).expect("ours")
        };
        assert!(!code(&["aa"]).bring(&first), "nothing is kept yet");
        compiled(&first, "engine", "aa");
        compiled(&first, "engine", "plugin-of-somebody");
        code(&["aa"]).keep(&first);
        assert!(code(&["aa"]).bring(&second));
        assert_eq!(fs::read(place(&second, "engine", "aa", "cwasm")).expect("brought"), b"aa cwasm");
        assert_eq!(records(&kept).len(), 1, "only components of the binary are kept");

        // A new binary has other components; the old ones go when its own come.
        let third = place_of.path().join("3");
        assert!(!code(&["bb"]).bring(&third));
        compiled(&third, "engine", "bb");
        code(&["bb"]).keep(&third);
        assert_eq!(records(&kept), BTreeSet::from([("engine".to_owned(), "bb".to_owned())]));
    }

    #[test]
    fn a_folder_others_can_write_is_not_trusted() {
        let kept = tempfile::tempdir().expect("a folder");
        assert!(MachineCode::at(kept.path().to_owned(), []).is_some());
        fs::set_permissions(kept.path(), fs::Permissions::from_mode(0o777)).expect("ours");
        assert!(MachineCode::at(kept.path().to_owned(), []).is_none());
    }
}
