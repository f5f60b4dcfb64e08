//! `noetl credential`: secrets by name, for playbooks and plugins that never see them.
//!
//! A value goes to the server and does not come back: lists and descriptions have everything else, and `show --reveal` needs
//! a token made for it. No secret is taken from the command line itself ([`fields`]).

mod fields;
mod view;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueHint};
use noetl_store::wallet::kinds::{self, KINDS, Kind};
use reqwest::Method;
use serde_json::{Map, Value, json};

use crate::args::Context;
use crate::client::Client;
use crate::failure::{self, Failure, Outcome};
use crate::output::cell;
use crate::playbook::Whose;
use fields::Given;

const ADD_EXAMPLES: &str = "\
Examples:
  noetl credential add pg --type postgres --field host=db.example.com --field user=app --field database=shop \\
      --field password=env:PGPASSWORD
  noetl credential add github --type bearer --field token=@token.txt --host api.github.com
  pass show crm | noetl credential add crm --type api_key --field key=@- --host '*.crm.example.com'
  noetl credential add --file crm.yaml        # {name, type, data: {...}, hosts?, tags?, description?}

Values: NAME=@FILE reads a file, NAME=@- stdin, NAME=env:VARIABLE a variable. What is no secret can be written as it is. On a
terminal you are asked for what is missing. One line end at the end of a file or of stdin is left out.

Where a credential may go: --host, else the place that it names itself (postgres, nats, s3, oauth2). A bearer, basic, api_key
or hmac names none, so without --host it goes nowhere. `--host api.example.com` is https on port 443 alone: another port is
named, and `--host http://intranet.example:8080` lets it go unencrypted, for everybody on the way to read. This machine
(`localhost`, `127.0.0.1`) is bound on every port and either way.";

const ROTATE_EXAMPLES: &str = "\
Examples:
  noetl credential rotate pg --field password=@-       # everything else stays as it is
  noetl credential rotate --kek                        # the key that seals all credentials

Whatever is running gets the new value with its next connection. `--kek` needs an administrator's token: where the key is the
file of the data folder the server makes the next one; where it is given (NOETL_ENCRYPTION_KEY, wallet.key_command), put the new
key before the old one first, and take the old one away afterwards.";

const SHOW_EXAMPLES: &str = "\
Examples:
  noetl credential show pg
  NOETL_TOKEN=$(noetl token create --name look --right credential:reveal --expires 5m) \\
      noetl credential show pg --reveal --json | jq -r .data.password";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Keep a credential, or replace the one of the same name.
    #[command(after_help = ADD_EXAMPLES, after_long_help = long_help())]
    Add(Add),
    /// List credentials, without their values.
    List {
        /// Only of this type.
        #[arg(long = "type", value_name = "TYPE")]
        kind: Option<String>,
        /// Only with this tag.
        #[arg(long)]
        tag: Option<String>,
        #[command(flatten)]
        whose: Whose,
    },
    /// Show one credential, without its values.
    #[command(after_help = SHOW_EXAMPLES)]
    Show {
        /// Name of the credential.
        alias: String,
        /// Its values too; needs a token with the right `credential:reveal`, and is written into the audit.
        #[arg(long)]
        reveal: bool,
        #[command(flatten)]
        whose: Whose,
    },
    /// Replace the value of a credential, or the key that seals all of them.
    #[command(after_help = ROTATE_EXAMPLES)]
    Rotate {
        /// Name of the credential.
        #[arg(required_unless_present = "kek", conflicts_with = "kek")]
        alias: Option<String>,
        /// A field that changes: NAME=@FILE, NAME=@- or NAME=env:VARIABLE.
        #[arg(long = "field", value_name = "NAME=VALUE", conflicts_with = "kek")]
        fields: Vec<Given>,
        /// The hosts it may be sent to from now on, in place of those before. For secrets that are not given anew this needs a
        /// token with the right `credential:reveal`, as does another address.
        #[arg(long = "host", value_name = "HOST", conflicts_with = "kek")]
        hosts: Vec<String>,
        /// Bring all credentials of the server under the next key.
        #[arg(long)]
        kek: bool,
        #[command(flatten)]
        whose: Whose,
    },
    /// Delete a credential; what uses it fails from then on.
    Delete {
        /// Name of the credential.
        alias: String,
        #[command(flatten)]
        whose: Whose,
    },
    /// Tell who used a credential, or tried to, and who changed it.
    Audit {
        /// Name of the credential; also of one that has been deleted.
        alias: String,
        /// Most lines to show, newest first.
        #[arg(long, default_value_t = 50)]
        limit: u32,
        #[command(flatten)]
        whose: Whose,
    },
    /// Tell which key the credentials of the server are under.
    Status,
}

