//! `noetl plugin build`: a project becomes one component file, with its manifest inside; source text is packed as it is.
//! Beside it goes what is known about how it was made, for `push` and `sign` to take along.

use std::path::{Path, PathBuf};

use clap::Args;
use noetl_contract::PluginPath;
use noetl_guest_build::{BuildError, BuildRequest};
use serde_json::json;

use super::component::{Component, project_manifest};
use crate::args::Context;
use crate::failure::{self, Exit, Failure, Outcome};
use crate::output::{Output, Paint, size};

#[derive(Debug, Args)]
pub struct Build {
    /// The project's folder, or one file of Python or JavaScript.
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// For a single file of source text: where it lives in the catalog, such as `acme/orders/enrich`.
    #[arg(long)]
    path: Option<PluginPath>,
    /// The file to write [default: FOLDER/target/<last segment of the path>.wasm].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Build {
    pub fn run(self, context: &Context) -> Outcome {
        let component = build(&self.folder, self.path.as_ref(), None, &context.output)?;
        let file = self.out.unwrap_or_else(|| default_file(&self.folder, &component));
        write(&file, &component)?;
        let value = json!({
            "file": file, "path": component.manifest.path, "version": component.manifest.version,
            "world": component.manifest.world, "size": component.bytes.len(), "digest": component.digest(),
            "capabilities": component.manifest.capabilities, "imports": component.imports, "exports": component.exports,
        });
        context.output.result(&value, |paint| describe(&component, &file, paint));
        Ok(())
    }
}

/// Builds the project and checks the result against its manifest. `path` is where a single file lives, and `manifest`
/// takes the place of the project's own.
pub fn build(folder: &Path, path: Option<&PluginPath>, manifest: Option<&Path>, output: &Output) -> Outcome<Component> {
    // Read first: a mistake in plugin.toml should not cost the time of a build.
    let (project, text) = project_manifest(folder, path)?;
    if project.source.is_some() {
        let given =
            manifest.map(|file| std::fs::read_to_string(file).map_err(failure::io("read", file))).transpose()?;
        return super::pack::pack(folder, given.as_deref().unwrap_or(&text));
    }
    let request = BuildRequest {
        manifest: manifest.map(Path::to_owned),
        // Cargo's own progress is for people who wait for it; its warnings and errors come in any case.
        quiet: !output.verbose && !output.shows_progress(),
        ..BuildRequest::new(folder)
    };
    output.detail(format_args!("building {}", folder.display()));
    let built = noetl_guest_build::build(&request).map_err(failed)?;
    let mut component = Component::parse(project.path.to_string(), built.component)?;
    component.check()?;
    component.attestations = vec![super::attestations::of_build(&component, folder, built.toolchain)];
    Ok(component)
}

fn failed(error: BuildError) -> Failure {
    match error {
        BuildError::Manifest { .. } => Failure::new(Exit::Usage, error.to_string()),
        BuildError::NoCrate(_) => Failure::new(Exit::NotFound, error.to_string()),
        _ => Failure::failed(error.to_string()),
    }
}

fn default_file(folder: &Path, component: &Component) -> PathBuf {
    let name = component.manifest.path.as_str().rsplit('/').next().unwrap_or("plugin");
    let folder = if folder.is_dir() { folder } else { folder.parent().unwrap_or(Path::new(".")) };
    folder.join("target").join(format!("{name}.wasm"))
}

fn write(file: &Path, component: &Component) -> Outcome {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(failure::io("make", folder))?;
    }
    super::fetch::write_whole(file, &component.bytes)?;
    super::attestations::write_beside(file, &component.attestations)
}

fn describe(component: &Component, file: &Path, paint: Paint) -> String {
    let manifest = &component.manifest;
    let imports =
        if component.imports.is_empty() { "nothing".to_owned() } else { component.imports.join("\n          ") };
    format!(
        "{}\n  plugin  {} {} ({})\n  size    {}\n  digest  {}\n  asks    {}\n  imports {}",
        paint.bold(file.display()),
        manifest.path,
        manifest.version,
        manifest.world,
        size(component.bytes.len() as u64),
        component.digest(),
        manifest.capabilities,
        imports
    )
}
