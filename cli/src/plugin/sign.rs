//! `noetl plugin sign`: somebody stands by a component, in a file or on the server.
//!
//! The bytes are fetched and their digest is computed here: what is signed is what was seen, not what a server says. The
//! same goes for what the server has recorded about them: it is verified before it is carried anywhere, and never signed.

use std::path::Path;

use clap::Args;
use noetl_contract::{PluginPath, Version};
use noetl_registry::signatures::Envelope;
use serde_json::{Value, json};

use super::attestations;
use super::component::Component;
use crate::args::Context;
use crate::client::Client;
use crate::failure::{Failure, Outcome};
use crate::key::store::KeyStore;
use crate::output::cell;

#[derive(Debug, Args)]
pub struct Sign {
    /// A component file, or PATH@VERSION on the server.
    #[arg(value_name = "FILE|PATH@VERSION")]
    what: String,
    /// One of your keys, or the file of a key.
    #[arg(long, value_name = "NAME|FILE")]
    key: String,
    /// Why, for the history.
    #[arg(long, default_value = "")]
    reason: String,
}

impl Sign {
    pub async fn run(self, context: &Context) -> Outcome {
        let key = KeyStore::of_user()?.open(&self.key)?;
        let signer = key.public();
        let file = Path::new(&self.what);
        if file.is_file() {
            let mut component = Component::read(file)?;
            attestations::sign(&mut component, &key)?;
            attestations::add_beside(file, &component)?;
            let value = json!({ "file": file, "digest": component.digest(), "signer": signer });
            context.output.result(&value, |_| format!("{} is signed by {signer}", file.display()));
            return Ok(());
        }
        let (path, version) = on_server(&self.what)?;
        let client = context.client()?;
        let mut component = from_server(&client, &path, &version).await?;
        attestations::sign(&mut component, &key)?;
        let body = json!({ "version": version, "attestations": component.attestations, "reason": self.reason });
        let answer = client.post(&super::verb(&path, "attest"), &body).await?;
        context.output.result(&answer, |_| format!("{path} {version} is signed by {}", cell(&answer["signers"])));
        Ok(())
    }
}

/// A version that is named in full.
pub fn on_server(what: &str) -> Outcome<(PluginPath, Version)> {
    let wrong = |why: &str| {
        Failure::usage(format!("`{what}` is neither a file nor a version on the server: {why}"))
            .next("use a component file, or PATH@VERSION such as acme/greeter@1.0.0")
    };
    let (path, version) = what.split_once('@').ok_or_else(|| wrong("there is no such file, and no `@`"))?;
    let path = PluginPath::new(path).map_err(|error| wrong(&error.to_string()))?;
    Ok((path, version.parse().map_err(|error: semver::Error| wrong(&error.to_string()))?))
}

/// The bytes of a version with what is said about them. A server verifies what it records, so what does not hold here
/// was changed since, or the server is not to be trusted.
pub async fn from_server(client: &Client, path: &PluginPath, version: &Version) -> Outcome<Component> {
    let bytes = super::fetch::download(client, path, Some(version), None).await?;
    let mut component = Component::parse(format!("{path} {version}"), bytes)?;
    let number = version.to_string();
    let answer = client.get(&super::verb(path, "attestations"), &[("version", Some(&number))]).await?;
    let said = answer.get("attestations").cloned().unwrap_or(Value::Null);
    let wrong = |error: String| Failure::failed(format!("{path} {version}: the server's attestations: {error}"));
    let said: Vec<Envelope> = serde_json::from_value(said).map_err(|error| wrong(error.to_string()))?;
    let digest = component.digest();
    for envelope in &said {
        envelope.open_for(&digest).map_err(|error| wrong(error.to_string()))?;
    }
    component.attestations = said;
    Ok(component)
}
