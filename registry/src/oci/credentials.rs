//! Credentials from the file that `docker login` and its sisters write, credential helpers included.
//!
//! They are asked for by the name of the registry and sent to that registry alone.

use std::fs::File;
use std::io::{BufReader, ErrorKind};
use std::path::Path;

use docker_credential::{CredentialRetrievalError, DockerCredential, get_credential_from_reader};
use oci_client::secrets::RegistryAuth;

use super::error::OciError;

/// Where the docker configuration has a public registry's credentials.
const DOCKER_HUB: (&str, &str) = ("docker.io", "https://index.docker.io/v1/");

/// How to say who asks.
pub struct Credentials(pub(super) RegistryAuth);

impl Credentials {
    pub fn nobody() -> Self {
        Self(RegistryAuth::Anonymous)
    }

    /// Those of a registry in a `config.json`; nobody's when the file or the registry is not there.
    pub fn from_docker_config(file: &Path, registry: &str) -> Result<Self, OciError> {
        let wrong = |problem: String| OciError::Credentials { registry: registry.to_owned(), problem };
        let opened = match File::open(file) {
            Ok(opened) => opened,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::nobody()),
            Err(error) => return Err(wrong(format!("{}: {error}", file.display()))),
        };
        let server = if registry == DOCKER_HUB.0 { DOCKER_HUB.1 } else { registry };
        match get_credential_from_reader(BufReader::new(opened), server) {
            Ok(DockerCredential::UsernamePassword(name, password)) => Ok(Self(RegistryAuth::Basic(name, password))),
            // A refresh token of OAuth: it is to be exchanged for another, and is no word for the registry itself.
            Ok(DockerCredential::IdentityToken(_)) => Err(wrong(format!(
                "they are an identity token (OAuth), and such logins are not supported: run `docker login {registry}` \
                 with a user name and a password or an access token"
            ))),
            Err(CredentialRetrievalError::NoCredentialConfigured) => Ok(Self::nobody()),
            Err(error) if has_none(&error) => Ok(Self::nobody()),
            // What a helper said may hold a secret.
            Err(CredentialRetrievalError::HelperFailure { helper, .. }) => {
                Err(wrong(format!("the helper `{helper}` failed")))
            }
            Err(error) => Err(wrong(format!("{}: {error}", file.display()))),
        }
    }
}

/// What helpers say of a registry nobody logged in to. They end with a failure then, as they do when they are broken.
const NONE_THERE: &str = "credentials not found";

/// Whether a helper works and has nothing for that registry, as is usual for public ones where a store keeps all logins.
pub(super) fn has_none(error: &CredentialRetrievalError) -> bool {
    let CredentialRetrievalError::HelperFailure { stdout, stderr, .. } = error else { return false };
    [stdout, stderr].iter().any(|said| said.to_ascii_lowercase().contains(NONE_THERE))
}
