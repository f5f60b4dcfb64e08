//! Credentials from the file that `docker login` and its sisters write, credential helpers included.
//!
//! They are asked for by the name of the registry and sent to that registry alone. A helper has a time to answer in
//! ([`helper`]).

mod helper;

use std::io::ErrorKind;
use std::path::Path;

use docker_credential::{CredentialRetrievalError, DockerCredential, get_credential_from_reader};
use oci_client::secrets::RegistryAuth;
use serde_json::Value;

use self::helper::HelperError;
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
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::nobody()),
            Err(error) => return Err(wrong(format!("{}: {error}", file.display()))),
        };
        let server = if registry == DOCKER_HUB.0 { DOCKER_HUB.1 } else { registry };
        match find(&text, server) {
            Ok(DockerCredential::UsernamePassword(name, password)) => Ok(Self(RegistryAuth::Basic(name, password))),
            // A refresh token of OAuth: it is to be exchanged for another, and is no word for the registry itself.
            Ok(DockerCredential::IdentityToken(_)) => Err(wrong(format!(
                "they are an identity token (OAuth), and such logins are not supported: run `docker login {registry}` \
                 with a user name and a password or an access token"
            ))),
            Err(Missing::File(CredentialRetrievalError::NoCredentialConfigured)) => Ok(Self::nobody()),
            Err(Missing::File(error)) => Err(wrong(format!("{}: {error}", file.display()))),
            Err(Missing::Helper(HelperError::Failed(error))) if has_none(&error) => Ok(Self::nobody()),
            // What a helper said may hold a secret.
            Err(Missing::Helper(HelperError::Failed(CredentialRetrievalError::HelperFailure { helper, .. }))) => {
                Err(wrong(format!("the helper `{helper}` failed")))
            }
            Err(Missing::Helper(error)) => Err(wrong(error.to_string())),
        }
    }
}

/// Why there is no credential.
enum Missing {
    File(CredentialRetrievalError),
    Helper(HelperError),
}

/// What a configuration has for a server, in docker's own order: the server's helper, what stands in the file, the store
/// of all logins. Helpers are run here, because the crate that reads the file would wait for them without end.
fn find(text: &str, server: &str) -> Result<DockerCredential, Missing> {
    let unreadable = |_| Missing::File(CredentialRetrievalError::ConfigReadError);
    let mut config: Value = serde_json::from_str(text).map_err(unreadable)?;
    let mut taken = |key: &str| config.as_object_mut().and_then(|fields| fields.remove(key)).unwrap_or_default();
    let (helpers, store) = (taken("credHelpers"), taken("credsStore"));
    let named = |name: Option<&Value>| name.and_then(Value::as_str).filter(|name| !name.is_empty()).map(str::to_owned);
    if let Some(helper) = named(helpers.get(server)) {
        return helper::ask(&helper, server).map_err(Missing::Helper);
    }
    match (get_credential_from_reader(config.to_string().as_bytes(), server), named(Some(&store))) {
        (Err(CredentialRetrievalError::NoCredentialConfigured), Some(store)) => {
            helper::ask(&store, server).map_err(Missing::Helper)
        }
        (found, _) => found.map_err(Missing::File),
    }
}

/// What helpers say of a registry nobody logged in to. They end with a failure then, as they do when they are broken.
const NONE_THERE: &str = "credentials not found";

/// Whether a helper works and has nothing for that registry, as is usual for public ones where a store keeps all logins.
pub(super) fn has_none(error: &CredentialRetrievalError) -> bool {
    let CredentialRetrievalError::HelperFailure { stdout, stderr, .. } = error else { return false };
    [stdout, stderr].iter().any(|said| said.to_ascii_lowercase().contains(NONE_THERE))
}
