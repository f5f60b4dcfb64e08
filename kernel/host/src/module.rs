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
use crate::interpreter::{Program, link_denied};
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
    /// For a plugin that is source text.
    pub source: Option<SourceSpec>,
}

/// What runs a plugin that is source text, and where it begins.
#[derive(Debug, Clone)]
pub struct SourceSpec {
    /// Of the interpreter the version was pushed with.
    pub interpreter: Digest,
    pub entry: String,
}

impl Spec {
    pub(crate) fn engine(&self) -> EngineKind {
        match self.instance {
            // An interpreter waits on WASI, for which only the guest engine has fibers.
            InstancePolicy::Resident if self.source.is_none() => EngineKind::Pure,
            _ => EngineKind::Guest,
        }
    }

    pub fn terms(&self, call: Option<CapabilitySet>, denied: CapabilitySet) -> Terms {
        Terms { manifest: self.capabilities, ring: self.ring, call, denied }
    }

    /// Everything that can be refused before a byte is compiled.
    pub fn check(&self, denied: CapabilitySet) -> Result<Grant, Denied> {
        if self.source.is_some() && !self.ring.has_wasi() {
            return Err(Denied::Interpreted { path: self.path.clone() });
        }
        if self.instance == InstancePolicy::Resident {
            if !self.path.is_reserved() && self.source.is_none() {
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

/// A component that can be called.
pub struct Module {
    pub(crate) spec: Spec,
    code: Code,
    pub(crate) export: ComponentExportIndex,
    pub(crate) slots: u32,
    pub(crate) metrics: ModuleMetrics,
}

enum Code {
    /// Machine code of the plugin's own.
    Own { component: Component, templates: Templates },
    /// Source text, and the interpreter that runs it.
    Program(Program),
}

/// An instance that is linked and checked but does not exist yet.
pub(crate) struct Template {
    pub(crate) grant: Grant,
    pub(crate) pre: InstancePre<CallState>,
    /// Whether the component has WASI imports at all; most stores are spared the context.
    pub(crate) wasi: bool,
}

/// The templates of one component, one a grant.
#[derive(Default)]
pub(crate) struct Templates(RwLock<Vec<(Grant, Arc<Template>)>>);

impl Templates {
    pub(crate) fn get(
        &self,
        grant: Grant,
        link: impl FnOnce() -> Result<Template, PrepareError>,
    ) -> Result<Arc<Template>, PrepareError> {
        let known = |templates: &[(Grant, Arc<Template>)]| {
            templates.iter().find(|(of, _)| *of == grant).map(|(_, template)| template.clone())
        };
        if let Some(template) = known(&self.0.read()) {
            return Ok(template);
        }
        let template = Arc::new(link()?);
        let mut templates = self.0.write();
        if let Some(other) = known(&templates) {
            return Ok(other);
        }
        templates.push((grant, template.clone()));
        Ok(template)
    }
}

impl Module {
    pub(crate) fn new(spec: Spec, component: Component, metrics: ModuleMetrics) -> Result<Self, PrepareError> {
        let export = component
            .get_export_index(None, spec.world.exports()[0])
            .ok_or_else(|| PrepareError::Skew(format!("it does not export `{}`", spec.world.exports()[0])))?;
        let slots = Engines::slots_of(&component);
        let code = Code::Own { component, templates: Templates::default() };
        Ok(Self { spec, code, export, slots, metrics })
    }

    pub(crate) fn of_program(spec: Spec, program: Program, metrics: ModuleMetrics) -> Self {
        let interpreter = &program.interpreter;
        let export = if spec.world == World::Tool { interpreter.call } else { interpreter.run };
        Self { slots: interpreter.slots, spec, export, metrics, code: Code::Program(program) }
    }

    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// What has to be loaded into an instance before it is called.
    pub(crate) fn program(&self) -> Option<&Program> {
        match &self.code {
            Code::Own { .. } => None,
            Code::Program(program) => Some(program),
        }
    }

    pub(crate) fn template(&self, engine: &Engine, terms: &Terms) -> Result<Arc<Template>, PrepareError> {
        let grant = terms.grant();
        match &self.code {
            Code::Program(program) => program.interpreter.template(engine, grant),
            Code::Own { component, templates } => templates.get(grant, || {
                terms.check(&self.spec.imports)?;
                self.link(engine, component, grant)
            }),
        }
    }

    /// An instance that can do nothing but speak about itself: no capability is behind any of its imports.
    pub(crate) fn mute_template(&self, engine: &Engine) -> Result<Arc<Template>, PrepareError> {
        let grant = Grant { capabilities: CapabilitySet::EMPTY, wasi: self.spec.ring.has_wasi() };
        let component = match &self.code {
            Code::Program(program) => return program.interpreter.template(engine, grant),
            Code::Own { component, .. } => component,
        };
        let skew = |error: wasmtime::Error| PrepareError::Skew(format!("{error:#}"));
        let wasi = grant.wasi && self.spec.imports.iter().any(|import| import.name.starts_with("wasi:"));
        let mut linker: Linker<CallState> = Linker::new(engine);
        caps::link_base(&mut linker).map_err(skew)?;
        if wasi {
            crate::wasi::link(&mut linker).map_err(skew)?;
        }
        link_denied(component, engine, &mut linker, grant).map_err(skew)?;
        let pre = linker.instantiate_pre(component).map_err(skew)?;
        Ok(Arc::new(Template { grant, pre, wasi }))
    }

    /// Where it says something about itself, if it does.
    pub(crate) fn description(&self) -> Option<ComponentExportIndex> {
        match &self.code {
            Code::Program(program) => program.interpreter.describe,
            Code::Own { component, .. } => {
                let interface = component.get_export_index(None, "noetl:describe/describing@0.1.0")?;
                component.get_export_index(Some(&interface), "describe")
            }
        }
    }

    fn link(&self, engine: &Engine, component: &Component, grant: Grant) -> Result<Template, PrepareError> {
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
        let pre = linker.instantiate_pre(component).map_err(skew)?;
        Ok(Template { grant, pre, wasi })
    }
}
