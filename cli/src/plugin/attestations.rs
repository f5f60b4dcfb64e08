//! What is said about a component on its way: made by a build, kept beside the file, signed, and sent along.
//!
//! `X.wasm` has its attestations in `X.wasm.dsse.json`. They say nothing about other bytes, so those of an earlier build
//! are left aside when the file has changed.
//!
//! Signing says of these bytes that one stands by them, and no more: how something was made is for whoever made it to
//! sign. So a build's own statement is signed by the key of the build, and beside what others say there is a statement of
//! approval. Nothing is signed that a server, a registry or a file has put there.
//!
//! Where the sources come from is asked of git, in words of a commit; a folder without git has no such origin. An
//! address with credentials in it is cleaned of them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use noetl_contract::Digest;
use noetl_registry::signatures::{AttestationError, Build, Envelope, SecretKey, Source, Statement, join};
use reqwest::Url;

use super::component::Component;
use crate::failure::{self, Failure, Outcome};

/// Who builds, where the name of the user and the machine is not what should be said.
const BUILDER: &str = "NOETL_BUILDER";

/// What a build knows about itself; nobody has signed it yet.
pub fn of_build(component: &Component, folder: &Path, toolchain: String) -> Envelope {
    let build = Build {
        builder: builder(),
        tool: concat!("noetl ", env!("CARGO_PKG_VERSION")).to_owned(),
        toolchain,
        source: source(folder),
    };
    Envelope::unsigned(&statement(component, Some(build)))
}

fn statement(component: &Component, provenance: Option<Build>) -> Statement {
    let (path, version) = (component.manifest.path.clone(), component.manifest.version.clone());
    Statement { path, version, digest: component.digest(), provenance }
}

/// Signs what this very build says about the component; otherwise that somebody stands by these bytes, unless the key
/// has said so already. What is known must be about them and hold: anything else is refused, and nothing is signed.
pub fn sign(component: &mut Component, key: &SecretKey) -> Outcome {
    let (name, digest) = (component.name.clone(), component.digest());
    let failed = |error: AttestationError| Failure::failed(format!("{name}: {error}; nothing was signed"));
    let mut is_signed = false;
    for envelope in &component.attestations {
        is_signed |= envelope.open_for(&digest).map_err(failed)?.signers.contains(&key.public());
    }
    let mut own: Vec<Envelope> = component.attestations.iter().filter(|envelope| envelope.is_own()).cloned().collect();
    if own.is_empty() && !is_signed {
        own.push(Envelope::unsigned(&statement(component, None)));
    }
    for envelope in &mut own {
        envelope.sign(key).map_err(failed)?;
    }
    component.attestations = join(&digest, &component.attestations, &own).map_err(failed)?;
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
    let digest = component.digest();
    let known = read_beside(file, &digest)?;
    let all = join(&digest, &known, &component.attestations)
        .map_err(|error| Failure::failed(format!("{}: {error}", component.name)))?;
    write_beside(file, &all)
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
    use noetl_registry::signatures::about;

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
        let (signers, _) = about(&component.digest(), &Component::read(&file).expect("reads").attestations);
        assert_eq!(signers.len(), 2);
        assert!(read_beside(&file, &Digest::of(b"other")).expect("reads").is_empty());
        write_beside(&file, &[]).expect("removes");
        assert!(read_beside(&file, &component.digest()).expect("reads").is_empty());
    }

    /// What somebody else says of how the component was made, as it comes from a server or a file.
    fn claimed(component: &Component, digest: Digest, key: Option<&SecretKey>) -> Envelope {
        let build =
            Build { builder: "mallory".to_owned(), tool: String::new(), toolchain: String::new(), source: None };
        let mut envelope = Envelope::unsigned(&Statement { digest, ..statement(component, Some(build)) });
        if let Some(key) = key {
            envelope.sign(key).expect("signs");
        }
        Envelope::parse(&envelope.to_json()).expect("reads")
    }

    #[test]
    fn signing_approves_the_bytes_and_adopts_nobodys_account_of_them() {
        let mut component = empty(MANIFEST);
        let (ada, mallory) = (SecretKey::generate().expect("a key").0, SecretKey::generate().expect("a key").0);
        component.attestations = vec![claimed(&component, component.digest(), Some(&mallory))];
        sign(&mut component, &ada).expect("signs");
        let (signers, provenance) = about(&component.digest(), &component.attestations);
        assert_eq!(signers.len(), 2);
        assert_eq!(provenance.expect("it is still claimed").signed_by, [mallory.public()]);
        let once = component.attestations.clone();
        for key in [&ada, &mallory] {
            // As another command finds it.
            let read = once.iter().map(|envelope| Envelope::parse(&envelope.to_json()).expect("reads"));
            component.attestations = read.collect();
            sign(&mut component, key).expect("signs");
            assert_eq!(component.attestations, once, "it has said so already");
        }
    }

    #[test]
    fn a_build_signs_its_own_account() {
        let mut component = empty(MANIFEST);
        let ada = SecretKey::generate().expect("a key").0;
        let folder = tempfile::tempdir().expect("folder");
        component.attestations = vec![of_build(&component, folder.path(), "rustc".to_owned())];
        sign(&mut component, &ada).expect("signs");
        let (_, provenance) = about(&component.digest(), &component.attestations);
        assert_eq!(provenance.expect("of the build").signed_by, [ada.public()]);
        assert_eq!(component.attestations.len(), 1);
    }

    #[test]
    fn nothing_is_signed_beside_a_statement_about_other_bytes() {
        let ada = SecretKey::generate().expect("a key").0;
        let mut component = empty(MANIFEST);
        let other = claimed(&component, Digest::of(b"other"), None);
        let odd = claimed(&component, component.digest(), None).to_json();
        let odd = String::from_utf8(odd).expect("JSON").replace("vnd.in-toto+json", "vnd.other+json");
        for wrong in [other, Envelope::parse(odd.as_bytes()).expect("reads")] {
            component.attestations = vec![wrong.clone()];
            let refused = sign(&mut component, &ada).expect_err("refused");
            assert!(refused.message.contains("nothing was signed"), "{refused}");
            assert_eq!(component.attestations, [wrong]);
        }
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
