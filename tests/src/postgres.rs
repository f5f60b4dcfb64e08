//! A private Postgres, for tests: a cluster of its own in a temporary folder, on a free port, with a password.
//!
//! The server refuses to run as root; then it runs as the user `postgres` of its package, or as `nobody`. Nothing is
//! synced to the disk: what is lost with the machine is lost with the test.

use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A port that was free may be taken a moment later.
const TRIES: usize = 5;

/// A running server; stopped when dropped.
pub struct Postgres {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: String,
    pub database: String,
    programs: PathBuf,
    owner: Option<(u32, u32)>,
    folder: TempDir,
}

impl Postgres {
    pub fn start() -> Self {
        let programs = programs().expect("Postgres is installed: `cargo xtask setup`");
        let folder = TempDir::new().expect("a temporary folder");
        let owner = owner();
        let mut postgres = Self {
            host: "127.0.0.1".to_owned(),
            port: 0,
            user: "tester".to_owned(),
            password: "postgres-of-a-test".to_owned(),
            database: "tests".to_owned(),
            programs,
            owner,
            folder,
        };
        let secret = postgres.folder.path().join("password");
        std::fs::write(&secret, &postgres.password).expect("a file");
        if let Some((user, group)) = owner {
            for path in [postgres.folder.path(), secret.as_path()] {
                std::os::unix::fs::chown(path, Some(user), Some(group)).expect("root may give files away");
            }
        }
        let mut initdb = postgres.program("initdb");
        initdb.arg("--pgdata").arg(postgres.data()).arg("--username").arg(&postgres.user);
        initdb.args(["--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C", "--no-sync"]);
        initdb.arg("--pwfile").arg(&secret);
        run(&mut initdb);
        postgres.listen();
        postgres.query("postgres", &format!("CREATE DATABASE {}", postgres.database)).expect("a database");
        postgres
    }

    fn listen(&mut self) {
        for _ in 0..TRIES {
            let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
            self.port = free.local_addr().expect("bound").port();
            drop(free);
            let settings = format!(
                "-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off \
                 -c synchronous_commit=off -c full_page_writes=off -c max_connections=200 -c shared_buffers=128MB",
                self.port
            );
            let mut start = self.program("pg_ctl");
            start.arg("--pgdata").arg(self.data()).arg("--log").arg(self.folder.path().join("log"));
            start.args(["--wait", "--silent", "--options", &settings, "start"]);
            // The server keeps what it inherits open, so it must not be a pipe of ours.
            start.stdout(Stdio::null()).stderr(Stdio::null());
            if start.status().expect("pg_ctl starts").success() {
                return;
            }
        }
        let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        panic!("Postgres does not start:\n{log}");
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command.current_dir("/").stdin(Stdio::null());
        if let Some((user, group)) = self.owner {
            command.uid(user).gid(group);
        }
        command
    }

    /// Runs a script and answers with its rows as text: fields with `|` between them, a line each.
    pub fn sql(&self, script: &str) -> Result<String, String> {
        self.query(&self.database, script)
    }

    fn query(&self, database: &str, script: &str) -> Result<String, String> {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["--no-psqlrc", "--tuples-only", "--no-align", "--quiet", "--set", "ON_ERROR_STOP=1"]);
        psql.args(["--host", &self.host, "--port", &self.port.to_string(), "--username", &self.user]);
        psql.args(["--dbname", database, "--command", script]);
        psql.env("PGPASSWORD", &self.password).stdin(Stdio::null());
        let output = psql.output().map_err(|error| format!("psql: {error}"))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let mut stop = self.program("pg_ctl");
        stop.arg("--pgdata").arg(self.data()).args(["--mode", "immediate", "--silent", "stop"]);
        // If it has ended by itself, that is as good.
        let _ = stop.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

/// The newest of Debian's folders of programs, or the folder of `postgres` on the path.
fn programs() -> Option<PathBuf> {
    let installed = std::fs::read_dir("/usr/lib/postgresql").ok();
    let mut versions: Vec<(u32, PathBuf)> = installed
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let version = path.file_name()?.to_str()?.parse().ok()?;
            Some((version, path.join("bin"))).filter(|(_, programs)| programs.join("initdb").is_file())
        })
        .collect();
    versions.sort();
    let on_path = || {
        let folders = std::env::var_os("PATH")?;
        std::env::split_paths(&folders).find(|folder| folder.join("initdb").is_file())
    };
    versions.pop().map(|(_, programs)| programs).or_else(on_path)
}

/// Whom the server has to run as, when we are root.
fn owner() -> Option<(u32, u32)> {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    if !is_root {
        return None;
    }
    let users = std::fs::read_to_string(Path::new("/etc/passwd")).expect("a machine has users");
    let ids = |name: &str| {
        let fields: Vec<&str> = users.lines().find(|line| line.split(':').next() == Some(name))?.split(':').collect();
        Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?))
    };
    Some(ids("postgres").or_else(|| ids("nobody")).expect("a user that is not root"))
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{}: {error}", command.get_program().display()));
    assert!(
        output.status.success(),
        "{}:\n{}",
        command.get_program().display(),
        String::from_utf8_lossy(&output.stderr)
    );
}
