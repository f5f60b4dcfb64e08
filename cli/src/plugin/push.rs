//! `noetl plugin push`: a project, a component or an artefact of a registry becomes a version in the catalog. With a
//! second word, `oci://...`, it goes to that registry instead.
//!
//! What the new version may do that the running one may not is shown before anything is sent. The server decides
//! whether that needs a grant: asking here as well would only let the two drift apart. When it says so, a person at
//! a terminal is asked; anything else gets exit code 5 and the exact command to run.

use std::io::Write as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use noetl_contract::manifest::{HostPattern, HttpPolicy};
use noetl_contract::{CapabilitySet, PluginPath, Version};
use noetl_registry::oci::OciReference;
use reqwest::Method;
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE};
use serde_json::{Value, json};

use super::changes::Changes;
use super::component::Component;
use super::oci::{self, OciOptions};
use super::pack::{FileManifest, is_source_file};
use crate::args::Context;
use crate::client::Client;
use crate::failure::{Exit, Failure, Outcome};
use crate::key::store::KeyStore;
use crate::output::{Output, Paint, cell, short_digest, size};

const CHUNK: usize = 64 << 10;

#[derive(Debug, Args)]
pub struct Push {
    /// A project's folder, which is built first, a file of Python or JavaScript, a component file, or an artefact in a
    /// registry.
    #[arg(value_name = "DIR|FILE|oci://...")]
    what: String,
    /// A registry to push to instead of the server: oci://REGISTRY/REPOSITORY[:TAG]. What is pushed can then be
    /// PATH@VERSION on the server too.
    #[arg(value_name = "oci://...")]
    to: Option<String>,
    /// For a single file of source text: where it lives in the catalog, such as `acme/orders/enrich`.
    #[arg(long)]
    path: Option<PluginPath>,
    #[command(flatten)]
    options: PushOptions,
    #[command(flatten)]
    registry: OciOptions,
}

/// What a push can say besides the bytes.
#[derive(Debug, Clone, Args)]
pub struct PushOptions {
    /// The channel that moves to the version [default: stable].
    #[arg(long)]
    pub channel: Option<String>,
    /// Capabilities this version may have beyond those of the running one, separated by commas, or `all`.
    #[arg(long, value_name = "CAP,...|all", value_parser = grant_list)]
    pub grant: Option<String>,
    /// Trust it less than its path allows.
    #[arg(long, value_parser = ["pure", "user", "tenant", "system"])]
    pub ring: Option<String>,
    /// Sign it with one of your keys, or with the file of a key.
    #[arg(long, value_name = "NAME|FILE")]
    pub sign: Option<String>,
    /// Check everything and keep nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Why, for the history.
    #[arg(long)]
    pub reason: Option<String>,
}

impl Push {
    pub async fn run(self, context: &Context) -> Outcome {
        let output = context.output;
        let to = self.to.as_deref().map(oci::reference).transpose()?;
        let component = self.load(to.is_some(), context).await?;
        if let Some(to) = to {
            return publish(&component, to, &self.registry, &output).await;
        }
        let client = context.client()?;
        let before = running(&client, &component, self.options.channel.as_deref()).await?;
        announce(&component, before, &output);
        let mut options = self.options;
        let answer = match send(&client, &component, &options, &output).await {
            Err(refusal) if refusal.code() == "needs_grant" => {
                let wanted = wanted_grants(&refusal);
                if !output.is_interactive() || !agrees(&refusal, &wanted, output.stderr_paint()) {
                    return Err(with_command(refusal, Path::new(&self.what), &options, &wanted));
                }
                options.grant = Some(merged(options.grant.as_deref(), &wanted));
                send(&client, &component, &options, &output).await?
            }
            other => other?,
        };
        output.result(&answer, |paint| summary(&answer, paint));
        Ok(())
    }

    async fn load(&self, for_registry: bool, context: &Context) -> Outcome<Component> {
        let local = Path::new(&self.what);
        if self.path.is_some() && !is_source_file(local) {
            return Err(
                Failure::usage("--path is for a single file of source text").next("write `path` in plugin.toml")
            );
        }
        let mut component = if is_source_file(local) {
            load_file(local, self.path.as_ref(), for_registry, context).await?
        } else if OciReference::is_meant(&self.what) {
            oci::pull(&oci::reference(&self.what)?, &self.registry).await?.0
        } else if local.is_dir() {
            super::build::build(local, None, None, &context.output)?
        } else if for_registry && !local.exists() && self.what.contains('@') {
            let (path, version) = super::sign::on_server(&self.what)?;
            super::sign::from_server(&context.client()?, &path, &version).await?
        } else {
            Component::read(local)?
        };
        sign(&mut component, &self.options)?;
        Ok(component)
    }
}

/// Signs if that is asked for.
pub fn sign(component: &mut Component, options: &PushOptions) -> Outcome {
    match &options.sign {
        Some(name) => super::attestations::sign(component, &KeyStore::of_user()?.open(name)?),
        None => Ok(()),
    }
}

