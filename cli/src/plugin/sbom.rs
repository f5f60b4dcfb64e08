//! `noetl plugin sbom`: the packages a component was built from, in the form that scanners take (CycloneDX).
//!
//! The list is inside of the component, where the build put it; this only writes it down in another form. A component
//! that was built elsewhere may have none.

use std::path::Path;

use clap::Args;
use noetl_guest_build::dependencies;
use serde_json::{Value, json};

use super::component::Component;
use crate::args::Context;
use crate::failure::{Exit, Failure, Outcome};

#[derive(Debug, Args)]
pub struct Sbom {
    /// A component file, or PATH@VERSION on the server.
    #[arg(value_name = "FILE|PATH@VERSION")]
    what: String,
}

impl Sbom {
    pub async fn run(self, context: &Context) -> Outcome {
        let file = Path::new(&self.what);
        let component = if file.is_file() {
            Component::read(file)?
        } else {
            let (path, version) = super::sign::on_server(&self.what)?;
            super::sign::from_server(&context.client()?, &path, &version).await?
        };
        let list = dependencies::read(&component.bytes);
        let list = list.map_err(|error| Failure::failed(format!("{}: {error}", component.name)))?.ok_or_else(|| {
            Failure::new(Exit::NotFound, format!("{} does not say what it is made of", component.name))
                .next("build it with `noetl plugin build`, which writes the list into the component")
        })?;
        let parts = list.packages.iter().filter(|package| !package.root).map(|package| {
            json!({
                "type": "library", "name": package.name, "version": package.version,
                "purl": format!("pkg:cargo/{}@{}", package.name, package.version),
                "scope": if package.kind == Default::default() { "required" } else { "excluded" },
            })
        });
        context.output.value(&document(&component, parts.collect()));
        Ok(())
    }
}

fn document(component: &Component, parts: Vec<Value>) -> Value {
    let manifest = &component.manifest;
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": {
            "type": "application", "name": manifest.path, "version": manifest.version,
            "hashes": [{ "alg": "SHA-256", "content": component.digest().hex() }],
        } },
        "components": parts,
    })
}
