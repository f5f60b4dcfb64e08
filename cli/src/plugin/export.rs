//! `noetl plugin export`: versions with their channels and signatures into one file.
//!
//! What is compiled into the server's binary is left out: the server that takes the file has its own.

use std::io::BufWriter;
use std::path::{Path, PathBuf};

use clap::Args;
use noetl_contract::{PluginPath, Version};
use noetl_registry::oci::{Artefact, BundleWriter, BundledVersion};
use serde_json::{Value, json};

use super::oci::failed;
use super::show::entry;
use crate::args::Context;
use crate::client::Client;
use crate::failure::{self, Exit, Failure, Outcome};
use crate::output::{cell, short_digest, table};

#[derive(Debug, Args)]
pub struct Export {
    /// PATH for what its channels serve, PATH@VERSION for one version; everything that channels serve when left out.
    #[arg(value_name = "PATH[@VERSION]")]
    what: Vec<String>,
    /// The file to write; other tools read it as oci-archive.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Every version of the paths instead of those a channel serves.
    #[arg(long)]
    all_versions: bool,
}

impl Export {
    pub async fn run(self, context: &Context) -> Outcome {
        let client = context.client()?;
        let answer = client.get("/api/plugins", &[]).await?;
        let rows: Vec<Value> = answer["plugins"].as_array().cloned().unwrap_or_default();
        let chosen = choose(&rows, &self.what, self.all_versions)?;
        let folder = self.output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failure::io("write into", folder))?;
        let mut writer = BundleWriter::new(BufWriter::new(file.as_file_mut()));
        for row in &chosen {
            context.output.detail(format_args!("{} {}", cell(&entry(row)["path"]), cell(&entry(row)["version"])));
            writer.add(&bundled(&client, row).await?).map_err(failed)?;
        }
        let written = writer.finish().map_err(failed)?.into_inner();
        written.map_err(|error| failure::io("write", &self.output)(error.into_error()))?;
        file.persist(&self.output).map_err(|error| failure::io("write", &self.output)(error.error))?;
        let lines: Vec<Value> = chosen.iter().map(line).collect();
        let value = json!({ "file": self.output, "versions": lines });
        context.output.result(&value, |_| {
            let cells = lines
                .iter()
                .map(|line| ["path", "version", "channels", "digest", "signers"].map(|name| cell(&line[name])));
            let cells = cells.map(|[path, version, channels, digest, signers]| {
                [path, version, channels, short_digest(&digest), signers]
            });
            table(["path", "version", "channels", "digest", "signed by"], cells)
        });
        Ok(())
    }
}

fn line(row: &Value) -> Value {
    let version = entry(row);
    json!({ "path": version["path"], "version": version["version"], "channels": row["channels"],
            "digest": version["digest"], "signers": version["signers"] })
}

/// The rows that are meant, in the order of the list: by path and version.
fn choose(rows: &[Value], what: &[String], all_versions: bool) -> Outcome<Vec<Value>> {
    let is_pushed = |row: &&Value| row["embedded"] != Value::Bool(true);
    let is_served = |row: &Value| row["channels"].as_array().is_some_and(|channels| !channels.is_empty());
    let mut chosen: Vec<&Value> = Vec::new();
    for word in what {
        let (path, version) =
            word.split_once('@').map_or((word.as_str(), None), |(path, version)| (path, Some(version)));
        let of_path = rows.iter().filter(is_pushed).filter(|row| entry(row)["path"] == path);
        let found: Vec<&Value> = match version {
            Some(version) => of_path.filter(|row| entry(row)["version"] == version).collect(),
            None => of_path.filter(|row| all_versions || is_served(row)).collect(),
        };
        if found.is_empty() {
            return Err(Failure::new(Exit::NotFound, format!("there is no `{word}` to export"))
                .next("`noetl plugin list --all-versions` shows what is there; what is built in stays where it is"));
        }
        chosen.extend(found);
    }
    if what.is_empty() {
        chosen.extend(rows.iter().filter(is_pushed).filter(|row| all_versions || is_served(row)));
    }
    if chosen.is_empty() {
        return Err(Failure::new(Exit::NotFound, "there is nothing to export: no plugin was pushed to this server"));
    }
    // Named twice is there once.
    let wanted = |row: &&Value| chosen.iter().any(|one| std::ptr::eq(*one, *row));
    Ok(rows.iter().filter(wanted).cloned().collect())
}

async fn bundled(client: &Client, row: &Value) -> Outcome<BundledVersion> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let wrong = |error: String| Failure::failed(format!("the server's list cannot be understood: {error}"));
    let path = PluginPath::new(text(&entry(row)["path"])).map_err(|error| wrong(error.to_string()))?;
    let version: Version = text(&entry(row)["version"]).parse().map_err(|error| wrong(format!("{error}")))?;
    let component = super::sign::from_server(client, &path, &version).await?;
    let channels = row["channels"].as_array().into_iter().flatten().map(text).collect();
    let artefact = Artefact { component: component.bytes.into(), attestations: component.attestations };
    let (name, ring) = (format!("{path}:{version}"), text(&entry(row)["ring"]));
    let interpreter = entry(row)["interpreter"].as_str().map(str::to_owned);
    Ok(BundledVersion { name, channels, ring, interpreter, artefact })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_served_is_chosen_and_what_is_built_in_is_not() {
        let row = |path: &str, version: &str, channels: Value, embedded: bool| json!({ "entry": { "path": path, "version": version }, "channels": channels, "embedded": embedded });
        let rows = [
            row("acme/a", "1.0.0", json!([]), false),
            row("acme/a", "1.1.0", json!(["stable"]), false),
            row("acme/b", "2.0.0", json!(["stable"]), false),
            row("tools/http", "0.1.0", json!(["stable"]), true),
        ];
        let chosen = |what: &[&str], all: bool| {
            let what: Vec<String> = what.iter().map(|word| (*word).to_owned()).collect();
            let chosen = choose(&rows, &what, all)?;
            Ok::<_, Failure>(chosen.iter().map(|row| cell(&entry(row)["version"])).collect::<Vec<_>>())
        };
        assert_eq!(chosen(&[], false).expect("all"), ["1.1.0", "2.0.0"]);
        assert_eq!(chosen(&["acme/a"], true).expect("one path"), ["1.0.0", "1.1.0"]);
        assert_eq!(chosen(&["acme/b", "acme/a@1.0.0", "acme/b"], false).expect("two"), ["1.0.0", "2.0.0"]);
        for missing in ["acme/c", "acme/a@9.0.0", "tools/http"] {
            assert_eq!(chosen(&[missing], false).expect_err(missing).exit, Exit::NotFound);
        }
    }
}
