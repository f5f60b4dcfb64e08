//! The command as an author types it, against a server of its own.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use noetl_tests::{Ran, Server, noetl_bin, run};
use serde_json::Value;
use tempfile::TempDir;

/// A server, and a folder an author works in.
pub struct Desk {
    server: Server,
    folder: TempDir,
}

impl Desk {
    pub fn new() -> Self {
        Self::with(Server::start())
    }

    /// One whose plugins reach servers of this machine.
    pub fn reaching() -> Self {
        Self::with(Server::start_with(&[("NOETL_POLICY_HTTP_PRIVATE_ADDRESSES", "true")]))
    }

    fn with(server: Server) -> Self {
        Self { server, folder: TempDir::new().expect("a folder") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        let file = self.path(name);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("folder");
        std::fs::write(file, text).expect("file");
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("the file is there")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(noetl_bin());
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("NOETL_")) {
            command.env_remove(name);
        }
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("NOETL_DATA", self.server.data());
        command
    }

    pub fn noetl(&self, arguments: &[&str]) -> Ran {
        run(&mut self.command(arguments))
    }

    /// Calls a tool and gives its answer.
    #[track_caller]
    pub fn call(&self, path: &str, arguments: &str) -> Value {
        self.noetl(&["plugin", "call", path, "--json-args", arguments]).ok().json()
    }

    pub fn watch(&self, what: &str) -> Watching {
        let mut command = self.command(&["--json", "plugin", "watch", what]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the command starts");
        let lines = BufReader::new(child.stdout.take().expect("piped"));
        Watching { child, lines }
    }
}

/// `noetl plugin watch`; ends with the test.
pub struct Watching {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Watching {
    /// Waits for the next version to be live.
    pub fn next(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line:?}"))
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        // Already gone is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The folder of the repository.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are a folder of it")
}
