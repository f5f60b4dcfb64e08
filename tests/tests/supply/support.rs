//! The command of one user: a folder for keys and credentials, and whichever server is meant.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use noetl_tests::{Server, guest, noetl_bin, with_manifest, with_marker};
use serde_json::Value;
use tempfile::TempDir;

/// How a command ended.
#[derive(Debug)]
pub struct Ran {
    code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    #[track_caller]
    pub fn ok(self) -> Self {
        self.ends(0)
    }

    #[track_caller]
    pub fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    pub fn says(self, wanted: &str) -> Self {
        let all = format!("{}{}", self.stdout, self.stderr);
        assert!(all.contains(wanted), "`{wanted}` is not in:\n{all}");
        self
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {}", self.stdout))
    }
}

pub struct User {
    home: TempDir,
}

impl User {
    pub fn new() -> Self {
        Self { home: TempDir::new().expect("a folder") }
    }

    pub fn place(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// A file's name as a word of the command line.
    pub fn word(&self, name: &str) -> String {
        self.place(name).display().to_string()
    }

    pub fn file(&self, name: &str, bytes: &[u8]) -> String {
        std::fs::write(self.place(name), bytes).expect("a file");
        self.word(name)
    }

    /// A command that needs no server.
    pub fn run(&self, args: &[&str]) -> Ran {
        run(self.command(self.home.path()).args(args))
    }

    pub fn on(&self, server: &Server, args: &[&str]) -> Ran {
        run(self.command(server.data()).args(args))
    }

    /// The public half of a new key.
    pub fn key(&self, name: &str) -> String {
        self.run(&["key", "new", name]).ok().stdout.trim().to_owned()
    }

    fn command(&self, data: &Path) -> Command {
        let mut command = Command::new(noetl_bin());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("NOETL_") {
                command.env_remove(name);
            }
        }
        command.env("NOETL_DATA", data).env("XDG_CONFIG_HOME", self.home.path().join("config"));
        // Programs that a test puts into the folder are found before those of the machine.
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(self.home.path().to_owned()).chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(folders).expect("names of folders"));
        command.env("DOCKER_CONFIG", self.home.path()).env("NOETL_BUILDER", "ada at the bench").stdin(Stdio::null());
        command
    }
}

pub fn run(command: &mut Command) -> Ran {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A transform that answers its marker, at a path and version. Tenants may put their own in its place.
pub fn versioned(path: &str, version: &str, marker: u32) -> Vec<u8> {
    let rest = "world = \"transform\"\ncapabilities = []\noverridable = true\n";
    let manifest = format!("path = \"{path}\"\nversion = \"{version}\"\n{rest}");
    with_manifest(&with_marker(&guest("versioned"), marker), &manifest)
}

/// Every version of every path a server was pushed: path, version, digest.
pub fn pushed(user: &User, server: &Server) -> Vec<Value> {
    let list = user.on(server, &["plugin", "list", "--all-versions", "--json"]).ok().json();
    let rows = list["plugins"].as_array().expect("rows").iter().filter(|row| row["embedded"] == false);
    rows.map(|row| serde_json::json!([row["entry"]["path"], row["entry"]["version"], row["entry"]["digest"]])).collect()
}
