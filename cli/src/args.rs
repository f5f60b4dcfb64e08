//! The command line: global options and the list of commands. Each command's own options stand in its file.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::client::{Client, Target};
use crate::failure::{EXIT_HELP, Failure, Outcome};
use crate::output::{Color, Output};
use crate::{config, credential, executions, key, log, playbook, plugin, run, serve, token, tool};

#[derive(Debug, Parser)]
#[command(name = "noetl", version, about = "Run playbooks and a noetl server, and work with its plugins.", after_help = EXIT_HELP)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Data folder of the server [default: $XDG_DATA_HOME/noetl or ~/.local/share/noetl].
    #[arg(long, global = true, value_name = "DIR", env = "NOETL_DATA")]
    pub data: Option<PathBuf>,
    /// Address of the server [default: the one running on the data folder, else http://127.0.0.1:8082].
    #[arg(long, global = true, value_name = "URL", env = "NOETL_SERVER")]
    pub server: Option<String>,
    /// Token to use [default: the administrator's in the data folder, on this machine only].
    #[arg(long, global = true, value_name = "TOKEN", env = "NOETL_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// Print data, and errors, as JSON.
    #[arg(long, global = true)]
    pub json: bool,
    /// When to colour.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub color: Color,
    /// Tell more about what is being done.
    #[arg(short, long, global = true)]
    pub verbose: bool,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a playbook in this process, without a server.
    Run(run::Run),
    /// Print everything that is wrong with playbooks, without a server.
    Validate(playbook::Validate),
    /// Print a JSON schema for editors.
    Schema(playbook::Schema),
    /// Put playbooks into the catalog of a server.
    Register(playbook::Register),
    /// Look into the catalog of playbooks.
    #[command(subcommand)]
    Catalog(playbook::Catalog),
    /// Start a playbook on a server.
    Exec(executions::Exec),
    /// Show one execution.
    Status(executions::Status),
    /// Show what happened in an execution.
    Events(executions::Events),
    /// List executions.
    Executions(executions::List),
    /// Cancel an execution.
    Cancel(executions::Cancel),
    /// Go on with a parked step.
    Resume(executions::Resume),
    /// Run a failed execution again from its failed step.
    Retry(executions::Retry),
    /// Tell what led an execution to where it is.
    Why(executions::Why),
    /// Rebuild the state of an execution at any moment, with checksums.
    Replay(executions::Replay),
    /// Run a server.
    Serve(serve::Serve),
    /// Make, push, call and manage plugins.
    #[command(subcommand)]
    Plugin(plugin::Command),
    /// Show which tools playbooks can call, and how.
    #[command(subcommand)]
    Tool(tool::Command),
    /// Make, list and revoke tokens.
    #[command(subcommand)]
    Token(token::Command),
    /// Keep, list, replace and delete credentials, and see who used them.
    #[command(subcommand)]
    Credential(credential::Command),
    /// Make and show the keys that sign plugins.
    #[command(subcommand)]
    Key(key::Command),
    /// Describe, show and check the server's configuration.
    #[command(subcommand)]
    Config(config::Command),
    /// Look after the server's log.
    #[command(subcommand)]
    Log(log::Command),
    /// Print a completion script for a shell.
    Completions { shell: clap_complete::Shell },
    /// Print the version of this command.
    Version,
    /// The child process in which a server compiles a component.
    #[command(hide = true)]
    Compile(Compile),
}

/// A job of the compiler process, as the server writes it.
#[derive(Debug, Args)]
pub struct Compile {
    /// What is done with it: `inspect`, or the engine its machine code is for.
    #[arg(long)]
    pub task: String,
    /// The component.
    #[arg(long)]
    pub input: PathBuf,
    /// Where the result goes.
    #[arg(long)]
    pub output: PathBuf,
    /// Most memory the process may use.
    #[arg(long)]
    pub memory_bytes: u64,
    /// Most processor time it may use.
    #[arg(long)]
    pub cpu_seconds: u64,
}

/// What every command gets.
#[derive(Debug, Clone)]
pub struct Context {
    pub output: Output,
    pub target: Target,
    /// Whether the data folder was named on the command line or by NOETL_DATA.
    data_is_given: bool,
}

/// A setting from the command line: key, value, and the flag's name.
pub type SettingFlag = (&'static str, String, &'static str);

impl Context {
    /// The data folder as a setting, where it was named.
    pub fn setting_flags(&self) -> Vec<SettingFlag> {
        let data = self.target.data.display().to_string();
        if self.data_is_given { vec![("server.data", data, "--data or NOETL_DATA")] } else { Vec::new() }
    }

    pub fn new(global: Global) -> Outcome<Self> {
        let output = Output::new(global.json, global.color, global.verbose);
        let data_is_given = global.data.is_some();
        let data = match global.data {
            Some(data) => data,
            None => default_data().ok_or_else(|| {
                Failure::usage("neither HOME nor XDG_DATA_HOME is set, so there is no usual data folder")
                    .next("name one with --data or NOETL_DATA")
            })?,
        };
        Ok(Self { output, target: Target { data, server: global.server, token: global.token }, data_is_given })
    }

    pub fn client(&self) -> Outcome<Client> {
        let client = Client::new(&self.target)?;
        self.output.detail(format_args!("server {}", client.base()));
        Ok(client)
    }
}

fn default_data() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("XDG_DATA_HOME").or_else(|| Some(set("HOME")?.join(".local/share"))).map(|base| base.join("noetl"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_and_option_is_described() {
        fn check(command: &clap::Command, name: &str) {
            for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
                let name = format!("{name} {}", sub.get_name());
                assert!(sub.get_about().is_some(), "{name} has no description");
                for option in sub.get_opts() {
                    assert!(option.get_help().is_some(), "{name} --{} has no help", option.get_id());
                }
                check(sub, &name);
            }
        }
        check(&Cli::command(), "noetl");
    }
}
