//! What a component is, before anything of it runs: its manifest, what it imports and exports, and where it
//! disagrees with the contract.
//!
//! The bytes come from anyone. Reading them is linear in their size, trusts no length in them, and ends in
//! a value or in an error that says what to do.

use serde::{Deserialize, Serialize};
use wasmparser::{ComponentTypeRef, Payload};
use wit_component::DecodedWasm;
use wit_parser::{Resolve, WorldId, WorldItem};

use crate::manifest::Manifest;
use crate::manifest::section::{SectionError, extract, walk};
use crate::packages::{ENGINE_PACKAGE, INTERPRETER_PACKAGE, WORLDS_PACKAGE};
use crate::rings::Capability;
use crate::skew;
use crate::source::{self, SourceError};

/// What is known of a component from its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inspection {
    pub manifest_text: Option<String>,
    pub imports: Vec<Import>,
    pub exports: Vec<String>,
    /// One line for each difference to the contract; empty when the component fits. The exports are held
    /// against the world of the manifest, if there is a manifest that can be read.
    pub skew: Vec<String>,
}

/// One thing a component needs; written as its name, from which the rest follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Import {
    /// In full: `noetl:kv/kv@0.1.0`.
    pub name: String,
    pub kind: ImportKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportKind {
    Capability(Capability),
    Wasi,
    /// Of the packages of worlds: types and the last words of a guest, linked in every ring.
    Base,
    Unknown,
}

impl Import {
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        let kind = match Capability::of_import(&name) {
            Some(capability) => ImportKind::Capability(capability),
            None if BASE.contains(&name.split('/').next().unwrap_or_default()) => ImportKind::Base,
            None if name.starts_with("wasi:") => ImportKind::Wasi,
            None => ImportKind::Unknown,
        };
        Self { name, kind }
    }

    /// WASI that no ring links: sockets, HTTP and whatever else has no harmless form. A plugin asks for
    /// `http-client` instead.
    pub fn refused_wasi(&self) -> bool {
        let package = self.name.split(['/', '@']).next().unwrap_or_default();
        self.kind == ImportKind::Wasi && !ALLOWED_WASI.contains(&package)
    }
}

impl From<String> for Import {
    fn from(name: String) -> Self {
        Self::new(name)
    }
}

impl From<Import> for String {
    fn from(import: Import) -> Self {
        import.name
    }
}

/// Packages that are no capability.
const BASE: [&str; 3] = [WORLDS_PACKAGE, ENGINE_PACKAGE, INTERPRETER_PACKAGE];

/// The packages of WASI of which a harmless form can be linked. Anything else of WASI, known today or not,
/// is refused.
const ALLOWED_WASI: [&str; 5] = ["wasi:cli", "wasi:clocks", "wasi:filesystem", "wasi:io", "wasi:random"];

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InspectError {
    #[error(transparent)]
    Section(#[from] SectionError),
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error("these bytes are an encoded WIT package, not a component: build with `noetl plugin build`")]
    WitPackage,
    #[error("the component cannot be read: {0}")]
    Undecodable(String),
}

/// Looks a component over.
pub fn inspect(component: &[u8]) -> Result<Inspection, InspectError> {
    let manifest_text = extract(component)?;
    let (resolve, world) = decode(component)?;
    let manifest = manifest_text.as_deref().and_then(|text| Manifest::parse(text).ok());
    let bundle = source::extract(component)?;
    let mut skew = skew::import_differences(&resolve, world);
    if let Some(manifest) = &manifest {
        match &manifest.source {
            Some(wanted) => skew.extend(source::differences(wanted, bundle.as_ref(), &resolve.worlds[world])),
            None => skew.extend(skew::export_differences(&resolve, world, manifest.world)),
        }
        skew.extend(skew::unmet_requirements(manifest));
    }
    let named = |items: &wit_parser::IndexMap<_, WorldItem>| -> Vec<String> {
        let items = items.iter().filter(|(_, item)| !matches!(item, WorldItem::Type { .. }));
        items.map(|(key, _)| resolve.name_world_key(key)).collect()
    };
    let imports = named(&resolve.worlds[world].imports).into_iter().map(Import::new).collect();
    let exports = named(&resolve.worlds[world].exports);
    Ok(Inspection { manifest_text, imports, exports, skew })
}

/// The interface of a component, as WIT.
pub fn decode(component: &[u8]) -> Result<(Resolve, WorldId), InspectError> {
    match wit_component::decode(component) {
        Ok(DecodedWasm::Component(resolve, world)) => Ok((resolve, world)),
        Ok(DecodedWasm::WitPackage(..)) => Err(InspectError::WitPackage),
        Err(error) => Err(InspectError::Undecodable(format!("{error:#}"))),
    }
}

/// The names of a component's imports, read from its top level alone.
pub fn import_names(component: &[u8]) -> Result<Vec<String>, SectionError> {
    let mut names = Vec::new();
    walk(component, |payload| {
        let Payload::ComponentImportSection(section) = payload else { return Ok(()) };
        for import in section.clone() {
            let import = import.map_err(|error| SectionError::Damaged {
                offset: error.offset(),
                problem: error.message().to_owned(),
            })?;
            if !matches!(import.ty, ComponentTypeRef::Type(_)) {
                names.push(import.name.name.to_owned());
            }
        }
        Ok(())
    })?;
    Ok(names)
}

#[cfg(test)]
#[path = "inspect_tests.rs"]
mod tests;
