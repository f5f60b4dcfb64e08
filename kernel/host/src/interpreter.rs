//! Interpreters: one compiled component that runs many plugins.
//!
//! A plugin that is source text has no machine code. Its calls run in sandboxes of its language's interpreter, which is
//! given the plugin's files before the call. So the machine code of fifty plugins of one language is there once, and so
//! are its instance templates: one a grant, whoever asks.
//!
//! An interpreter imports every capability, because it cannot know what its programs use. The grant is the plugin's
//! own all the same: what is not in it is linked to a function that ends the call with the fault `denied`, and no
//! driver is behind it. What the program catches makes no difference: the sandbox is over.

use std::sync::Arc;

use noetl_contract::inspect::{Import, ImportKind};
use noetl_contract::source::Bundle;
use noetl_contract::{Capability, CapabilitySet};
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, ComponentExportIndex, ComponentType, Instance, Linker, Lower, ResourceType};
use wasmtime::{Engine, Store};

use crate::bindings;
use crate::caps;
use crate::caps::payload::{Payload, Writer};
use crate::engine::Engines;
use crate::error::{Denied, Fault, FaultClass, PrepareError};
use crate::grant::{Grant, Terms};
use crate::module::{Template, Templates};
use crate::state::CallState;

/// An interpreter whose machine code is there.
pub struct Interpreter {
    component: Component,
    load: ComponentExportIndex,
    pub(crate) run: ComponentExportIndex,
    pub(crate) call: ComponentExportIndex,
    /// Not there in interpreters of older versions.
    pub(crate) describe: Option<ComponentExportIndex>,
    pub(crate) slots: u32,
    templates: Templates,
}

impl Interpreter {
    pub(crate) fn new(component: Component) -> Result<Self, PrepareError> {
        let export = |name: &str| {
            component
                .get_export_index(None, name)
                .ok_or_else(|| PrepareError::Skew(format!("the interpreter does not export `{name}`")))
        };
        let (load, run, call) = (export("load")?, export("run")?, export("call")?);
        let slots = Engines::slots_of(&component);
        let describe = component.get_export_index(None, "describe");
        Ok(Self { component, load, run, call, describe, slots, templates: Templates::default() })
    }

    pub(crate) fn template(&self, engine: &Engine, grant: Grant) -> Result<Arc<Template>, PrepareError> {
        self.templates.get(grant, || self.link(engine, grant))
    }

    fn link(&self, engine: &Engine, grant: Grant) -> Result<Template, PrepareError> {
        let skew = |error: wasmtime::Error| PrepareError::Skew(format!("{error:#}"));
        let mut linker: Linker<CallState> = Linker::new(engine);
        caps::link_base(&mut linker).map_err(skew)?;
        for capability in grant.capabilities.iter() {
            caps::link(capability, &mut linker).map_err(skew)?;
        }
        crate::wasi::link(&mut linker).map_err(skew)?;
        link_denied(&self.component, engine, &mut linker, grant).map_err(skew)?;
        let pre = linker.instantiate_pre(&self.component).map_err(skew)?;
        Ok(Template { grant, pre, wasi: true })
    }
}

/// Gives every import that the grant does not cover a body that denies it.
pub(crate) fn link_denied(
    component: &Component,
    engine: &Engine,
    linker: &mut Linker<CallState>,
    grant: Grant,
) -> wasmtime::Result<()> {
    // An interface that uses a resource of another one names it too; it is defined where it comes from.
    let mut known = Vec::new();
    for (name, item) in component.component_type().imports(engine) {
        let ComponentItem::ComponentInstance(interface) = item.ty else { continue };
        let import = Import::new(name);
        // Opening an interface defines it under this very version, so what is granted is left alone.
        let mut denied = (!is_granted(&import, grant)).then(|| linker.instance(name)).transpose()?;
        for (name, item) in interface.exports(engine) {
            if let ComponentItem::Resource(resource) = &item.ty {
                if known.contains(resource) {
                    continue;
                }
                known.push(*resource);
            }
            let Some(instance) = &mut denied else { continue };
            match item.ty {
                ComponentItem::Resource(_) => instance.resource(name, absent(name), |_, _| Ok(()))?,
                ComponentItem::ComponentFunc(_) => {
                    let import = import.clone();
                    instance.func_new(name, move |mut store, _, _, _| Err(deny(store.data_mut(), &import).into()))?;
                }
                _ => {}
            }
        }
    }
    Ok(())
}

