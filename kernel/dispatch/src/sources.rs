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
use noetl_host::{Fault, FaultClass, Identity, Input, Interpreter, Module, PrepareError, Script};
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
    /// It is loaded without any capability, since nobody called it. One that asks for something of its own grant while it
    /// loads is let be; one that asks for what no call of it would have is not.
    pub(crate) async fn must_load(&self, module: &Arc<Module>, manifest: &Manifest) -> Result<(), PushError> {
        let (path, version) = (manifest.path.clone(), manifest.version.clone());
        let tenant = path.owner().unwrap_or_else(Tenant::main);
        let mut loaded = self.load_once(module, manifest, &tenant).await;
        // The first sandbox of an interpreter is slower than the next: what is too slow is so twice.
        if loaded.as_ref().is_err_and(|fault| fault.class == FaultClass::Timeout) {
            loaded = self.load_once(module, manifest, &tenant).await;
        }
        let Some(why) = loaded.err().and_then(refusal) else { return Ok(()) };
        let why = noetl_scrub::scrub_text_for(tenant.as_str(), &why).into_owned();
        Err(PushError::SourceBroken { path, version, why })
    }

    /// Loads it in a sandbox of its own. What the interpreter says against the text is a fault of the text.
    async fn load_once(&self, module: &Arc<Module>, manifest: &Manifest, tenant: &Tenant) -> Result<(), Fault> {
        let identity = Identity {
            tenant: tenant.clone(),
            path: manifest.path.clone(),
            version: manifest.version.clone(),
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
        match self.host.call(module, call).await?.outcome {
            Ok(_) => Ok(()),
            Err(failure) => Err(Fault::new(FaultClass::Trap, failure.message)),
        }
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

/// What a denial says that comes only of loading without a grant. A fault has the text of its denial and nothing else.
const OF_THE_PUSH: &str = "which this call does not grant";

/// Why a text that did not load is refused; none where the fault is not the text's, or not one of its calls.
///
/// Waiting for memory and for a slot is not counted as loading, so that others keep the server busy is no timeout.
fn refusal(fault: Fault) -> Option<String> {
    let Fault { class, message } = fault;
    match class {
        FaultClass::Trap | FaultClass::Memory | FaultClass::Output | FaultClass::Quota => Some(message),
        FaultClass::Timeout if message.contains("limits.wall_ms") => Some(
            "loading alone took longer than `limits.wall_ms`: do not wait outside of the function, or raise \
             `limits.wall_ms`"
                .to_owned(),
        ),
        FaultClass::Timeout => Some(
            "loading alone took longer than `limits.cpu_ms`: move work into the function, or raise `limits.cpu_ms`"
                .to_owned(),
        ),
        FaultClass::Denied if message.contains(OF_THE_PUSH) => None,
        FaultClass::Denied => {
            Some(format!("{message}\nit is asked for while the text is loaded, so no call would come further"))
        }
        FaultClass::Skew | FaultClass::Fetch => None,
    }
}

#[cfg(test)]
mod tests {
    use noetl_contract::Capability;
    use noetl_host::Denied;

    use super::*;

    fn refused(class: FaultClass, message: impl std::fmt::Display) -> Option<String> {
        refusal(Fault::new(class, message.to_string()))
    }

    #[test]
    fn a_text_that_no_call_could_load_is_refused() {
        let slow = refused(FaultClass::Timeout, "the guest computed for longer than 9 ms (`limits.cpu_ms`)");
        assert!(slow.is_some_and(|why| why.contains("raise `limits.cpu_ms`")));
        let waits = refused(FaultClass::Timeout, "the call took longer than 9 ms (`limits.wall_ms`)");
        assert!(waits.is_some_and(|why| why.contains("raise `limits.wall_ms`")));
        let sockets = Denied::Refused { import: "wasi:sockets/tcp@0.2.0".to_owned(), instead: "use `http-client`" };
        assert!(refused(FaultClass::Denied, sockets).is_some_and(|why| why.contains("is never available")));
        let unasked = Denied::Unasked { capability: Capability::Kv, line: "capabilities = [\"kv\"]".to_owned() };
        assert!(refused(FaultClass::Denied, unasked).is_some_and(|why| why.contains("capabilities = [\"kv\"]")));
        for class in [FaultClass::Trap, FaultClass::Memory, FaultClass::Output, FaultClass::Quota] {
            assert_eq!(refused(class, "why").as_deref(), Some("why"));
        }
    }

    #[test]
    fn what_is_not_the_texts_fault_does_not_refuse_it() {
        let import = "noetl:kv/kv@0.1.0".to_owned();
        let granted = Denied::NotInCall { import, capability: Capability::Kv, granted: "none".to_owned() };
        assert_eq!(refused(FaultClass::Denied, granted), None, "a call has what its manifest asks for");
        for class in [FaultClass::Skew, FaultClass::Fetch] {
            assert_eq!(refused(class, "the server is shutting down"), None);
        }
    }
}
