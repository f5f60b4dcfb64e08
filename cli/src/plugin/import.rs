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
use noetl_contract::{Capability, CapabilitySet, Digest};
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
    /// What the server said it would have beyond the running version, and agreed to.
    agreed: CapabilitySet,
}

impl Step {
    /// What to grant when it is sent: what the server has agreed to beside what ran before, and what is new beside the
    /// versions of the same path that this import sent a moment ago, because they are what it may be compared with now.
    /// Had somebody else changed what runs in between, the server would ask again.
    fn grant(&self, earlier: &[Step]) -> Option<String> {
        let manifest = &self.component.manifest;
        let mut granted: Vec<Capability> = self.agreed.iter().collect();
        for step in earlier.iter().filter(|step| !step.done) {
            let before = &step.component.manifest;
            if before.path == manifest.path {
                granted.extend(manifest.capabilities.minus(before.capabilities).iter());
                granted.extend((!manifest.http.beyond(&before.http).is_empty()).then_some(Capability::HttpClient));
            }
        }
        let granted: CapabilitySet = granted.into_iter().collect();
        let names: Vec<&str> = granted.iter().map(|capability| capability.name()).collect();
        (!names.is_empty()).then(|| names.join(","))
    }
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
        for (place, step) in steps.iter().enumerate() {
            if !step.done && !self.dry_run {
                self.apply(&client, step, step.grant(&steps[..place]), context).await?;
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
        if !self.dry_run {
            for step in &steps {
                warn_of_interpreter(&client, step, context).await?;
            }
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
        let mut agreed = CapabilitySet::EMPTY;
        if !done {
            let options = self.options(bundled, self.grant.clone(), true);
            let answer = send(client, &component, &options, &context.output).await.map_err(|mut refusal| {
                refusal.message = format!("{}: {}; nothing was imported", bundled.name, refusal.message);
                match refusal.code() {
                    "needs_grant" => refusal.next("look at what it asks for, then import with --grant"),
                    "signature_required" => refusal.next(sign_before(&component)),
                    _ => refusal,
                }
            })?;
            agreed = agreed_to(&answer);
        }
        Ok(Step { component, bundled: bundled.clone(), done, agreed })
    }

    async fn apply(&self, client: &Client, step: &Step, grant: Option<String>, context: &Context) -> Outcome {
        let options = self.options(&step.bundled, grant, false);
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

/// A bundle is taken as it is, so what it lacks is added where it was made.
fn sign_before(component: &Component) -> String {
    let (path, version) = (&component.manifest.path, &component.manifest.version);
    format!(
        "sign it where it comes from, before it is exported: noetl plugin sign {path}@{version} --key NAME, then noetl \
         plugin export ... --output FILE"
    )
}

/// What the push that kept nothing would have added; new hosts are more of `http-client`.
fn agreed_to(answer: &Value) -> CapabilitySet {
    let added =
        answer["added"].as_array().into_iter().flatten().filter_map(|name| name.as_str()?.parse::<Capability>().ok());
    let reaches_more = answer["added_hosts"].as_array().is_some_and(|hosts| !hosts.is_empty());
    added.chain(reaches_more.then_some(Capability::HttpClient)).collect()
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

/// Says so when source text was run by another interpreter where it comes from: the bytes are the same, and what they do
/// may not be.
async fn warn_of_interpreter(client: &Client, step: &Step, context: &Context) -> Outcome {
    if step.bundled.interpreter.is_none() {
        return Ok(());
    }
    let shown = client.get(&super::at(&step.component.manifest.path), &[]).await?;
    if let Some(warning) = other_interpreter(step, &shown) {
        context.output.warn(warning);
    }
    Ok(())
}

fn other_interpreter(step: &Step, shown: &Value) -> Option<String> {
    let there = step.bundled.interpreter.as_deref()?;
    let (path, version) = (&step.component.manifest.path, step.component.manifest.version.to_string());
    let mut entries = shown["versions"].as_array()?.iter().map(entry);
    let here = entries.find(|known| known["version"] == version.as_str())?["interpreter"].as_str()?;
    (here != there).then(|| {
        format!(
            "{path} {version} was run by another interpreter where it comes from ({}), and is run by {} here: play its \
             cases with `noetl plugin test`",
            short_digest(there),
            short_digest(here)
        )
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin::component::tests::empty;

    fn step(path: &str, capabilities: &str, answer: &Value, done: bool) -> Step {
        let manifest =
            format!("path = \"{path}\"\nversion = \"1.0.0\"\nworld = \"transform\"\ncapabilities = [{capabilities}]\n");
        let component = empty(&manifest);
        let (name, digest) = (path.to_owned(), component.digest());
        let bundled =
            Bundled { name, channels: Vec::new(), ring: None, interpreter: None, digest, attestations: Vec::new() };
        Step { component, bundled, done, agreed: agreed_to(answer) }
    }

    #[test]
    fn a_version_is_granted_what_the_server_agreed_to_and_no_more() {
        let nothing = json!({ "added": [], "added_hosts": [] });
        let with_kv = json!({ "added": ["kv"], "added_hosts": [] });
        let with_hosts = json!({ "added": [], "added_hosts": ["example.com"] });
        assert_eq!(step("acme/a", "\"log\", \"kv\"", &nothing, false).grant(&[]), None);
        assert_eq!(step("acme/a", "\"log\", \"kv\"", &with_kv, false).grant(&[]).as_deref(), Some("kv"));
        assert_eq!(step("acme/a", "\"log\"", &with_hosts, false).grant(&[]).as_deref(), Some("http-client"));
    }

    #[test]
    fn another_interpreter_is_told_and_the_same_is_not() {
        let mut step = step("acme/a", "\"log\"", &json!({}), false);
        let shown = json!({ "versions": [{ "entry": { "version": "1.0.0", "interpreter": "sha256:aa" } }] });
        assert_eq!(other_interpreter(&step, &shown), None, "it is not source text, or the bundle is an older one");
        step.bundled.interpreter = Some("sha256:aa".to_owned());
        assert_eq!(other_interpreter(&step, &shown), None);
        step.bundled.interpreter = Some("sha256:bb".to_owned());
        assert!(other_interpreter(&step, &shown).is_some_and(|text| text.contains("acme/a 1.0.0")));
    }

    #[test]
    fn what_this_import_has_sent_before_is_no_reason_to_ask_again() {
        let nothing = json!({ "added": [], "added_hosts": [] });
        let later = step("acme/a", "\"log\", \"kv\"", &nothing, false);
        let earlier = |path: &str, done: bool| [step(path, "\"log\"", &nothing, done)];
        assert_eq!(later.grant(&earlier("acme/a", false)).as_deref(), Some("kv"));
        assert_eq!(later.grant(&earlier("acme/a", true)), None, "it was there when the server was asked");
        assert_eq!(later.grant(&earlier("acme/b", false)), None);
    }
}
