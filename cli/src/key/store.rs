//! Where keys are kept: one file a key, readable by its owner alone, in `$XDG_CONFIG_HOME/noetl/keys`.
//!
//! A file that others can read is refused, as ssh does it: a key that may have been copied vouches for nothing. A key is
//! never overwritten, since what it has signed may be in use.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use noetl_registry::signatures::{PublicKey, SecretKey};

use crate::failure::{self, Exit, Failure, Outcome};

const EXTENSION: &str = "key";

pub struct KeyStore {
    folder: PathBuf,
}

impl KeyStore {
    pub fn of_user() -> Outcome<Self> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let base = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")));
        let base = base
            .ok_or_else(|| Failure::usage("neither HOME nor XDG_CONFIG_HOME is set, so there is no place for keys"))?;
        Ok(Self { folder: base.join("noetl/keys") })
    }

    /// The file of a key. A name with a `/` in it is the file itself, for keys that are kept elsewhere.
    pub fn file(&self, name: &str) -> Outcome<PathBuf> {
        if name.contains('/') {
            return Ok(PathBuf::from(name));
        }
        let letters = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
        if !letters || name.is_empty() || name.starts_with('.') || name.len() > 64 {
            return Err(Failure::usage(format!("`{name}` is not the name of a key"))
                .next("use letters, digits, `-`, `_` and `.`, or a file such as ./ci.key"));
        }
        Ok(self.folder.join(format!("{name}.{EXTENSION}")))
    }

    pub fn create(&self, name: &str) -> Outcome<PublicKey> {
        let file = self.file(name)?;
        let folder = file.parent().unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failure::io("make", folder))?;
        let (key, text) = SecretKey::generate().map_err(|error| Failure::failed(error.to_string()))?;
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file);
        let mut opened = opened.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => Failure::new(Exit::Conflict, format!("the key `{name}` is there already"))
                .next("choose another name; a key is never replaced"),
            _ => failure::io("write", &file)(error),
        })?;
        opened.write_all(text.as_bytes()).and_then(|()| opened.sync_all()).map_err(failure::io("write", &file))?;
        Ok(key.public())
    }

    pub fn open(&self, name: &str) -> Outcome<SecretKey> {
        let file = self.file(name)?;
        let text = std::fs::read_to_string(&file).map_err(|error| match error.kind() {
            ErrorKind::NotFound => Failure::new(Exit::NotFound, format!("there is no key `{name}`"))
                .next(format!("`noetl key list` shows yours; `noetl key new {name}` makes one")),
            _ => failure::io("read the key", &file)(error),
        })?;
        let mode = std::fs::metadata(&file).map_err(failure::io("read the key", &file))?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(Failure::failed(format!(
                "{} can be read by others, so it may have been copied",
                file.display()
            ))
            .next(format!("make a new key, or if you are sure: chmod 600 {}", file.display())));
        }
        SecretKey::from_pem(&text).map_err(|error| Failure::failed(format!("{}: {error}", file.display())))
    }

    /// Names and public halves, by name.
    pub fn list(&self) -> Outcome<Vec<(String, PublicKey)>> {
        let entries = match std::fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failure::io("read", &self.folder)(error)),
        };
        let files = entries.flatten().map(|entry| entry.path());
        let mut names: Vec<String> = files
            .filter(|file| file.extension().is_some_and(|extension| extension == EXTENSION))
            .filter_map(|file| Some(file.file_stem()?.to_str()?.to_owned()))
            .collect();
        names.sort();
        names.into_iter().map(|name| Ok((name.clone(), self.open(&name)?.public()))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, KeyStore) {
        let folder = tempfile::tempdir().expect("folder");
        let store = KeyStore { folder: folder.path().join("keys") };
        (folder, store)
    }

    #[test]
    fn a_key_is_its_owners_alone_and_never_replaced() {
        let (_folder, store) = store();
        let public = store.create("release").expect("made");
        let file = store.file("release").expect("a name");
        assert_eq!(std::fs::metadata(&file).expect("is there").permissions().mode() & 0o777, 0o600);
        assert_eq!(store.open("release").expect("reads").public(), public);
        assert_eq!(store.create("release").expect_err("there already").exit, Exit::Conflict);
        assert_eq!(store.list().expect("lists"), [("release".to_owned(), public)]);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("chmod");
        let refused = store.open("release").map(|_| ()).expect_err("others can read it");
        assert!(refused.message.contains("can be read by others"), "{refused}");
    }

    #[test]
    fn names_cannot_leave_the_folder_and_missing_keys_are_told() {
        let (_folder, store) = store();
        for bad in ["", ".hidden", "a b", "ü"] {
            assert_eq!(store.file(bad).expect_err(bad).exit, Exit::Usage);
        }
        assert_eq!(store.open("nobody").map(|_| ()).expect_err("missing").exit, Exit::NotFound);
        assert!(store.list().expect("no folder is no keys").is_empty());
    }
}
