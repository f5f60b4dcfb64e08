//! A component that is ready to be called.
//!
//! A module keeps one instance template a grant: linking and type checks happen once, and a call only
//! takes a memory from the pool. Whoever calls holds the module by reference count, so that dropping it
//! from the host's table frees it exactly when its last call has ended.

use std::sync::Arc;

use noetl_contract::inspect::{Import, ImportKind};
use noetl_contract::manifest::{HttpPolicy, InstancePolicy, World};
use noetl_contract::{CapabilitySet, Digest, Limits, PluginPath, Ring, Version};
use parking_lot::RwLock;
use wasmtime::Engine;
use wasmtime::component::{Component, ComponentExportIndex, InstancePre, Linker};

use crate::caps;
use crate::engine::{EngineKind, Engines};
use crate::error::{Denied, PrepareError};
use crate::grant::{Grant, Terms};
use crate::metrics::ModuleMetrics;
use crate::state::CallState;

/// What the catalog knows of a component.
#[derive(Debug, Clone)]
pub struct Spec {
    pub digest: Digest,
    pub path: PluginPath,
    pub version: Version,
    pub world: World,
    pub ring: Ring,
    pub capabilities: CapabilitySet,
    pub limits: Limits,
    pub instance: InstancePolicy,
    pub http: Arc<HttpPolicy>,
    pub imports: Vec<Import>,
}

impl Spec {
    pub(crate) fn engine(&self) -> EngineKind {
        match self.instance {
            InstancePolicy::Fresh => EngineKind::Guest,
            InstancePolicy::Resident => EngineKind::Pure,
        }
    }

    pub fn terms(&self, call: Option<CapabilitySet>, denied: CapabilitySet) -> Terms {
        Terms { manifest: self.capabilities, ring: self.ring, call, denied }
    }

    /// Everything that can be refused before a byte is compiled.
    pub fn check(&self, denied: CapabilitySet) -> Result<Grant, Denied> {
        if self.instance == InstancePolicy::Resident {
            if !self.path.is_reserved() {
                return Err(Denied::ResidentPath { path: self.path.clone() });
            }
            // It runs on the pure engine, which has no fibers for WASI to wait on.
            if let Some(import) = self.imports.iter().find(|import| import.kind == ImportKind::Wasi) {
                return Err(Denied::Wasi { import: import.name.clone() });
            }
            let beyond = self.capabilities.minus(Ring::Pure.capabilities());
            if let Some(capability) = beyond.iter().next() {
                return Err(Denied::Resident { capability });
            }
        }
        self.terms(None, denied).check(&self.imports)
    }
}

/// A compiled, linkable component.
pub struct Module {
    pub(crate) spec: Spec,
    pub(crate) component: Component,
    pub(crate) export: ComponentExportIndex,
    pub(crate) slots: u32,
    pub(crate) metrics: ModuleMetrics,
    templates: RwLock<Vec<(Grant, Arc<Template>)>>,
}

/// An instance that is linked and checked but does not exist yet.
pub(crate) struct Template {
    pub(crate) grant: Grant,
    pub(crate) pre: InstancePre<CallState>,
    /// Whether the component has WASI imports at all; most stores are spared the context.
    pub(crate) wasi: bool,
}

impl Module {
    pub(crate) fn new(spec: Spec, component: Component, metrics: ModuleMetrics) -> Result<Self, PrepareError> {
        let export = component
            .get_export_index(None, spec.world.exports()[0])
            .ok_or_else(|| PrepareError::Skew(format!("it does not export `{}`", spec.world.exports()[0])))?;
        let slots = component
            .resources_required()
            .map_or(1, |needed| Engines::slots_needed(needed.num_memories, needed.num_tables));
        Ok(Self { spec, component, export, slots, metrics, templates: RwLock::default() })
    }

    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    pub(crate) fn template(&self, engine: &Engine, terms: &Terms) -> Result<Arc<Template>, PrepareError> {
        let grant = terms.grant();
        let known = |templates: &[(Grant, Arc<Template>)]| {
            templates.iter().find(|(of, _)| *of == grant).map(|(_, template)| template.clone())
        };
        if let Some(template) = known(&self.templates.read()) {
            return Ok(template);
        }
        terms.check(&self.spec.imports)?;
        let template = Arc::new(self.link(engine, grant)?);
        let mut templates = self.templates.write();
        if let Some(other) = known(&templates) {
            return Ok(other);
        }
        templates.push((grant, template.clone()));
        Ok(template)
    }

    fn link(&self, engine: &Engine, grant: Grant) -> Result<Template, PrepareError> {
        let skew = |error: wasmtime::Error| PrepareError::Skew(format!("{error:#}"));
        let wasi = self.spec.imports.iter().any(|import| import.name.starts_with("wasi:"));
        let mut linker: Linker<CallState> = Linker::new(engine);
        caps::link_base(&mut linker).map_err(skew)?;
        for capability in grant.capabilities.iter() {
            caps::link(capability, &mut linker).map_err(skew)?;
        }
        if wasi && grant.wasi {
            crate::wasi::link(&mut linker).map_err(skew)?;
        }
        let pre = linker.instantiate_pre(&self.component).map_err(skew)?;
        Ok(Template { grant, pre, wasi })
    }
}