#[derive(Debug, Args)]
pub struct Add {
    /// Name of the credential; playbooks and tools ask for it by this.
    #[arg(required_unless_present = "file")]
    alias: Option<String>,
    /// Its type; `noetl credential add --help` lists them with their fields.
    #[arg(long = "type", value_name = "TYPE", required_unless_present = "file")]
    kind: Option<String>,
    /// A field: NAME=@FILE, NAME=@- or NAME=env:VARIABLE; NAME=TEXT for what is no secret.
    #[arg(long = "field", value_name = "NAME=VALUE")]
    fields: Vec<Given>,
    /// All of it from a file of YAML or JSON, `-` for stdin: {name, type, data, hosts?, tags?, description?}.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: Option<PathBuf>,
    /// A host it may be sent to: `api.example.com`, `*.example.org`, `db.example.com:5432`. Without a port it is the usual one; HTTP is
    /// encrypted unless `http://host:port` says otherwise.
    #[arg(long = "host", value_name = "HOST")]
    hosts: Vec<String>,
    /// A word to find it by.
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// What it is for.
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Take a secret of fewer than 6 bytes, which cannot be masked where it is told back.
    #[arg(long)]
    allow_short: bool,
    #[command(flatten)]
    whose: Whose,
}

/// The examples, and every type with its fields.
fn long_help() -> String {
    let mut text = format!("{ADD_EXAMPLES}\n\nTypes:");
    for kind in KINDS {
        text.push_str(&format!("\n  {}: {}", kind.name, kind.help));
        for field in kind.fields {
            let needed = match field.needed {
                kinds::Needed::Yes => String::new(),
                kinds::Needed::No => " (optional)".to_owned(),
                kinds::Needed::Default(value) => format!(" (default `{value}`)"),
            };
            text.push_str(&format!("\n    {:<14} {}{needed}", field.name, field.help));
        }
    }
    text
}

pub async fn run(command: Command, context: &Context) -> Outcome {
    let client = context.client()?;
    let output = context.output;
    match command {
        Command::Add(add) => {
            let whose = add.whose.tenant().map(str::to_owned);
            let document = add.document(context)?;
            keep(&client, &document, whose.as_deref(), context).await
        }
        Command::List { kind, tag, whose } => {
            let query = [("type", kind.as_deref()), ("tag", tag.as_deref()), ("tenant", whose.tenant())];
            let answer = client.get("/api/credentials", &query).await?;
            output.result(&answer, |_| view::list(&answer));
            Ok(())
        }
        Command::Show { alias, reveal, whose } => {
            let reveal = reveal.then_some("true");
            let answer = client.get(&path(&alias)?, &[("include_data", reveal), ("tenant", whose.tenant())]).await?;
            output.result(&answer, |_| view::one(&answer));
            Ok(())
        }
        Command::Rotate { alias: Some(alias), fields, hosts, whose, .. } => {
            let before = client.get(&path(&alias)?, &[("tenant", whose.tenant())]).await?;
            let document = changed(&before, &fields, hosts, context)?;
            let request = client.request(Method::PATCH, &path(&alias)?, &[("tenant", whose.tenant())]).json(&document);
            kept(&client.json(client.send(request).await?).await?, context);
            Ok(())
        }
        Command::Rotate { alias: None, .. } => {
            let answer = client.post("/api/wallet/rotate", &json!({})).await?;
            output.result(&answer, |_| view::rotated(&answer));
            Ok(())
        }
        Command::Delete { alias, whose } => {
            let answer = client.delete(&path(&alias)?, &[("tenant", whose.tenant())]).await?;
            output.result(&answer, |_| format!("credential {alias} is deleted"));
            Ok(())
        }
        Command::Audit { alias, limit, whose } => {
            let limit = limit.to_string();
            let query = [("limit", Some(limit.as_str())), ("tenant", whose.tenant())];
            let answer = client.get(&format!("{}/audit", path(&alias)?), &query).await?;
            output.result(&answer, |_| view::audit(&answer));
            Ok(())
        }
        Command::Status => {
            let answer = client.get("/api/wallet/status", &[]).await?;
            output.result(&answer, |_| view::status(&answer));
            Ok(())
        }
    }
}

