//! `noetl key`: the keys that sign plugins. The private half stays in its file; only public keys are ever printed.

pub mod store;

use std::path::PathBuf;

use clap::Subcommand;
use serde_json::json;

use crate::args::Context;
use crate::failure::Outcome;
use crate::output::table;
use store::KeyStore;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a key and print its public half.
    New {
        /// What you will know it by.
        name: String,
    },
    /// List your keys.
    List,
    /// Show one key: its public half and where it is kept.
    Show { name: String },
    /// Print the public half for other tools, as PEM.
    Export {
        name: String,
        /// The file to write instead of stdout.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

pub fn run(command: Command, context: &Context) -> Outcome {
    let (store, output) = (KeyStore::of_user()?, context.output);
    match command {
        Command::New { name } => {
            let public = store.create(&name)?;
            let file = store.file(&name)?;
            if !output.json {
                output
                    .say(format_args!("the private half is in {}: keep a copy, nobody can restore it", file.display()));
            }
            output.result(&json!({ "name": name, "key": public, "file": file }), |_| public.to_string());
        }
        Command::List => {
            let keys = store.list()?;
            let rows = keys.iter().map(|(name, key)| json!({ "name": name, "key": key }));
            output.result(&json!({ "keys": rows.collect::<Vec<_>>() }), |_| {
                table(["name", "key"], keys.iter().map(|(name, key)| [name.clone(), key.to_string()]))
            });
        }
        Command::Show { name } => {
            let (public, file) = (store.open(&name)?.public(), store.file(&name)?);
            let value = json!({ "name": name, "key": public, "file": file });
            output.result(&value, |_| {
                let rows = [["name", &name], ["key", &public.to_string()], ["file", &file.display().to_string()]];
                let lines = rows.map(|[field, value]| format!("{field:<5} {value}"));
                format!("{}\n\nA server that wants this key's signature has, for example:\n  [policy]\n  signers = [\"system/={public}\"]", lines.join("\n"))
            });
        }
        Command::Export { name, output: file } => {
            let pem = store.open(&name)?.public().pem();
            match file {
                Some(file) => crate::plugin::write_whole(&file, pem.as_bytes())?,
                None => output.raw(pem.as_bytes()),
            }
        }
    }
    Ok(())
}
