//! `server.json` in the data folder: where the server listens, for commands on the same machine.
//!
//! The file appears whole (written beside, then renamed) and is removed on a clean stop. After a crash it stays, and
//! a command that trusts it finds nobody listening and says so; the next start replaces it. Only the server that holds
//! the folder's lock writes it.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::client::SERVER_FILE;
use crate::failure::{self, Outcome};

/// Removes the file when dropped.
#[derive(Debug)]
pub struct Announcement(PathBuf);

impl Announcement {
    pub fn write(folder: &Path, url: &str) -> Outcome<Self> {
        let file = folder.join(SERVER_FILE);
        let mut temporary = tempfile::NamedTempFile::new_in(folder).map_err(failure::io("write into", folder))?;
        let text = json!({ "url": url, "pid": std::process::id() }).to_string();
        temporary.write_all(text.as_bytes()).map_err(failure::io("write", &file))?;
        temporary.persist(&file).map_err(|error| failure::io("write", &file)(error.error))?;
        Ok(Self(file))
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.0) {
            tracing::warn!(file = %self.0.display(), %error, "the file that announces this server stays behind");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_there_while_the_server_is() {
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join(SERVER_FILE);
        let announcement = Announcement::write(folder.path(), "http://127.0.0.1:7").expect("writes");
        let value: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&file).expect("is there")).expect("is JSON");
        assert_eq!(value["url"], "http://127.0.0.1:7");
        assert_eq!(value["pid"], std::process::id());
        drop(announcement);
        assert!(!file.exists());
    }
}
