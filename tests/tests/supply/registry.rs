//! A private registry: Debian's `docker-registry` on a port and folder of its own.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::support::{Ran, run};

/// What `htpasswd -B` makes of the user `ada` with the password `secret`.
const ADA: &str = "ada:$2y$05$9eJaSYnk/9BEBCYR7ga.IuzSlSyjKm9b0DL/6ayJ1MQo3vBNN.WpG\n";

pub struct Registry {
    process: Child,
    pub host: String,
    folder: TempDir,
}

impl Registry {
    pub fn start() -> Self {
        Self::with("")
    }

    /// One that only `ada` with the password `secret` may use.
    pub fn of_ada() -> Self {
        Self::with("auth:\n  htpasswd:\n    realm: test\n    path: {folder}/htpasswd\n")
    }

    fn with(more: &str) -> Self {
        let folder = TempDir::new().expect("a folder");
        let place = folder.path().display().to_string();
        std::fs::write(folder.path().join("htpasswd"), ADA).expect("a file");
        let config = format!(
            "version: 0.1\nstorage:\n  filesystem:\n    rootdirectory: {place}/data\nhttp:\n  addr: 127.0.0.1:0\n{}",
            more.replace("{folder}", &place)
        );
        let file = folder.path().join("config.yml");
        std::fs::write(&file, config).expect("a file");
        let mut command = Command::new("docker-registry");
        command.arg("serve").arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("docker-registry is there: `cargo xtask setup`");
        let mut lines = BufReader::new(process.stderr.take().expect("piped")).lines();
        let host = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let address = line.split("listening on ").nth(1)?;
            Some(address.split('"').next().unwrap_or_default().to_owned())
        });
        // What it says later has to go somewhere, or it would block.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Self { process, host: host.expect("the registry listens"), folder }
    }

    pub fn artefact(&self, name: &str) -> String {
        format!("oci://{}/{name}", self.host)
    }

    /// The file of a blob in the registry's own store.
    pub fn blob(&self, digest: &str) -> PathBuf {
        let hex = digest.strip_prefix("sha256:").expect("a digest");
        let store = self.folder.path().join("data/docker/registry/v2/blobs/sha256");
        store.join(&hex[..2]).join(hex).join("data")
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        // Already gone is as good.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The other client. Its own policy about signatures of images is not what is tested.
pub fn skopeo(args: &[&str]) -> Ran {
    run(Command::new("skopeo").arg("--insecure-policy").args(args))
}
