//! `noetl plugin watch`: every saved change becomes a version that serves, within the time of a build.
//!
//! Versions are immutable, so each round gets one of its own: the manifest's version with the pre-release
//! `dev.<n>`, one above the highest the server has. plugin.toml itself is not touched. The channel is `dev` unless
//! another is named, so that watching a project disturbs nobody.
//!
//! Changes are found by looking at the files' times and sizes: it works on every file system, network ones included, and a
//! project has few files. A build or push that fails is told and the next change tries again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use clap::Args;
use noetl_contract::{PluginPath, Version};
use noetl_guest_build::source::is_left_out;
use serde_json::{Value, json};

use super::component::project_manifest;
use super::push::{PushOptions, own_path, send, sign};
use crate::args::Context;
use crate::client::Client;
use crate::failure::{self, Exit, Failure, Outcome};

/// How often files are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(150);
/// What a build writes, wherever a crate is.
const BUILT: &str = "target";

#[derive(Debug, Args)]
pub struct Watch {
    /// The project's folder, or one file of Python or JavaScript.
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// For a single file of source text: where it lives in the catalog, such as `acme/orders/enrich`.
    #[arg(long)]
    path: Option<PluginPath>,
    #[command(flatten)]
    options: PushOptions,
}

impl Watch {
    pub async fn run(self, context: &Context) -> Outcome {
        let output = context.output;
        let client = context.client()?;
        let mut options = self.options;
        options.channel.get_or_insert_with(|| "dev".to_owned());
        options.reason.get_or_insert_with(|| "noetl plugin watch".to_owned());
        output.say(format_args!("watching {}; stop with ctrl-c", self.folder.display()));
        if !self.folder.exists() {
            return Err(Failure::new(Exit::NotFound, format!("there is no {}", self.folder.display())));
        }
        let mut seen = Files::new();
        loop {
            let now = look(&self.folder)?;
            // Editors put a new file in the place of the old one; for a moment there is none.
            if now == seen || now.is_empty() {
                tokio::time::sleep(LOOK_EVERY).await;
                continue;
            }
            let edited = newest_change(&seen, &now);
            seen = now;
            match round(&self.folder, self.path.as_ref(), &options, &client, context).await {
                Ok(mut answer) => {
                    // The first round is not the answer to an edit, so it has no such time.
                    let took = edited.and_then(|edited| edited.elapsed().ok()).map(|took| took.as_millis() as u64);
                    answer["edit_to_live_ms"] = json!(took);
                    tell(&answer, took, context);
                }
                Err(failure) if failure.exit == Exit::Denied => return Err(failure),
                Err(failure) => failure.report(&output),
            }
        }
    }
}

/// Builds and pushes once.
async fn round(
    folder: &Path,
    path: Option<&PluginPath>,
    options: &PushOptions,
    client: &Client,
    context: &Context,
) -> Outcome<Value> {
    let own = own_path(folder, path, client).await?;
    let path = path.or(own.as_ref());
    let (manifest, text) = project_manifest(folder, path)?;
    let version = next_version(&manifest.version, &known_versions(client, &manifest.path).await?);
    let mut file = tempfile::NamedTempFile::new().map_err(failure::io("make", Path::new("a temporary file")))?;
    std::io::Write::write_all(&mut file, with_version(&text, &version)?.as_bytes())
        .map_err(failure::io("write", file.path()))?;
    let mut component = super::build::build(folder, path, Some(file.path()), &context.output)?;
    sign(&mut component, options)?;
    send(client, &component, options, &context.output).await
}

fn tell(answer: &Value, took: Option<u64>, context: &Context) {
    if context.output.json {
        return context.output.line(answer);
    }
    let text = |field: &str| crate::output::cell(&answer[field]);
    let took = took.map_or_else(String::new, |ms| format!(", {ms} ms after the edit"));
    let paint = context.output.stdout_paint();
    context.output.print(format_args!(
        "{} {} {} on {}{took}",
        text("path"),
        text("version"),
        paint.good("is live"),
        text("channel")
    ));
}

pub async fn known_versions(client: &Client, path: &PluginPath) -> Outcome<Vec<Version>> {
    match client.get(&super::at(path), &[]).await {
        Ok(shown) => Ok(super::show::versions(&shown)),
        Err(failure) if failure.exit == Exit::NotFound => Ok(Vec::new()),
        Err(failure) => Err(failure),
    }
}

/// `1.2.0` becomes `1.2.0-dev.<n>`, one above the highest of those there are.
fn next_version(base: &Version, known: &[Version]) -> Version {
    let number = |version: &Version| -> Option<u64> {
        let same = (version.major, version.minor, version.patch) == (base.major, base.minor, base.patch);
        same.then(|| version.pre.as_str().strip_prefix("dev.")?.parse().ok()).flatten()
    };
    let next = known.iter().filter_map(number).max().unwrap_or(0) + 1;
    Version {
        pre: semver::Prerelease::new(&format!("dev.{next}")).expect("`dev.` and digits are a valid pre-release"),
        build: semver::BuildMetadata::EMPTY,
        ..base.clone()
    }
}

/// The manifest's text with another version; comments and order stay.
pub fn with_version(text: &str, version: &Version) -> Outcome<String> {
    let mut document: toml_edit::DocumentMut =
        text.parse().map_err(|error| Failure::failed(format!("plugin.toml cannot be edited: {error}")))?;
    document["version"] = toml_edit::value(version.to_string());
    Ok(document.to_string())
}