async fn publish(component: &Component, to: OciReference, registry: &OciOptions, output: &Output) -> Outcome {
    let (to, published) = oci::publish(component, to, registry).await?;
    let manifest = &component.manifest;
    let value = json!({
        "path": manifest.path, "version": manifest.version, "reference": to.to_string(),
        "digest": published.component, "manifest_digest": published.manifest,
        "attestations": component.attestations.len(),
    });
    output.result(&value, |paint| {
        let (path, version) = (&manifest.path, &manifest.version);
        format!(
            "{path} {version} {} {to}\n  digest {}, artefact {}",
            paint.good("is at"),
            published.component,
            published.manifest
        )
    });
    Ok(())
}

/// Where a file lives of which nobody says it: with the tenant of the token, who may push nowhere else. None where that is
/// said, or the token is an administrator's.
pub async fn own_path(file: &Path, path: Option<&PluginPath>, client: &Client) -> Outcome<Option<PluginPath>> {
    if path.is_some() || !is_source_file(file) {
        return Ok(None);
    }
    let read = FileManifest::read(file, None)?;
    if read.placed {
        return Ok(None);
    }
    let token = client.get("/api/whoami", &[]).await?;
    Ok(token["tenant"].as_str().and_then(|tenant| PluginPath::new(format!("{tenant}/{}", read.name())).ok()))
}

/// A file that says no version of its own gets the one after the newest there is on the server; a registry is not asked,
/// since what has a version there may be anybody's.
async fn load_file(
    file: &Path,
    path: Option<&PluginPath>,
    for_registry: bool,
    context: &Context,
) -> Outcome<Component> {
    let own = if for_registry { None } else { own_path(file, path, &context.client()?).await? };
    let read = FileManifest::read(file, path.or(own.as_ref()))?;
    if read.versioned {
        return super::pack::pack(file, &read.text);
    }
    if for_registry {
        return Err(read.needs_version(file));
    }
    let known = super::watch::known_versions(&context.client()?, &read.manifest.path).await?;
    let version = following(&known).unwrap_or(read.manifest.version);
    super::pack::pack(file, &super::watch::with_version(&read.text, &version)?)
}

/// `1.2.3` is followed by `1.2.4`; versions of `watch` are not counted.
fn following(known: &[Version]) -> Option<Version> {
    let newest = known.iter().filter(|version| version.pre.is_empty()).max()?;
    Some(Version::new(newest.major, newest.minor, newest.patch + 1))
}

/// What the version that serves now may use.
struct Running {
    capabilities: CapabilitySet,
    http: HttpPolicy,
}

/// None when nothing serves yet.
async fn running(client: &Client, component: &Component, channel: Option<&str>) -> Outcome<Option<Running>> {
    let channel = channel.unwrap_or("stable");
    match client.get(&super::at(&component.manifest.path), &[]).await {
        Ok(shown) => Ok(super::show::capabilities_on(&shown, channel)
            .map(|capabilities| Running { capabilities, http: super::show::hosts_on(&shown, channel) })),
        Err(failure) if failure.exit == Exit::NotFound => Ok(None),
        Err(failure) => Err(failure),
    }
}

fn announce(component: &Component, before: Option<Running>, output: &Output) {
    if output.json {
        return;
    }
    let manifest = &component.manifest;
    let paint = output.stderr_paint();
    output.say(format_args!("{} {}", paint.bold(&manifest.path), paint.bold(&manifest.version)));
    let Some(before) = before else {
        output.say(format_args!("  first version; it asks for {}", manifest.capabilities));
        let hosts: Vec<_> = manifest.http.allow.iter().map(HostPattern::as_str).collect();
        if !hosts.is_empty() {
            output.say(format_args!("  it reaches {}", hosts.join(", ")));
        }
        return;
    };
    let changes = Changes::of_capabilities(before.capabilities, manifest.capabilities);
    let names = |policy: &HttpPolicy| policy.allow.iter().map(ToString::to_string).collect::<Vec<_>>();
    let hosts = Changes::between(names(&before.http), names(&manifest.http));
    if changes.is_empty() && hosts.is_empty() {
        return output.say("  asks for the same capabilities and hosts as the running version");
    }
    for (what, changes) in [("capabilities", changes), ("hosts", hosts)] {
        if !changes.is_empty() {
            output.say(format_args!("  {what}, compared with the running version:"));
            changes.lines(paint).iter().for_each(|line| output.say(line));
        }
    }
}

/// Sends the bytes; the answer describes the version.
pub async fn send(client: &Client, component: &Component, options: &PushOptions, output: &Output) -> Outcome<Value> {
    let bytes = Bytes::from(component.bytes.clone());
    let total = bytes.len();
    let bar = if output.shows_progress() { progress(total as u64) } else { ProgressBar::hidden() };
    let moving = bar.clone();
    let chunks = (0..total).step_by(CHUNK).map(move |start| {
        let chunk = bytes.slice(start..(start + CHUNK).min(total));
        moving.inc(chunk.len() as u64);
        Ok::<_, std::io::Error>(chunk)
    });
    let query = [
        ("dry_run", options.dry_run.then_some("true")),
        ("channel", options.channel.as_deref()),
        ("ring", options.ring.as_deref()),
        ("grant", options.grant.as_deref()),
        ("reason", options.reason.as_deref()),
    ];
    let mut request = client
        .request(Method::POST, "/api/plugins", &query)
        .header(CONTENT_TYPE, "application/wasm")
        .header(CONTENT_LENGTH, total)
        .body(reqwest::Body::wrap_stream(futures::stream::iter(chunks)));
    for envelope in &component.attestations {
        request = request.header("noetl-attestation", STANDARD.encode(envelope.to_json()));
    }
    let answer = client.send(request).await;
    bar.finish_and_clear();
    client.json(answer.map_err(to_be_signed)?).await
}

