//! The command as a client of OCI registries.
//!
//! The registry is spoken to from here and not by the server: whoever runs the command has the credentials and sees the
//! network the registry is in, and the server needs neither. What comes back is bytes with a digest, to be pushed like
//! any other.

use std::path::PathBuf;

use bytes::Bytes;
use clap::Args;
use noetl_registry::oci::{Artefact, Credentials, OciError, OciReference, Published, Remote};

use super::component::Component;
use crate::failure::{Exit, Failure, Outcome};

/// How to reach a registry.
#[derive(Debug, Clone, Args)]
pub struct OciOptions {
    /// Reach a registry on another machine without TLS; on this machine it is never used.
    #[arg(long)]
    plain_http: bool,
}

/// Reads an address.
pub fn reference(text: &str) -> Outcome<OciReference> {
    text.parse().map_err(failed)
}

/// Puts a component into a registry. Without a tag it gets its version's.
pub async fn publish(
    component: &Component,
    to: OciReference,
    options: &OciOptions,
) -> Outcome<(OciReference, Published)> {
    let to = if to.has_name() { to } else { to.with_tag(&component.manifest.version.to_string()) };
    let artefact =
        Artefact { component: Bytes::from(component.bytes.clone()), attestations: component.attestations.clone() };
    let published = remote(&to, options)?.push(&artefact).await.map_err(failed)?;
    Ok((to, published))
}

/// Takes a component out of a registry, with the attestations that hold and are about it.
pub async fn pull(from: &OciReference, options: &OciOptions) -> Outcome<(Component, Published)> {
    let (artefact, published) = remote(from, options)?.pull().await.map_err(failed)?;
    let mut component = Component::parse(from.to_string(), artefact.component.to_vec())?;
    component.attestations = artefact.attestations;
    Ok((component, published))
}

fn remote(reference: &OciReference, options: &OciOptions) -> Outcome<Remote> {
    // Fails only when a provider is already installed, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let credentials = match docker_config() {
        Some(file) => Credentials::from_docker_config(&file, reference.registry()).map_err(failed)?,
        None => Credentials::nobody(),
    };
    Ok(Remote::new(reference.clone(), credentials, options.plain_http))
}

/// The file in which `docker login` keeps credentials.
fn docker_config() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("DOCKER_CONFIG").or_else(|| Some(set("HOME")?.join(".docker")))?;
    Some(folder.join("config.json"))
}

/// The exit code of what went wrong, and what to do next.
pub fn failed(error: OciError) -> Failure {
    let exit = match &error {
        OciError::Reference { .. } => Exit::Usage,
        OciError::NotFound(_) => Exit::NotFound,
        OciError::Denied { .. } | OciError::Credentials { .. } => Exit::Denied,
        OciError::Unreachable { .. } => Exit::Unreachable,
        _ => Exit::Failed,
    };
    let failure = Failure::new(exit, error.to_string());
    match &error {
        OciError::Unreachable { .. } => failure.next("a registry without TLS on another machine needs --plain-http"),
        _ => failure,
    }
}
