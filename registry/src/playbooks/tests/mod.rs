//! Playbooks on a real log and a real payload store.

use noetl_store::log::file::{FileLog, FileLogOptions};
use noetl_store::log::{Append, Expected};
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::ledger::FoldError;
use crate::names::Actor;

mod changing;
mod model;
mod naming;

struct Bench {
    folder: TempDir,
    log: Arc<dyn Log>,
    playbooks: Arc<Playbooks>,
}

impl Bench {
    fn new() -> Self {
        Self::open(TempDir::new().expect("a folder"))
    }

    fn open(folder: TempDir) -> Self {
        let log: Arc<dyn Log> =
            FileLog::open(folder.path().join("log"), FileLogOptions::default()).expect("the log opens");
        let payloads = Payloads::open(folder.path().join("payloads")).expect("the payload store opens");
        let playbooks = Playbooks::open(log.clone(), payloads).expect("the playbooks open");
        Self { folder, log, playbooks }
    }

    /// Closes everything and opens it again from the disk.
    fn reopen(self) -> Self {
        let Bench { folder, log, playbooks } = self;
        drop((log, playbooks));
        Self::open(folder)
    }

    async fn register(&self, who: &str, at: &str, text: &str) -> Result<Registered, PlaybookError> {
        let content = Bytes::copy_from_slice(text.as_bytes());
        self.playbooks.register(&admin(), &tenant(who), &path(at), content, PlaybookInfo::default()).await
    }

    /// Version and text of what a tenant means by a path.
    async fn means(&self, who: &str, at: &str, version: Option<u32>) -> Option<(u32, String)> {
        let entry = self.playbooks.resolve(&tenant(who), &path(at), version)?;
        let content = self.playbooks.content(&entry.digest).await.expect("what can be seen is there");
        Some((entry.version, String::from_utf8(content.to_vec()).expect("text")))
    }

    fn events(&self) -> u64 {
        *self.playbooks.revision().borrow()
    }
}

fn admin() -> Actor {
    Actor { name: "root".to_owned(), tenant: None }
}

fn of_tenant(name: &str) -> Actor {
    Actor { name: format!("{name}-ci"), tenant: Some(tenant(name)) }
}

fn path(text: &str) -> PlaybookPath {
    PlaybookPath::new(text).expect("a path")
}

fn tenant(text: &str) -> Tenant {
    Tenant::new(text).expect("a tenant")
}
