//! Plugins that are source text: which interpreter runs a version, and that it is there.
//!
//! A version is pushed with the interpreter that serves at that moment and keeps it, whatever is released later: pushing
//! is when an author sees it work. So the interpreter's bytes are made durable with the version; a newer binary, which
//! has another one compiled in, still runs it.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use noetl_contract::manifest::{Language, World};
use noetl_contract::{CapabilitySet, Digest, Manifest, Tenant};
use noetl_host::{FaultClass, Identity, Input, Interpreter, Module, PrepareError, Script};
use noetl_registry::{BytesAt, EntryFilter, Resolved, Selector};

use crate::Kernel;
use crate::error::{PushError, ReadyError};

impl Kernel {
    /// The interpreter a new version gets; none when it needs none.
    pub(crate) fn interpreter_for(&self, manifest: &Manifest) -> Result<Option<Resolved>, PushError> {
        let Some(source) = &manifest.source else { return Ok(None) };
        let resolved = self.catalog.resolve(&Tenant::main(), &source.language.interpreter(), &Selector::default());
        match resolved {
            Ok(resolved) if resolved.entry.manifest.world == World::Interpreter => Ok(Some(resolved)),
            _ => Err(PushError::NoInterpreter { language: source.language.clone(), known: self.languages() }),
        }
    }

    /// Refuses source text that cannot even begin, or that has no function to call, which its interpreter says when it
    /// loads it: its author is here now, and whoever calls it first is not.
    ///
    /// It is loaded without any capability, since nobody called it. One that asks for something while it loads is let be.
    pub(crate) async fn must_load(&self, module: &Arc<Module>, manifest: &Manifest) -> Result<(), PushError> {
        let (path, version) = (manifest.path.clone(), manifest.version.clone());
        let tenant = path.owner().unwrap_or_else(Tenant::main);
        let identity = Identity {
            tenant: tenant.clone(),
            path: path.clone(),
            version: version.clone(),
            call: "push".to_owned(),
            idempotency_key: String::new(),
            attempt: 1,
        };
        let call = noetl_host::Call {
            identity: Arc::new(identity),
            capabilities: Some(CapabilitySet::EMPTY),
            input: Input::Nothing,
            script: Script::Live,
        };
        let why = match self.host.call(module, call).await {
            Ok(loaded) => match loaded.outcome {
                Ok(_) => return Ok(()),
                Err(failure) => failure.message,
            },
            Err(fault) if matches!(fault.class, FaultClass::Trap | FaultClass::Memory) => fault.message,
            // Not a word about the text: a slow machine, or something that it may not do yet.
            Err(_) => return Ok(()),
        };
        let why = noetl_scrub::scrub_text_for(tenant.as_str(), &why).into_owned();
        Err(PushError::SourceBroken { path, version, why })
    }

    fn languages(&self) -> Vec<String> {
        let entries = self.catalog.entries(&EntryFilter::default()).into_iter();
        let interpreters = entries.filter(|listed| listed.entry.manifest.world == World::Interpreter);
        let mut names: Vec<String> =
            interpreters.filter_map(|listed| Some(listed.entry.path.as_str().rsplit('/').next()?.to_owned())).collect();
        names.dedup();
        names
    }

    /// An interpreter by its digest, compiled if need be. One that was pushed is signed as the operator wants it now; one
    /// that an earlier binary had in it was trusted as that binary was.
    pub(crate) async fn interpreter(
        &self,
        language: &Language,
        digest: Digest,
    ) -> Result<Arc<Interpreter>, ReadyError> {
        let path = language.interpreter();
        let embedded = self.catalog.embedded_bytes(&path, &digest);
        if embedded.is_none() {
            // What was ever pushed is in the catalog, deleted or not; all else came with a binary.
            if self.catalog.was_deleted(&path, &digest) {
                let why = format!("the interpreter it was pushed with ({path}, {digest}) was deleted: push it again");
                return Err(PrepareError::Rejected(why).into());
            }
            let versions = self.catalog.plugin(&path).into_iter().flat_map(|plugin| plugin.versions);
            let pushed = versions.filter(|listed| listed.entry.digest == digest).find(|listed| !listed.embedded);
            if let Some(unsigned) = pushed.and_then(|listed| self.lacks_signature(&listed.entry)) {
                return Err(unsigned.into());
            }
        }
        let bytes = embedded.map_or(BytesAt::Payload, BytesAt::Embedded);
        Ok(self.host.interpreter(digest, async || self.bytes_at(bytes, digest).await).await?)
    }

    /// One that the catalog leads to.
    pub(crate) async fn load_interpreter(&self, resolved: &Resolved) -> Result<Arc<Interpreter>, ReadyError> {
        self.must_be_signed(resolved)?;
        let digest = resolved.entry.digest;
        Ok(self.host.interpreter(digest, async || self.bytes_at(resolved.bytes, digest).await).await?)
    }

    /// Makes the bytes of an interpreter durable, for versions that will need it after the binary has another.
    pub(crate) async fn keep_interpreter(&self, interpreter: &Resolved) -> Result<(), PushError> {
        if let BytesAt::Embedded(bytes) = interpreter.bytes
            && !self.payloads.contains(&interpreter.entry.digest)
        {
            self.payloads.put_bytes(Bytes::from_static(bytes)).await?;
        }
        Ok(())
    }

    /// Lets go of interpreters that serve no more and that no active version was pushed with.
    pub(crate) fn retire_interpreters(&self) {
        let active = self.catalog.active();
        let needed = active.iter().filter_map(|resolved| match resolved.entry.manifest.world {
            World::Interpreter => Some(resolved.entry.digest),
            _ => resolved.entry.interpreter,
        });
        let needed: HashSet<Digest> = needed.collect();
        self.host.keep_interpreters(&needed);
    }

    /// Makes the machine code of the interpreters that serve, as far as it is not in the cache, and loads none of it:
    /// the first push of source text then need not wait for a compiler.
    pub async fn precompile_interpreters(&self) {
        for resolved in self.catalog.active() {
            let entry = &resolved.entry;
            if entry.manifest.world != World::Interpreter {
                continue;
            }
            let bytes = async || self.bytes_at(resolved.bytes, entry.digest).await;
            match self.host.precompile(entry.digest, bytes).await {
                Ok(made) => tracing::debug!(interpreter = %entry.path, made, "machine code is there"),
                Err(error) => tracing::warn!(interpreter = %entry.path, %error, "cannot be compiled ahead"),
            }
        }
    }
}
