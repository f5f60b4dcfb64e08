//! What playbooks run on: the world around a server, and servers in it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use reqwest::Method;
use serde_json::{Value as Json, json};
use tempfile::TempDir;
use walkdir::WalkDir;

use super::documents::{Document, Needed, Use};
use super::hosts::Hosts;
use super::oracle::{Failures, Oracles};
use super::psql;
use crate::{Api, Nats, Paginated, Postgres, Server};

/// What every server of a run shares.
pub(super) struct World {
    pub postgres: Postgres,
    pub nats: Nats,
    pub http: Paginated,
    /// The folder that servers may read scripts from.
    scripts: TempDir,
}

impl World {
    pub async fn start(folder: &Path, documents: &[Document], oracles: &Oracles) -> Result<Self, String> {
        let world = Self {
            postgres: Postgres::start(),
            nats: Nats::start().await,
            http: Paginated::start_with(Some(folder)).await,
            scripts: scripts(folder, &oracles.prepare.scripts)?,
        };
        if !oracles.prepare.sql.trim().is_empty() {
            psql::ask(&world.postgres, &oracles.prepare.sql).map_err(|error| format!("prepare.sql: {error}"))?;
        }
        let needed: BTreeSet<Needed> = documents.iter().flat_map(Document::on_nats).collect();
        for needed in needed {
            match needed {
                Needed::Bucket(name) => world.nats.make_bucket(&name).await?,
                Needed::Objects(name) => world.nats.make_object_store(&name).await?,
                Needed::Stream { stream, consumer } => {
                    let subjects = format!("{}.>", stream.to_lowercase());
                    world.nats.make_stream(&stream, &[&subjects], &consumer).await?;
                }
            }
        }
        Ok(world)
    }

    fn credential(&self, alias: &str, used: Use) -> Json {
        let (kind, data, port) = match used {
            Use::Postgres => {
                let Postgres { host, port, user, password, database, .. } = &self.postgres;
                let data = json!({"host": host, "port": port.to_string(), "user": user, "password": password,
                    "database": database, "sslmode": "disable"});
                ("postgres", data, *port)
            }
            Use::Nats => {
                let data = json!({"url": self.nats.url(), "user": self.nats.user, "password": self.nats.password});
                ("nats", data, self.nats.port)
            }
            Use::Http => {
                let port = self.http.url.rsplit(':').next().and_then(|port| port.parse().ok()).unwrap_or(80);
                ("bearer", json!({"token": "token-of-a-compatibility-run"}), port)
            }
        };
        json!({"name": alias, "type": kind, "data": data, "hosts": [format!("127.0.0.1:{port}")]})
    }
}

/// Copies of everything in a folder that is no playbook, below each of the given folders.
fn scripts(folder: &Path, below: &[String]) -> Result<TempDir, String> {
    let copies = TempDir::new().map_err(|error| error.to_string())?;
    let files = WalkDir::new(folder).into_iter().filter_map(Result::ok).filter(|entry| entry.file_type().is_file());
    for entry in files {
        let extension = entry.path().extension().and_then(|extension| extension.to_str());
        if !matches!(extension, Some("py" | "sql" | "js" | "txt" | "json" | "csv")) {
            continue;
        }
        let name = entry.path().strip_prefix(folder).unwrap_or(entry.path());
        for place in below.iter().map(String::as_str).chain([""]) {
            let copy = copies.path().join(place).join(name);
            let made = copy.parent().map_or(Ok(()), std::fs::create_dir_all);
            made.and_then(|()| std::fs::copy(entry.path(), &copy))
                .map_err(|error| format!("{}: {error}", copy.display()))?;
        }
    }
    Ok(copies)
}

/// What became of a document when it was registered.
pub(super) enum Registered {
    Path(String),
    Refused(String),
    NotHere(String),
}

/// One server with all credentials and playbooks.
pub(super) struct Stage {
    pub server: Server,
    pub api: Api,
    registered: BTreeMap<String, Registered>,
}

