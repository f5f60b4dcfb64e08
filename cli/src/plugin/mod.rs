//! `noetl plugin`: everything an author and an operator do with plugins. One file a verb.

mod attestations;
mod bind;
mod build;
mod call;
mod changes;
mod channel;
mod component;
mod delete;
mod diff;
mod export;
mod fetch;
mod harness;
mod import;
mod list;
mod logs;
mod new;
mod oci;
mod pack;
mod pin;
mod pull;
mod push;
mod release;
mod rollback;
mod sbom;
mod show;
mod sign;
mod test;
mod watch;

use clap::Subcommand;
use noetl_contract::PluginPath;
use noetl_contract::manifest::docs;

use crate::args::Context;
use crate::failure::Outcome;
use crate::on_runtime;
pub use fetch::write_whole;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write a new plugin project that builds, tests and pushes as it is.
    New(new::New),
    /// Build a project into one component file.
    Build(build::Build),
    /// Push a project, a component or an artefact of a registry to the server; or a component to a registry.
    Push(push::Push),
    /// Play the recorded calls of a project, `cases/*.case`, on what it is now.
    Test(test::Test),
    /// List plugins.
    List(list::List),
    /// Show one plugin: versions, channels, pins, bindings, limits, history.
    Show(show::Show),
    /// Call a plugin.
    Call(call::Call),
    /// Show what a plugin logged.
    Logs(logs::Logs),
    /// Move a channel back to the version before, or to a given one.
    Rollback(rollback::Rollback),
    /// Pin a tenant to a version, or unpin it.
    Pin(pin::Pin),
    /// Let a tenant's own plugin serve in place of a service, or end that.
    Bind(bind::Bind),
    /// Move a channel to a version.
    Channel(channel::Channel),
    /// End a quarantine.
    Release(release::Release),
    /// Compare two plugins or versions: manifest, capabilities, imports, exports, size.
    Diff(diff::Diff),
    /// Rebuild and push a project on every change.
    Watch(watch::Watch),
    /// Download a component.
    Fetch(fetch::Fetch),
    /// Download a component from a registry.
    Pull(pull::Pull),
    /// Put versions, channels and signatures into one file, for a server that reaches no registry.
    Export(export::Export),
    /// Take versions, channels and signatures from such a file.
    Import(import::Import),
    /// Sign a component file, or a version that is on the server.
    Sign(sign::Sign),
    /// Print what a component is made of, as CycloneDX.
    Sbom(sbom::Sbom),
    /// Delete a version that nothing uses.
    Delete(delete::Delete),
    /// Print the JSON schema of plugin.toml, for editors.
    Schema,
    /// Print the reference of plugin.toml as markdown.
    ManifestDocs,
    /// Run a component for the SDK's test harness: JSON lines on stdin and stdout.
    #[command(hide = true)]
    Harness(harness::Harness),
}

pub fn run(command: Command, context: &Context) -> Outcome {
    match command {
        Command::New(new) => new.run(context),
        Command::Build(build) => build.run(context),
        Command::Harness(harness) => harness.run(),
        Command::Schema => {
            context.output.value(&docs::json_schema());
            Ok(())
        }
        Command::ManifestDocs => {
            context.output.raw(docs::markdown().as_bytes());
            Ok(())
        }
        Command::Push(push) => on_runtime(push.run(context)),
        Command::Test(test) => on_runtime(test.run(context)),
        Command::List(list) => on_runtime(list.run(context)),
        Command::Show(show) => on_runtime(show.run(context)),
        Command::Call(call) => on_runtime(call.run(context)),
        Command::Logs(logs) => on_runtime(logs.run(context)),
        Command::Rollback(rollback) => on_runtime(rollback.run(context)),
        Command::Pin(pin) => on_runtime(pin.run(context)),
        Command::Bind(bind) => on_runtime(bind.run(context)),
        Command::Channel(channel) => on_runtime(channel.run(context)),
        Command::Release(release) => on_runtime(release.run(context)),
        Command::Diff(diff) => on_runtime(diff.run(context)),
        Command::Watch(watch) => on_runtime(watch.run(context)),
        Command::Fetch(fetch) => on_runtime(fetch.run(context)),
        Command::Pull(pull) => on_runtime(pull.run(context)),
        Command::Export(export) => on_runtime(export.run(context)),
        Command::Import(import) => on_runtime(import.run(context)),
        Command::Sign(sign) => on_runtime(sign.run(context)),
        Command::Sbom(sbom) => on_runtime(sbom.run(context)),
        Command::Delete(delete) => on_runtime(delete.run(context)),
    }
}

/// The plugin's address in the API.
fn at(path: &PluginPath) -> String {
    format!("/api/plugins/{path}")
}

/// A verb's address: after a colon, which no path has.
fn verb(path: &PluginPath, verb: &str) -> String {
    format!("/api/plugins/{path}:{verb}")
}
