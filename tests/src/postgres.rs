//! A private PostgreSQL: Debian's programs on a port and folder of their own.
//!
//! It takes connections over TCP with a password (SCRAM), as servers of the world do, encrypted if it is given a certificate, and
//! syncs nothing. The programs refuse to run as root, so that they run as the user their package made where the tests do.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// A running server; stopped when dropped.
pub struct Postgres {
    process: Child,
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: String,
    pub database: String,
    _folder: TempDir,
}

const CERTIFICATE: &str = "server.crt";
const KEY: &str = "server.key";
/// Ports that somebody else took between looking and listening.
const ATTEMPTS: usize = 5;

impl Postgres {
    pub fn start() -> Self {
        Self::start_with(None)
    }

    /// Also takes encrypted connections; both as PEM.
    pub fn start_encrypted(certificate: &str, key: &str) -> Self {
        Self::start_with(Some((certificate, key)))
    }

    fn start_with(encryption: Option<(&str, &str)>) -> Self {
        let folder = TempDir::new().expect("a folder");
        let (user, password) = ("noetl", "a-password-of-tests");
        let secret = folder.path().join("password");
        std::fs::write(&secret, password).expect("a file");
        if let Some((certificate, key)) = encryption {
            for (name, text) in [(CERTIFICATE, certificate), (KEY, key)] {
                let file = folder.path().join(name);
                std::fs::write(&file, text).expect("a file");
                // It takes no key that others can read.
                std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("closed to others");
            }
        }
        give_to_the_user(folder.path());
        let mut initdb = program("initdb");
        initdb.arg("--pgdata").arg(folder.path().join("data")).arg("--pwfile").arg(&secret);
        initdb.args(["--username", user, "--auth", "scram-sha-256", "--encoding", "UTF8", "--no-locale", "--no-sync"]);
        let made = initdb.current_dir(folder.path()).output().expect("initdb is there: `cargo xtask setup`");
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        for _ in 0..ATTEMPTS {
            let port = free_port();
            if let Some(process) = listening(folder.path(), port, encryption.is_some()) {
                return Self {
                    process,
                    host: "127.0.0.1".to_owned(),
                    port,
                    user: user.to_owned(),
                    password: password.to_owned(),
                    database: "postgres".to_owned(),
                    _folder: folder,
                };
            }
        }
        panic!("PostgreSQL found no free port")
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // It stops at once and takes its processes along; killed, it would leave them. Already gone is as good.
        let _ = Command::new("kill").args(["-QUIT", &self.process.id().to_string()]).status();
        let _ = self.process.wait();
    }
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().expect("id is there");
    String::from_utf8_lossy(&id.stdout).trim() == "0"
}

fn give_to_the_user(folder: &Path) {
    if is_root() {
        let given = Command::new("chown").arg("-R").arg("postgres:postgres").arg(folder).status();
        assert!(given.expect("chown is there").success(), "the user `postgres` is there: `cargo xtask setup`");
    }
}

/// One of the server's programs, as a user it runs as.
fn program(name: &str) -> Command {
    let program = installed().map_or_else(|| PathBuf::from(name), |folder| folder.join(name));
    if !is_root() {
        return Command::new(program);
    }
    // It becomes the program, so that the process that is started is the server itself.
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "postgres", "--regid", "postgres", "--clear-groups", "--"]).arg(program);
    command
}

/// Debian has them outside of the search path, a folder a version; the newest.
fn installed() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions.flatten().map(|entry| entry.path()).max_by_key(number)?;
    Some(newest.join("bin"))
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// The server, once it takes connections; nothing if it ended before.
fn listening(folder: &Path, port: u16, encrypted: bool) -> Option<Child> {
    let mut command = program("postgres");
    command.arg("-D").arg(folder.join("data")).arg("-k").arg(folder);
    command.args(["-h", "127.0.0.1", "-p", &port.to_string(), "-F", "-c", "full_page_writes=off"]);
    if encrypted {
        let at = |name: &str| folder.join(name).display().to_string();
        let files = [format!("ssl_cert_file={}", at(CERTIFICATE)), format!("ssl_key_file={}", at(KEY))];
        command.args(["-c", "ssl=on", "-c", &files[0], "-c", &files[1]]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).current_dir(folder);
    let mut process = command.spawn().expect("postgres is there: `cargo xtask setup`");
    let mut lines = BufReader::new(process.stderr.take().expect("piped")).lines().map_while(Result::ok);
    let ready = lines.any(|line| line.contains("ready to accept connections"));
    // What it says later has to go somewhere, or it would block.
    std::thread::spawn(move || lines.for_each(drop));
    if !ready {
        let _ = process.wait();
    }
    ready.then_some(process)
}