fn is_granted(import: &Import, grant: Grant) -> bool {
    match import.kind {
        ImportKind::Capability(capability) => grant.capabilities.contains(capability),
        ImportKind::Wasi => !import.refused_wasi(),
        ImportKind::Base => true,
        ImportKind::Unknown => false,
    }
}

/// The type of a resource nobody can get hold of. Those of payloads are the real ones, because functions that are
/// granted may speak of them.
fn absent(name: &str) -> ResourceType {
    struct Absent;
    match name {
        "payload" => ResourceType::host::<Payload>(),
        "writer" => ResourceType::host::<Writer>(),
        _ => ResourceType::host::<Absent>(),
    }
}

/// Ends the call of a program that used what it may not.
fn deny(state: &mut CallState, import: &Import) -> Fault {
    let denied = match import.kind {
        ImportKind::Capability(capability) => why_denied(&state.terms, import.name.clone(), capability),
        ImportKind::Wasi => {
            Denied::Refused { import: import.name.clone(), instead: "use the capability `http-client`" }
        }
        ImportKind::Base | ImportKind::Unknown => Denied::Unknown { import: import.name.clone() },
    };
    state.meter.fail(FaultClass::Denied, denied.to_string())
}

fn why_denied(terms: &Terms, import: String, capability: Capability) -> Denied {
    if terms.manifest.contains(capability) {
        return terms.why_not(import, capability);
    }
    let mut wanted = terms.manifest;
    wanted.insert(capability);
    capability.needs().iter().for_each(|needed| wanted.insert(*needed));
    Denied::Unasked { capability, line: capabilities_line(wanted) }
}

fn capabilities_line(capabilities: CapabilitySet) -> String {
    let names: Vec<String> = capabilities.iter().map(|capability| format!("\"{capability}\"")).collect();
    format!("capabilities = [{}]", names.join(", "))
}

/// One file of a program, as the interpreter takes it.
#[derive(ComponentType, Lower)]
#[component(record)]
struct File {
    path: String,
    content: Vec<u8>,
}

/// A plugin's files and what runs them.
pub(crate) struct Program {
    pub(crate) interpreter: Arc<Interpreter>,
    entry: String,
    files: Vec<File>,
}

type LoadFunc<'a> = wasmtime::component::TypedFunc<(&'a str, &'a [File]), (Result<(), bindings::Failure>,)>;

impl Program {
    pub(crate) fn new(interpreter: Arc<Interpreter>, entry: String, bundle: &Bundle) -> Self {
        let file = |(path, content): (&str, &[u8])| File { path: path.to_owned(), content: content.to_vec() };
        Self { interpreter, entry, files: bundle.files().map(file).collect() }
    }

    /// Bytes of the files, which are held as long as the module is.
    pub(crate) fn weight(&self) -> u64 {
        self.files.iter().map(|file| (file.path.len() + file.content.len()) as u64).sum()
    }

    /// A file of the program that says what it does, so that it need not be run for it.
    pub(crate) fn description(&self) -> Option<&[u8]> {
        self.files.iter().find(|file| file.path == "describe.json").map(|file| file.content.as_slice())
    }

    /// Hands the files to a new sandbox; the failure is the program's own.
    pub(crate) async fn load(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
    ) -> wasmtime::Result<Result<(), bindings::Failure>> {
        let load: LoadFunc<'_> = instance.get_typed_func(&mut *store, self.interpreter.load)?;
        Ok(load.call_async(store, (&self.entry, &self.files)).await?.0)
    }
}

#[cfg(test)]
mod tests {
    use noetl_contract::Ring;

    use super::*;

    fn terms(manifest: &[Capability], denied: &[Capability]) -> Terms {
        let set = |list: &[Capability]| list.iter().copied().collect();
        Terms { manifest: set(manifest), ring: Ring::User, call: None, denied: set(denied) }
    }

    #[test]
    fn a_denial_says_which_line_to_write() {
        let denied = why_denied(&terms(&[Capability::Log], &[]), "noetl:kv/kv@0.1.0".into(), Capability::Kv);
        assert!(denied.to_string().contains("capabilities = [\"log\", \"kv\"]"), "{denied}");
        let denied = why_denied(&terms(&[], &[]), "noetl:objects/objects@0.1.0".into(), Capability::Objects);
        assert!(denied.to_string().contains("[\"objects\", \"payload\"]"), "{denied}");
    }

    #[test]
    fn what_the_operator_denies_is_told_as_that() {
        let denied = why_denied(&terms(&[Capability::Kv], &[Capability::Kv]), "noetl:kv/kv".into(), Capability::Kv);
        assert!(matches!(denied, Denied::Policy { .. }), "{denied}");
    }
}