/// What a push was refused with was not kept, so the next push has to bring the signature.
fn to_be_signed(refusal: Failure) -> Failure {
    match refusal.code() {
        "signature_required" => refusal.next("push it again with --sign NAME; `noetl key list` shows your keys"),
        _ => refusal,
    }
}

fn progress(total: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("  sending {wide_bar} {bytes}/{total_bytes} {bytes_per_sec}");
    ProgressBar::new(total).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// The capabilities the server wants granted.
pub fn wanted_grants(refusal: &Failure) -> Vec<String> {
    let added = refusal.problem.as_ref().and_then(|problem| problem["added"].as_array());
    added.into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

fn agrees(refusal: &Failure, wanted: &[String], paint: Paint) -> bool {
    let mut stderr = std::io::stderr();
    let question = paint.bold(format_args!("grant {}? [y/N] ", wanted.join(", ")));
    let _ = write!(stderr, "{}\n{question}", crate::output::printable(&refusal.message));
    let _ = stderr.flush();
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}

/// The refusal, with the command that would be accepted.
fn with_command(refusal: Failure, what: &Path, options: &PushOptions, wanted: &[String]) -> Failure {
    let mut command = format!("noetl plugin push {}", quoted(&what.display().to_string()));
    let grant = merged(options.grant.as_deref(), wanted);
    let all = [
        ("channel", &options.channel),
        ("ring", &options.ring),
        ("grant", &Some(grant)),
        ("sign", &options.sign),
        ("reason", &options.reason),
    ];
    for (name, value) in all {
        if let Some(value) = value {
            command.push_str(&format!(" --{name} {}", quoted(value)));
        }
    }
    refusal.next(format!("if that is meant, run: {command}"))
}

fn merged(given: Option<&str>, wanted: &[String]) -> String {
    let mut names: Vec<&str> = given.into_iter().flat_map(|given| given.split(',')).collect();
    wanted.iter().for_each(|name| {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    });
    names.join(",")
}

/// `text` as one word of a shell.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | ',' | '@' | '+' | ':');
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

pub fn grant_list(text: &str) -> Result<String, String> {
    if text == "all" { Ok(text.to_owned()) } else { super::call::capability_list(text) }
}

fn summary(answer: &Value, paint: Paint) -> String {
    let created = match (&answer["dry_run"], &answer["created"]) {
        (Value::Bool(true), _) => "would be taken",
        (_, Value::Bool(false)) => "was there already",
        _ => "is live",
    };
    let mut text = format!(
        "{} {} {} on {} (ring {}, {}, {})",
        cell(&answer["path"]),
        cell(&answer["version"]),
        paint.good(created),
        cell(&answer["channel"]),
        cell(&answer["ring"]),
        answer["size"].as_u64().map_or_else(|| cell(&answer["size"]), size),
        short_digest(&cell(&answer["digest"]))
    );
    if answer["signers"].as_array().is_some_and(|signers| !signers.is_empty()) {
        text.push_str(&format!("\n  signed by {}", cell(&answer["signers"])));
    }
    let previous = answer["previous"].as_str().filter(|previous| Some(*previous) != answer["version"].as_str());
    if let Some(previous) = previous {
        text.push_str(&format!("\n  before: {previous}; back with `noetl plugin rollback {}`", cell(&answer["path"])));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn options() -> PushOptions {
        PushOptions {
            channel: Some("canary".into()),
            grant: Some("kv".into()),
            ring: None,
            sign: None,
            dry_run: false,
            reason: Some("it's new".into()),
        }
    }

    #[test]
    fn a_refusal_comes_with_the_exact_command() {
        let mut refusal = Failure::new(Exit::Conflict, "needs more");
        refusal.problem = Some(Box::new(json!({ "code": "needs_grant", "added": ["http-client", "payload"] })));
        let wanted = wanted_grants(&refusal);
        let failure = with_command(refusal, Path::new("my plugin"), &options(), &wanted);
        assert_eq!(
            failure.next.expect("a command"),
            "if that is meant, run: noetl plugin push 'my plugin' --channel canary --grant kv,http-client,payload \
             --reason 'it'\\''s new'"
        );
        assert_eq!(failure.exit, Exit::Conflict);
    }

    #[test]
    fn grants_are_checked_and_not_repeated() {
        assert_eq!(grant_list("all").expect("all"), "all");
        assert!(grant_list("everything").is_err());
        assert_eq!(merged(Some("kv"), &["kv".into(), "log".into()]), "kv,log");
        assert_eq!(merged(None, &["log".into()]), "log");
    }
}
