//! The catalog on a real log and a real payload store.

use bytes::Bytes;
use noetl_store::log::file::{FileLog, FileLogOptions};
use noetl_store::log::{Append, Expected};
use tempfile::TempDir;

use super::*;

mod attesting;
mod binding;
mod durable;
mod model;
mod versions;

/// A data folder with a catalog open on it.
struct Bench {
    folder: TempDir,
    log: Arc<dyn Log>,
    payloads: Payloads,
    embedded: Vec<Embedded>,
    catalog: Arc<Catalog>,
}

fn open_log(folder: &TempDir) -> Arc<dyn Log> {
    FileLog::open(folder.path().join("log"), FileLogOptions::default()).expect("the log opens")
}

impl Bench {
    fn new() -> Self {
        Self::with(Vec::new())
    }

    fn with(embedded: Vec<Embedded>) -> Self {
        let folder = TempDir::new().expect("a folder");
        let log = open_log(&folder);
        let payloads = Payloads::open(folder.path().join("payloads")).expect("the payload store opens");
        let catalog = Catalog::open(log.clone(), payloads.clone(), embedded.clone()).expect("the catalog opens");
        Self { folder, log, payloads, embedded, catalog }
    }

    /// Closes everything and opens it again from the disk.
    fn reopen(self) -> Self {
        let Bench { folder, log, payloads, embedded, catalog } = self;
        drop((log, payloads, catalog));
        let log = open_log(&folder);
        let payloads = Payloads::open(folder.path().join("payloads")).expect("the payload store opens");
        let catalog = Catalog::open(log.clone(), payloads.clone(), embedded.clone()).expect("the catalog opens");
        Self { folder, log, payloads, embedded, catalog }
    }

    async fn push_as(&self, actor: &Actor, new: NewVersion) -> Result<PushOutcome, CatalogError> {
        self.catalog.push(actor, new).await
    }

    /// Pushes with the bytes in place, as an administrator.
    async fn push(&self, path: &str, version: &str, content: &str) -> Result<PushOutcome, CatalogError> {
        self.push_as(&admin(), self.new_version(manifest(path, version), content).await).await
    }

    async fn push_to(&self, channel: &str, path: &str, version: &str) -> PushOutcome {
        let mut new = self.new_version(manifest(path, version), version).await;
        new.channel = name(channel);
        self.push_as(&admin(), new).await.expect("pushes")
    }

    async fn new_version(&self, manifest: Manifest, content: &str) -> NewVersion {
        let stored = self.payloads.put_bytes(Bytes::copy_from_slice(content.as_bytes())).await.expect("stores");
        let ring = Ring::of(&manifest.path, Ring::System);
        let imports = vec!["noetl:log/log@0.1.0".to_owned()];
        let (digest, size) = (stored.digest, stored.size);
        let (channel, reason) = (ChannelName::stable(), "test".to_owned());
        let (interpreter, attestations) = (None, Vec::new());
        NewVersion { manifest, ring, digest, size, imports, interpreter, channel, reason, attestations }
    }

    async fn rollback(&self, at: &str, to: Option<&str>) -> Result<Moved, CatalogError> {
        let to = to.map(version);
        self.catalog.rollback(&admin(), &path(at), &ChannelName::stable(), to.as_ref(), "bad").await
    }

    async fn pin(&self, who: &str, at: &str, to: Option<&str>) -> Result<(), CatalogError> {
        let to = to.map(version);
        self.catalog.pin(&admin(), &tenant(who), &path(at), to.as_ref(), "careful").await
    }

    async fn bind(&self, who: &str, service: &str, to: Option<&str>) -> Result<(), CatalogError> {
        let to = to.map(path);
        self.catalog.bind(&admin(), &tenant(who), &path(service), to.as_ref(), "ours").await
    }

    fn serves(&self, who: &str, service: &str) -> Result<(String, String, Source), ResolveError> {
        self.serves_with(who, service, &Selector::default())
    }

    fn serves_with(
        &self,
        who: &str,
        service: &str,
        selector: &Selector,
    ) -> Result<(String, String, Source), ResolveError> {
        let resolved = self.catalog.resolve(&tenant(who), &path(service), selector)?;
        Ok((resolved.entry.path.to_string(), resolved.entry.version.to_string(), resolved.source))
    }

    fn events(&self) -> u64 {
        *self.catalog.revision().borrow()
    }
}

fn admin() -> Actor {
    Actor { name: "root".to_owned(), tenant: None }
}

fn of_tenant(name: &str) -> Actor {
    Actor { name: format!("{name}-ci"), tenant: Some(tenant(name)) }
}

fn path(text: &str) -> PluginPath {
    PluginPath::new(text).expect("a path")
}

fn version(text: &str) -> Version {
    Version::parse(text).expect("a version")
}

fn tenant(text: &str) -> Tenant {
    Tenant::new(text).expect("a tenant")
}

fn name(text: &str) -> ChannelName {
    ChannelName::new(text).expect("a channel")
}

fn channel(text: &str) -> Selector {
    Selector { channel: Some(name(text)), version: None }
}

fn exactly(text: &str) -> Selector {
    Selector { channel: None, version: Some(version(text)) }
}

fn manifest(path: &str, version: &str) -> Manifest {
    manifest_with(path, version, "")
}

fn manifest_with(path: &str, version: &str, more: &str) -> Manifest {
    let world = if more.contains("world") { "" } else { "world = \"transform\"\n" };
    let text = format!("path = \"{path}\"\nversion = \"{version}\"\n{world}{more}\n");
    Manifest::parse(&text).expect("a manifest")
}

fn embedded(path: &str, version: &str) -> Embedded {
    let bytes: &'static [u8] = b"compiled in";
    let manifest = manifest_with(path, version, "overridable = true");
    Embedded { manifest, ring: Ring::System, digest: Digest::of(bytes), bytes }
}

fn served(path: &str, version: &str, source: Source) -> Result<(String, String, Source), ResolveError> {
    Ok((path.to_owned(), version.to_owned(), source))
}