impl Stage {
    pub async fn start(
        world: &World,
        documents: &[Document],
        oracles: &Oracles,
        failures: Failures,
    ) -> Result<Self, String> {
        let scripts = world.scripts.path().display().to_string();
        let server = Server::start_with(&[
            ("NOETL_POLICY_HTTP_PRIVATE_ADDRESSES", "true"),
            // Playbooks say `verify_ssl: false` where they mean servers of a test.
            ("NOETL_POLICY_INSECURE_TLS", "true"),
            ("NOETL_ENGINE_FAILURES", if failures == Failures::Lenient { "lenient" } else { "strict" }),
            ("NOETL_FILES_FOLDER", scripts.as_str()),
        ]);
        let api = server.admin();
        while api.get("/ready").await.status != 200 {}
        for (alias, used) in documents.iter().flat_map(Document::aliases) {
            let answer = api.post("/api/credentials", world.credential(&alias, used)).await;
            // Two documents that name one alias mean one credential.
            if !matches!(answer.status, 200 | 201 | 204 | 409) {
                return Err(format!("the credential `{alias}` cannot be added: {}", answer.text()));
            }
        }
        let tools = tools_of(&api).await;
        let hosts = hosts(world, &server, oracles);
        let mut registered = BTreeMap::new();
        for document in documents {
            let state = register(&api, document, &tools, &hosts).await;
            registered.insert(document.file.clone(), state);
        }
        Ok(Self { server, api, registered })
    }

    pub fn registered(&self, file: &str) -> &Registered {
        &self.registered[file]
    }
}

fn hosts<'a>(world: &'a World, server: &'a Server, oracles: &'a Oracles) -> Hosts<'a> {
    let stubs = oracles.hosts.stub.iter().map(|host| (host.as_str(), world.http.url.as_str()));
    let own = oracles.hosts.server.iter().map(|host| (host.as_str(), server.url.as_str()));
    Hosts { rows: stubs.chain(own).collect() }
}

/// Kinds of tools that the catalog has.
async fn tools_of(api: &Api) -> BTreeSet<String> {
    let listed = api.get("/api/plugins?prefix=tools/").await.is(200).json();
    let rows = listed["plugins"].as_array().cloned().unwrap_or_default();
    let paths = rows.iter().filter_map(|row| row["entry"]["path"].as_str());
    paths.filter_map(|path| path.strip_prefix("tools/")).map(str::to_owned).collect()
}

async fn register(api: &Api, document: &Document, tools: &BTreeSet<String>, hosts: &Hosts<'_>) -> Registered {
    if document.kind != "Playbook" {
        return Registered::NotHere(format!("documents of the kind {}", document.kind));
    }
    let request = api.request(Method::POST, "/api/catalog/register").header("content-type", "text/yaml");
    let answer = api.send(request.body(hosts.replaced(&document.text))).await;
    if answer.status >= 300 {
        return Registered::Refused(refusal(&answer.json()));
    }
    let missing: Vec<&str> = document.kinds().into_iter().filter(|kind| !tools.contains(*kind)).collect();
    if !missing.is_empty() {
        return Registered::NotHere(format!("the tools {}", missing.join(", ")));
    }
    let unknown: BTreeSet<&str> = document.addresses().into_iter().flat_map(|text| hosts.unknown(text)).collect();
    if !unknown.is_empty() {
        return Registered::NotHere(format!("the hosts {}", unknown.into_iter().collect::<Vec<_>>().join(", ")));
    }
    Registered::Path(answer.json()["path"].as_str().unwrap_or_default().to_owned())
}

/// The errors of a document, with their lines.
fn refusal(problem: &Json) -> String {
    let errors = problem["problems"].as_array().into_iter().flatten().filter(|problem| problem["severity"] == "error");
    let lines: Vec<String> = errors
        .map(|error| format!("line {}: {}", error["line"], error["message"].as_str().unwrap_or_default()))
        .collect();
    if lines.is_empty() { problem["detail"].as_str().unwrap_or("refused").to_owned() } else { lines.join("; ") }
}