/// Time and size of every file that matters.
type Files = BTreeMap<PathBuf, (SystemTime, u64)>;

fn look(folder: &Path) -> Outcome<Files> {
    let mut files = Files::new();
    let about = match std::fs::metadata(folder) {
        Ok(about) => about,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(files),
        Err(error) => return Err(failure::io("watch", folder)(error)),
    };
    if about.is_file() {
        files.insert(folder.to_owned(), (about.modified().unwrap_or(SystemTime::UNIX_EPOCH), about.len()));
        return Ok(files);
    }
    let (top, built) = (folder, folder.join("Cargo.toml").is_file());
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            // A folder that goes away while it is looked at is seen as gone the next time.
            Err(_) if folder != top => continue,
            Err(error) => return Err(failure::io("watch", &folder)(error)),
        };
        for entry in entries {
            // A file that goes away while it is looked at is seen as gone the next time.
            let Ok(entry) = entry else { continue };
            let Ok(about) = entry.metadata() else { continue };
            let name = entry.file_name();
            if !matters(&name.to_string_lossy(), folder == top, built) {
                continue;
            }
            if about.is_dir() {
                open.push(entry.path());
            } else {
                let changed = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                files.insert(entry.path(), (changed, about.len()));
            }
        }
    }
    Ok(files)
}

/// Whether a change of it can change the plugin: what is packed, and the manifest, which is not among the plugin's files.
/// `built` is for a project whose code is compiled.
fn matters(name: &str, at_top: bool, built: bool) -> bool {
    let manifest = at_top && name == "plugin.toml";
    manifest || !(is_left_out(name, at_top) || built && name == BUILT)
}

/// When the newest of the changed files was written; none at the first look.
fn newest_change(before: &Files, now: &Files) -> Option<SystemTime> {
    if before.is_empty() {
        return None;
    }
    now.iter().filter(|(file, state)| before.get(*file) != Some(state)).map(|(_, (changed, _))| *changed).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        text.parse().expect("a version")
    }

    #[test]
    fn each_round_gets_a_version_of_its_own() {
        assert_eq!(next_version(&version("1.0.0"), &[]), version("1.0.0-dev.1"));
        let known = [version("1.0.0-dev.9"), version("1.0.0-dev.10"), version("1.0.1-dev.70"), version("1.0.0")];
        assert_eq!(next_version(&version("1.0.0"), &known), version("1.0.0-dev.11"));
        assert_eq!(next_version(&version("1.0.0-rc.1+b"), &known), version("1.0.0-dev.11"));
    }

    #[test]
    fn only_the_version_of_the_manifest_changes() {
        let text = "# mine\npath = \"a/b\"\nversion = \"1.0.0\" # keep\n";
        let edited = with_version(text, &version("1.0.0-dev.1")).expect("edits");
        assert!(edited.contains("# mine") && edited.contains("version = \"1.0.0-dev.1\""), "{edited}");
    }

    #[test]
    fn a_change_is_seen_and_the_output_of_a_build_is_not() {
        let folder = tempfile::tempdir().expect("folder");
        std::fs::write(folder.path().join("a"), "1").expect("write");
        for beside in ["target", "cases", "tests"] {
            std::fs::create_dir(folder.path().join(beside)).expect("folder");
        }
        let before = look(folder.path()).expect("looks");
        for beside in ["target/x", "cases/x.case", "tests/t.py"] {
            std::fs::write(folder.path().join(beside), "1").expect("write");
        }
        assert_eq!(look(folder.path()).expect("looks"), before);
        std::fs::write(folder.path().join("a"), "22").expect("write");
        let now = look(folder.path()).expect("looks");
        assert_eq!(newest_change(&before, &now), Some(now[&folder.path().join("a")].0));
        assert_eq!(newest_change(&Files::new(), &now), None);
    }

    #[test]
    fn what_is_packed_is_watched_and_nothing_else_but_the_manifest() {
        let folder = tempfile::tempdir().expect("folder");
        let write = |name: &str| {
            let file = folder.path().join(name);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("folder");
            std::fs::write(&file, "x = 1\n").expect("write");
        };
        let packed = ["lib/target/a.py", "main.py", "vendor/x/node_modules/y/index.js", "vendor/x/tests/t.py"];
        let beside = [".main.py.swp", "lib/.a.py.swp", "cases/a.case", "lib/__pycache__/a.pyc", "README.md"];
        packed.iter().chain(&beside).chain(&["plugin.toml"]).for_each(|name| write(name));
        let seen: Vec<PathBuf> = look(folder.path()).expect("looks").into_keys().collect();
        let names = |seen: &PathBuf| seen.strip_prefix(folder.path()).expect("inside").display().to_string();
        let mut wanted = [&packed[..], &["plugin.toml"]].concat();
        wanted.sort_unstable();
        assert_eq!(seen.iter().map(names).collect::<Vec<_>>(), wanted);
        let bundle = noetl_guest_build::source::bundle(folder.path()).expect("packs");
        assert!(bundle.files().map(|(path, _)| path).eq(packed));
        // What a compiler writes is nobody's edit, wherever it is.
        write("Cargo.toml");
        assert!(!look(folder.path()).expect("looks").contains_key(&folder.path().join("lib/target/a.py")));
    }

    #[test]
    fn a_file_that_is_gone_for_a_moment_is_no_error() {
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("a.py");
        assert!(look(&file).expect("looks").is_empty());
        std::fs::write(&file, "1").expect("write");
        assert_eq!(look(&file).expect("looks").len(), 1);
    }
}
