//! `noetl:files`: files of a folder the operator names, to be read whole.
//!
//! Invariants:
//! 1. What is read lies below the folder. The folder is opened first and the file is opened from there, so neither
//!    `..` nor a link, also one that is made during the call, leads out of it.
//! 2. A tenant reads the folder with its own name in it. A folder without a place for that name is that of the tenant
//!    `main`, and nobody else's.

use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use noetl_contract::Tenant;

use crate::bindings::noetl::files::files as wit;
use crate::state::CallState;

/// Larger ones are data, which belongs into payloads.
const LARGEST: u64 = 8 << 20;

/// What stands for the name of a tenant.
const TENANT: &str = "{tenant}";

/// The folders that can be read.
#[derive(Debug, Clone, Default)]
pub struct Files(Option<String>);

impl Files {
    /// `{tenant}` in the folder stands for the name of the tenant.
    pub fn new(folder: Option<&str>) -> Self {
        Self(folder.map(str::to_owned))
    }

    fn folder(&self, tenant: &Tenant) -> Option<PathBuf> {
        let folder = self.0.as_deref()?;
        if folder.contains(TENANT) {
            return Some(folder.replace(TENANT, tenant.as_str()).into());
        }
        (*tenant == Tenant::main()).then(|| folder.into())
    }
}

/// Where below the folder a path may be meant: as it is, and without the folder's own name in front.
fn places(folder: &Path, path: &str) -> Option<Vec<PathBuf>> {
    let path = Path::new(path.strip_prefix("file://").unwrap_or(path));
    let below = if path.is_absolute() { path.strip_prefix(folder).ok()? } else { path };
    let mut plain = PathBuf::new();
    for part in below.components() {
        match part {
            Component::Normal(part) => plain.push(part),
            Component::CurDir => {}
            _ => return None,
        }
    }
    let without = folder.file_name().and_then(|name| plain.strip_prefix(name).ok()).map(Path::to_owned);
    let places = std::iter::once(plain).chain(without).filter(|place| !place.as_os_str().is_empty());
    Some(places.collect::<Vec<_>>()).filter(|places| !places.is_empty())
}

fn read(folder: &Path, path: &str) -> Result<Vec<u8>, wit::FileError> {
    let places = places(folder, path).ok_or_else(|| {
        let rule = "is no path below the folder that `files.folder` names: use one like `scripts/clean.py`";
        wit::FileError::InvalidPath(format!("`{path}` {rule}"))
    })?;
    let unreadable = |error: std::io::Error| wit::FileError::Unavailable(format!("`{path}`: {error}"));
    let folder = Dir::open_ambient_dir(folder, ambient_authority())
        .map_err(|error| wit::FileError::Unavailable(format!("the folder that `files.folder` names: {error}")))?;
    for place in places {
        // Looked at before it is opened, because opening a pipe waits for somebody to write.
        let about = match folder.metadata(&place) {
            Ok(about) => about,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(unreadable(error)),
        };
        if !about.is_file() {
            return Err(wit::FileError::Unavailable(format!("`{path}` is not a file")));
        }
        let file = folder.open(&place).map_err(unreadable)?;
        let mut content = Vec::new();
        // It may grow meanwhile, so it is the reading that is bounded.
        file.take(LARGEST + 1).read_to_end(&mut content).map_err(unreadable)?;
        if content.len() as u64 > LARGEST {
            return Err(wit::FileError::TooLarge(about.len().max(LARGEST + 1)));
        }
        return Ok(content);
    }
    Err(wit::FileError::NotFound(path.to_owned()))
}

impl CallState {
    pub(crate) async fn read_live(&mut self, path: String) -> wasmtime::Result<Result<Vec<u8>, wit::FileError>> {
        self.charge(path.len())?;
        let tenant = &self.identity.tenant;
        let Some(folder) = self.drivers.files.folder(tenant) else {
            let rule = "an operator can name one with `files.folder`";
            return Ok(Err(wit::FileError::NoFolder(format!("no folder is named for the tenant `{tenant}`; {rule}"))));
        };
        let reading = tokio::task::spawn_blocking(move || read(&folder, &path)).await;
        Ok(reading.unwrap_or_else(|error| Err(wit::FileError::Unavailable(error.to_string()))))
    }
}

impl wit::Host for CallState {
    async fn read(&mut self, path: String) -> wasmtime::Result<Result<Vec<u8>, wit::FileError>> {
        if self.tape.is_live() { self.read_live(path).await } else { self.read_taped(path).await }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_tenant_reads_its_own_folder_and_main_the_one_without_a_name() {
        let acme = Tenant::new("acme").expect("valid");
        let (named, plain) = (Files::new(Some("/srv/{tenant}/scripts")), Files::new(Some("/srv/scripts")));
        assert_eq!(named.folder(&acme), Some("/srv/acme/scripts".into()));
        assert_eq!((plain.folder(&acme), plain.folder(&Tenant::main())), (None, Some("/srv/scripts".into())));
        assert_eq!(Files::default().folder(&Tenant::main()), None);
    }

    #[test]
    fn a_file_is_found_under_all_its_names() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("scripts");
        std::fs::create_dir_all(folder.join("lib")).expect("folders");
        std::fs::write(folder.join("lib/a.py"), "x").expect("a file");
        let absolute = folder.join("lib/a.py").display().to_string();
        for path in ["lib/a.py", "./lib/a.py", "scripts/lib/a.py", "./scripts/lib/a.py", &absolute] {
            assert_eq!(read(&folder, path).expect(path), b"x");
        }
        assert_eq!(read(&folder, &format!("file://{absolute}")).expect("an address"), b"x");
        assert!(matches!(read(&folder, "lib/b.py"), Err(wit::FileError::NotFound(_))));
        assert!(matches!(read(&folder, "lib"), Err(wit::FileError::Unavailable(_))));
    }

    #[test]
    fn nothing_leads_out_of_the_folder() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("scripts");
        std::fs::create_dir(&folder).expect("a folder");
        std::fs::write(place.path().join("secret"), "s").expect("a file");
        symlink(place.path().join("secret"), folder.join("absolute")).expect("a link");
        symlink("../secret", folder.join("relative")).expect("a link");
        symlink("..", folder.join("up")).expect("a link");
        for path in ["", ".", "../secret", "a/../../secret", "/etc/passwd", "file:///etc/passwd"] {
            assert!(matches!(read(&folder, path), Err(wit::FileError::InvalidPath(_))), "{path}");
        }
        for path in ["absolute", "relative", "up/secret"] {
            assert!(read(&folder, path).is_err(), "{path}");
        }
    }

    #[test]
    fn a_large_file_is_told_by_its_size() {
        let place = tempfile::tempdir().expect("a folder");
        std::fs::File::create(place.path().join("big")).and_then(|file| file.set_len(LARGEST + 1)).expect("a file");
        assert!(matches!(read(place.path(), "big"), Err(wit::FileError::TooLarge(size)) if size == LARGEST + 1));
    }
}
