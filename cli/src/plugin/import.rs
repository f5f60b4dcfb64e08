//! `noetl plugin import`: versions, channels and signatures from one file into a server.
//!
//! Nothing is changed before everything was checked: every digest in the file, and then, by a push that keeps nothing,
//! whether the server would take each version: its signatures, its grants, its ring, its contract. Importing again
//! changes nothing. A connection that breaks in the middle leaves whole versions; importing again does the rest.
//!
//! A version that no channel served goes to the channel `imported`, so that it can be called and pinned and nobody's
//! calls move to it.

use std::path::PathBuf;

use clap::Args;
use noetl_contract::Digest;
use noetl_registry::oci::{Bundle, Bundled};
use noetl_registry::signatures::about;
use serde_json::{Value, json};

use super::component::Component;
use super::oci::failed;
use super::push::{PushOptions, send};
use super::show::entry;
use crate::args::Context;
use crate::client::Client;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{cell, short_digest, table};

/// Where versions go that no channel served.
const ASIDE: &str = "imported";

#[derive(Debug, Args)]
pub struct Import {
    /// A file that `noetl plugin export` wrote, or another OCI archive of components.
    file: PathBuf,
    /// Capabilities the versions may have beyond those of the running ones, separated by commas, or `all`.
    #[arg(long, value_name = "CAP,...|all", value_parser = super::push::grant_list)]
    grant: Option<String>,
    /// Check everything and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Why, for the history.
    #[arg(long)]
    reason: Option<String>,
}

/// One version, checked.
struct Step {
    component: Component,
    bundled: Bundled,
    /// The server has these bytes, these signatures, and its channels point to them.
    done: bool,
}

impl Import {
    pub async fn run(self, context: &Context) -> Outcome {
        let folder =
            tempfile::tempdir().map_err(|error| Failure::failed(format!("make a temporary folder: {error}")))?;
        let bundle = Bundle::open(&self.file, folder.path()).map_err(failed)?;
        let client = context.client()?;
        let mut steps = Vec::new();
        for bundled in ordered(&bundle)? {
            steps.push(self.check(&client, &bundle, bundled, context).await?);
        }
        let mut lines = Vec::new();
        for step in &steps {
            if !step.done && !self.dry_run {
                self.apply(&client, step, context).await?;
            }
            let what = if step.done {
                "was there"
            } else if self.dry_run {
                "would be taken"
            } else {
                "imported"
            };
            lines.push(json!({
                "path": step.component.manifest.path, "version": step.component.manifest.version,
                "channels": step.bundled.channels, "digest": step.bundled.digest, "outcome": what,
            }));
        }
        context.output.result(&json!({ "versions": lines }), |_| {
            let cells = lines.iter().map(|line| {
                let [path, version, channels, digest, outcome] =
                    ["path", "version", "channels", "digest", "outcome"].map(|name| cell(&line[name]));
                [path, version, channels, short_digest(&digest), outcome]
            });
            table(["path", "version", "channels", "digest", "outcome"], cells)
        });
        Ok(())
    }

    /// Whether the server takes it, or has it.
    async fn check(&self, client: &Client, bundle: &Bundle, bundled: &Bundled, context: &Context) -> Outcome<Step> {
        let component = read(bundle, bundled)?;
        let done = is_done(client, &component, bundled).await?;
        if !done {
            let options = self.options(bundled, self.grant.clone(), true);
            send(client, &component, &options, &context.output).await.map_err(|mut refusal| {
                refusal.message = format!("{}: {}; nothing was imported", bundled.name, refusal.message);
                match refusal.code() {
                    "needs_grant" => refusal.next("look at what it asks for, then import with --grant"),
                    _ => refusal,
                }
            })?;
        }
        Ok(Step { component, bundled: bundled.clone(), done })
    }

    async fn apply(&self, client: &Client, step: &Step, context: &Context) -> Outcome {
        // The server has agreed to its capabilities beside what ran before; beside what was imported a moment ago, the
        // question does not come up again.
        let options = self.options(&step.bundled, Some("all".to_owned()), false);
        send(client, &step.component, &options, &context.output).await?;
        let manifest = &step.component.manifest;
        for channel in step.bundled.channels.iter().skip(1) {
            let body = json!({ "channel": channel, "version": manifest.version, "reason": self.reason() });
            client.post(&super::verb(&manifest.path, "channel"), &body).await?;
        }
        Ok(())
    }

    fn options(&self, bundled: &Bundled, grant: Option<String>, dry_run: bool) -> PushOptions {
        PushOptions {
            channel: Some(bundled.channels.first().cloned().unwrap_or_else(|| ASIDE.to_owned())),
            grant,
            ring: bundled.ring.clone(),
            sign: None,
            dry_run,
            reason: Some(self.reason()),
        }
    }

    fn reason(&self) -> String {
        self.reason.clone().unwrap_or_else(|| {
            let name = self.file.file_name().unwrap_or_default().to_string_lossy();
            format!("imported from {name}")
        })
    }
}

fn read(bundle: &Bundle, bundled: &Bundled) -> Outcome<Component> {
    let bytes = bundle.component(bundled).map_err(failed)?;
    let mut component = Component::parse(bundled.name.clone(), bytes.to_vec())?;
    component.attestations = bundled.attestations.clone();
    Ok(component)
}

/// By path, and earlier versions first, as they came into being.
fn ordered(bundle: &Bundle) -> Outcome<Vec<&Bundled>> {
    let mut keyed = Vec::new();
    for bundled in bundle.versions() {
        let manifest = read(bundle, bundled)?.manifest;
        keyed.push(((manifest.path, manifest.version), bundled));
    }
    keyed.sort_by(|(a, _), (b, _)| a.cmp(b));
    if let Some(twice) = keyed.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let (path, version) = &twice[0].0;
        return Err(Failure::failed(format!("the bundle has {path} {version} twice; nothing was imported")));
    }
    Ok(keyed.into_iter().map(|(_, bundled)| bundled).collect())
}

/// Whether the server has the bytes and the signatures, and its channels point there.
async fn is_done(client: &Client, component: &Component, bundled: &Bundled) -> Outcome<bool> {
    let shown = match client.get(&super::at(&component.manifest.path), &[]).await {
        Ok(shown) => shown,
        Err(failure) if failure.exit == Exit::NotFound => return Ok(false),
        Err(failure) => return Err(failure),
    };
    let version = component.manifest.version.to_string();
    let rows = shown["versions"].as_array().cloned().unwrap_or_default();
    Ok(rows.iter().any(|row| {
        let known = entry(row);
        let same = known["version"] == version.as_str() && known["digest"] == bundled.digest.to_string();
        same && is_signed_as(known, &bundled.digest, bundled)
    }) && bundled.channels.iter().all(|channel| shown["channels"][channel] == version.as_str()))
}

fn is_signed_as(known: &Value, digest: &Digest, bundled: &Bundled) -> bool {
    let known: Vec<&str> = known["signers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let (signers, _) = about(digest, &bundled.attestations);
    signers.iter().all(|signer| known.contains(&signer.to_string().as_str()))
}
