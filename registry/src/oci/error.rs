//! What can go wrong with a registry or a bundle.

use oci_client::errors::{OciDistributionError, OciErrorCode};

#[derive(Debug, thiserror::Error)]
pub enum OciError {
    #[error(
        "`{given}` is not the address of an artefact: {problem}; use for example `oci://ghcr.io/acme/greeter:1.0.0`"
    )]
    Reference { given: String, problem: String },
    #[error("the credentials for {registry} in the docker configuration cannot be used: {problem}")]
    Credentials { registry: String, problem: String },
    #[error(
        "{registry} does not let this user do that: `docker login {registry}`, or another client, stores credentials"
    )]
    Denied { registry: String },
    #[error("there is no {0}")]
    NotFound(String),
    #[error("{registry} is not reached: {problem}")]
    Unreachable { registry: String, problem: String },
    #[error("{what} is no WebAssembly component of the standard layout: {problem}")]
    NotAPlugin { what: String, problem: String },
    #[error("{what} has {size} bytes, more than the {most} that are taken")]
    TooLarge { what: String, size: u64, most: u64 },
    #[error("{what}: the bytes have the digest {actual}, not {expected}: they were changed or damaged on the way")]
    WrongDigest { what: String, expected: String, actual: String },
    #[error("the bundle cannot be read: {0}")]
    Bundle(String),
    #[error("{registry}: {problem}")]
    Registry { registry: String, problem: String },
    #[error("{doing}: {source}")]
    Io { doing: &'static str, source: std::io::Error },
}

impl OciError {
    pub(super) fn io(doing: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { doing, source }
    }

    /// An error of the client, as what the user can do about it.
    pub(super) fn of(registry: &str, what: &str, error: OciDistributionError) -> Self {
        use OciDistributionError as E;
        let registry = registry.to_owned();
        match error {
            E::UnauthorizedError { .. } | E::AuthenticationFailure(_) | E::ServerError { code: 401 | 403, .. } => {
                OciError::Denied { registry }
            }
            E::ImageManifestNotFoundError(_) | E::ServerError { code: 404, .. } => OciError::NotFound(what.to_owned()),
            E::RegistryError { envelope, .. } => {
                let has = |code: &[OciErrorCode]| envelope.errors.iter().any(|error| code.contains(&error.code));
                if has(&[OciErrorCode::ManifestUnknown, OciErrorCode::NameUnknown, OciErrorCode::NotFound]) {
                    OciError::NotFound(what.to_owned())
                } else if has(&[OciErrorCode::Unauthorized, OciErrorCode::Denied]) {
                    OciError::Denied { registry }
                } else {
                    OciError::Registry { registry, problem: envelope.to_string() }
                }
            }
            E::RequestError(error) if error.is_connect() || error.is_timeout() => {
                OciError::Unreachable { registry, problem: innermost(&error) }
            }
            E::RequestError(error) if error.status().is_some_and(|status| status == 404) => {
                OciError::NotFound(what.to_owned())
            }
            E::RequestError(error) if error.status().is_some_and(|status| status == 401 || status == 403) => {
                OciError::Denied { registry }
            }
            other => OciError::Registry { registry, problem: innermost(&other) },
        }
    }
}

/// The cause that says most: what lies around it repeats the address.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    last.to_string()
}
