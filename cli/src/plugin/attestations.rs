//! What is said about a component on its way: made by a build, kept beside the file, signed, and sent along.
//!
//! `X.wasm` has its attestations in `X.wasm.dsse.json`. They say nothing about other bytes, so those of an earlier build
//! are left aside when the file has changed.
//!
//! Where the sources come from is asked of git, in words of a commit; a folder without git has no such origin. An
//! address with credentials in it is cleaned of them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use noetl_contract::Digest;
use noetl_registry::signatures::{Envelope, Provenance, SecretKey, Source, Statement, merge};
use reqwest::Url;

use super::component::Component;
use crate::failure::{self, Failure, Outcome};

/// Who builds, where the name of the user and the machine is not what should be said.
const BUILDER: &str = "NOETL_BUILDER";

/// What a build knows about itself; nobody has signed it yet.
pub fn of_build(component: &Component, folder: &Path, toolchain: String) -> Envelope {
    let provenance = Provenance {
        builder: builder(),
        tool: concat!("noetl ", env!("CARGO_PKG_VERSION")).to_owned(),
        toolchain,
        source: source(folder),
    };
    Envelope::unsigned(&statement(component, Some(provenance)))
}

fn statement(component: &Component, provenance: Option<Provenance>) -> Statement {
    let (path, version) = (component.manifest.path.clone(), component.manifest.version.clone());
    Statement { path, version, digest: component.digest(), provenance }
}

/// Signs what is known about the component; where nothing is, that it is these bytes.
pub fn sign(component: &mut Component, key: &SecretKey) -> Outcome {
    if component.attestations.is_empty() {
        component.attestations.push(Envelope::unsigned(&statement(component, None)));
    }
    for envelope in &mut component.attestations {
        envelope.sign(key).map_err(|error| Failure::failed(format!("{}: {error}", component.name)))?;
    }
    Ok(())
}

fn beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".dsse.json");
    PathBuf::from(name)
}

/// Those beside a file that are about its bytes.
pub fn read_beside(file: &Path, digest: &Digest) -> Outcome<Vec<Envelope>> {
    let file = beside(file);
    let text = match std::fs::read(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failure::io("read", &file)(error)),
    };
    let wrong = |error: String| {
        Failure::failed(format!("{}: {error}", file.display())).next("remove the file, and sign the component again")
    };
    let all: Vec<Envelope> = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
    let mut kept = Vec::new();
    for envelope in all {
        if envelope.open().map_err(|error| wrong(error.to_string()))?.statement.digest == *digest {
            kept.push(envelope);
        }
    }
    Ok(kept)
}

/// Puts attestations beside a file; none of them leaves no file.
pub fn write_beside(file: &Path, attestations: &[Envelope]) -> Outcome {
    let file = beside(file);
    if attestations.is_empty() {
        return match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failure::io("remove", &file)(error)),
            _ => Ok(()),
        };
    }
    let text = serde_json::to_vec_pretty(attestations).expect("text and lists of text");
    super::write_whole(&file, &text)
}

/// Adds to what lies beside a file.
pub fn add_beside(file: &Path, component: &Component) -> Outcome {
    let known = read_beside(file, &component.digest())?;
    write_beside(file, &merge(&known, &component.attestations))
}

fn builder() -> String {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    set(BUILDER).unwrap_or_else(|| {
        let user = set("USER").or_else(|| set("LOGNAME")).unwrap_or_else(|| "unknown".to_owned());
        match std::fs::read_to_string("/proc/sys/kernel/hostname") {
            Ok(host) => format!("{user}@{}", host.trim()),
            Err(_) => user,
        }
    })
}

fn source(folder: &Path) -> Option<Source> {
    let commit = git(folder, &["rev-parse", "HEAD"])?;
    let dirty = git(folder, &["status", "--porcelain", "--", "."]).is_none_or(|changes| !changes.is_empty());
    let repository = git(folder, &["config", "--get", "remote.origin.url"]).and_then(|url| without_credentials(&url));
    Some(Source { repository, commit, dirty })
}

fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(folder).args(arguments).stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// The address without user and password; a folder of this machine is nobody else's business.
fn without_credentials(text: &str) -> Option<String> {
    match Url::parse(text) {
        Ok(mut url) if matches!(url.scheme(), "http" | "https" | "ssh" | "git") => {
            url.set_username("").and_then(|()| url.set_password(None)).ok()?;
            Some(url.to_string())
        }
        // As scp has it: `git@host:path`, where the user is no secret.
        Err(_) if text.contains('@') && text.contains(':') && !text.contains("//") => Some(text.to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin::component::tests::empty;

    const MANIFEST: &str = "path = \"acme/a\"\nversion = \"1.0.0\"\nworld = \"transform\"\n";

    #[test]
    fn attestations_lie_beside_their_file_and_only_for_its_bytes() {
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("a.wasm");
        let mut component = empty(MANIFEST);
        let key = SecretKey::generate().expect("a key").0;
        sign(&mut component, &key).expect("signs");
        std::fs::write(&file, &component.bytes).expect("writes");
        write_beside(&file, &component.attestations).expect("writes");
        assert_eq!(Component::read(&file).expect("reads").attestations, component.attestations);
        sign(&mut component, &SecretKey::generate().expect("a key").0).expect("signs");
        add_beside(&file, &component).expect("adds");
        let (signers, _) = noetl_registry::signatures::about(
            &component.digest(),
            &Component::read(&file).expect("reads").attestations,
        );
        assert_eq!(signers.len(), 2);
        assert!(read_beside(&file, &Digest::of(b"other")).expect("reads").is_empty());
        write_beside(&file, &[]).expect("removes");
        assert!(read_beside(&file, &component.digest()).expect("reads").is_empty());
    }

    #[test]
    fn the_origin_tells_the_commit_and_no_password() {
        let folder = tempfile::tempdir().expect("folder");
        assert_eq!(source(folder.path()), None);
        let run = |arguments: &[&str]| git(folder.path(), arguments).expect("git runs");
        run(&["init", "-q"]);
        std::fs::write(folder.path().join("f"), "1").expect("writes");
        run(&["add", "f"]);
        run(&["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "x"]);
        run(&["remote", "add", "origin", "https://ada:hunter2@example.com/x.git"]);
        let clean = source(folder.path()).expect("a commit");
        assert_eq!((clean.dirty, clean.repository.as_deref()), (false, Some("https://example.com/x.git")));
        std::fs::write(folder.path().join("f"), "2").expect("writes");
        assert!(source(folder.path()).expect("a commit").dirty);
        assert_eq!(without_credentials("git@example.com:a/b.git").as_deref(), Some("git@example.com:a/b.git"));
        assert_eq!(without_credentials("/home/ada/x"), None);
    }
}