impl Add {
    /// What the server is sent.
    fn document(self, context: &Context) -> Outcome<Value> {
        let mut document = match &self.file {
            Some(file) => read_document(file)?,
            None => Map::new(),
        };
        if let Some(alias) = self.alias {
            document.insert("name".to_owned(), json!(alias));
        }
        if let Some(kind) = self.kind {
            document.insert("type".to_owned(), json!(kind));
        }
        if !self.hosts.is_empty() {
            document.insert("hosts".to_owned(), json!(self.hosts));
        }
        if !self.tags.is_empty() {
            document.insert("tags".to_owned(), json!(self.tags));
        }
        if let Some(description) = self.description {
            document.insert("description".to_owned(), json!(description));
        }
        if self.allow_short {
            document.insert("allow_short".to_owned(), json!(true));
        }
        let kind = kind_of(document.get("type").and_then(Value::as_str).unwrap_or_default())?;
        let data = document.remove("data").unwrap_or_else(|| json!({}));
        let Value::Object(mut data) = data else {
            return Err(Failure::usage("`data` of the file must be a map of fields"));
        };
        fields::take(kind, &self.fields, &mut data)?;
        fields::ask(kind, &mut data, context)?;
        document.insert("data".to_owned(), Value::Object(data));
        Ok(Value::Object(document))
    }
}

/// The fields that change; the server leaves everything else as it is.
fn changed(before: &Value, given: &[Given], hosts: Vec<String>, context: &Context) -> Outcome<Value> {
    let kind = kind_of(before["type"].as_str().unwrap_or_default())?;
    let mut changed = Map::new();
    fields::take(kind, given, &mut changed)?;
    if changed.is_empty() && hosts.is_empty() {
        // Asked for is what the credential needs and cannot be shown.
        let public = before["data"].as_object().cloned().unwrap_or_default();
        let is_secret = |name: &str| kind.secrets().any(|secret| secret.name == name);
        changed.extend(public.into_iter().filter(|(name, _)| !is_secret(name)));
        fields::ask(kind, &mut changed, context)?;
        changed.retain(|name, _| is_secret(name));
    }
    if changed.is_empty() && hosts.is_empty() {
        return Err(Failure::usage("there is no new value").next(fields::how(kind)));
    }
    let mut document = json!({ "data": changed });
    if !hosts.is_empty() {
        document["hosts"] = json!(hosts);
    }
    Ok(document)
}

async fn keep(client: &Client, document: &Value, tenant: Option<&str>, context: &Context) -> Outcome {
    let request = client.request(Method::POST, "/api/credentials", &[("tenant", tenant)]).json(document);
    kept(&client.json(client.send(request).await?).await?, context);
    Ok(())
}

fn kept(answer: &Value, context: &Context) {
    if let Some(warning) = answer["warning"].as_str().filter(|_| !context.output.json) {
        context.output.warn(warning);
    }
    context.output.result(answer, |_| {
        format!(
            "credential {} is kept (revision {}); it may go to: {}",
            cell(&answer["name"]),
            answer["revision"],
            cell(&answer["hosts"])
        )
    });
}

fn kind_of(name: &str) -> Outcome<&'static Kind> {
    kinds::kind(name).map_err(|invalid| Failure::usage(invalid.to_string()))
}

fn path(alias: &str) -> Outcome<String> {
    kinds::check_alias(alias).map_err(|invalid| Failure::usage(invalid.to_string()))?;
    Ok(format!("/api/credentials/{alias}"))
}

fn read_document(file: &Path) -> Outcome<Map<String, Value>> {
    let mut text = String::new();
    if file.as_os_str() == "-" {
        std::io::stdin().read_to_string(&mut text).map_err(failure::io("read", Path::new("stdin")))?;
    } else {
        text = std::fs::read_to_string(file).map_err(failure::io("read", file))?;
    }
    let document = noetl_flow::playbook::plain(&text).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(|problem| format!("{}:{problem}", file.display())).collect();
        Failure::usage(problems.join("\n"))
    })?;
    match document {
        Value::Object(document) => Ok(document),
        _ => Err(Failure::usage(format!("{} must be a map with `name`, `type` and `data`", file.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_names_every_type_and_field() {
        let help = long_help();
        for kind in KINDS {
            assert!(help.contains(&format!("\n  {}: ", kind.name)), "{}", kind.name);
            assert!(
                kind.fields.iter().all(|field| help.contains(&format!("\n    {:<14} ", field.name))),
                "{}",
                kind.name
            );
        }
    }

    #[test]
    fn a_file_can_be_yaml_or_json() {
        let folder = tempfile::tempdir().expect("folder");
        let read = |text: &str| {
            let file = folder.path().join("cred");
            std::fs::write(&file, text).expect("write");
            read_document(&file)
        };
        let yaml = read("name: pg\ntype: postgres\ndata: {host: h, port: 5432}\nhosts: [h]\n").expect("YAML");
        let json = read(r#"{"name": "pg", "type": "postgres", "data": {"host": "h", "port": 5432}, "hosts": ["h"]}"#)
            .expect("JSON");
        assert_eq!(yaml, json);
        assert!(read("- a").expect_err("a list").message.contains("must be a map"));
        assert!(read("a: [").is_err());
    }
}
