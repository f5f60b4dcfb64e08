//! `noetl plugin pull`: a component from a registry becomes a file, with its attestations beside it.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::oci::{self, OciOptions};
use super::{attestations, write_whole};
use crate::args::Context;
use crate::failure::Outcome;
use crate::output::size;

#[derive(Debug, Args)]
pub struct Pull {
    /// Where it is: oci://REGISTRY/REPOSITORY:TAG, or @sha256:... for exactly one artefact.
    #[arg(value_name = "oci://...")]
    from: String,
    /// The file to write [default: <last segment of the path>-<version>.wasm].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    registry: OciOptions,
}

impl Pull {
    pub async fn run(self, context: &Context) -> Outcome {
        let (component, published) = oci::pull(&oci::reference(&self.from)?, &self.registry).await?;
        if published.left_out > 0 {
            context.output.detail(format_args!(
                "{} attestations are left out: they are about other things, or signed in ways not known here",
                published.left_out
            ));
        }
        let manifest = &component.manifest;
        let file = self.output.unwrap_or_else(|| {
            let name = manifest.path.as_str().rsplit('/').next().unwrap_or("plugin");
            Path::new(&format!("{name}-{}.wasm", manifest.version)).to_owned()
        });
        write_whole(&file, &component.bytes)?;
        attestations::write_beside(&file, &component.attestations)?;
        let value = json!({
            "file": file, "path": manifest.path, "version": manifest.version, "digest": component.digest(),
            "manifest_digest": published.manifest, "attestations": component.attestations.len(),
        });
        context.output.result(&value, |_| {
            format!(
                "{}  {} {}  {}  {}",
                file.display(),
                manifest.path,
                manifest.version,
                size(component.bytes.len() as u64),
                component.digest()
            )
        });
        Ok(())
    }
}
