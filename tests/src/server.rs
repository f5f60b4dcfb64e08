//! A server of the real binary.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;

use tempfile::TempDir;

use crate::api::Api;

/// The command: `$NOETL_BIN`, else the one beside the tests.
pub fn noetl_bin() -> PathBuf {
    if let Some(named) = std::env::var_os("NOETL_BIN") {
        return PathBuf::from(named);
    }
    let tests = std::env::current_exe().expect("the path of this test");
    let beside = tests.ancestors().nth(2).expect("tests are in target/<profile>/deps").join("noetl");
    assert!(beside.is_file(), "{} is not there: run `cargo xtask build`, or set NOETL_BIN", beside.display());
    beside
}

/// A running server; killed when dropped.
pub struct Server {
    child: Child,
    pub url: String,
    data: Arc<TempDir>,
    said: Arc<Mutex<Vec<String>>>,
    reader: Option<JoinHandle<()>>,
}

impl Server {
    /// On a new folder.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// On a new folder, with variables of the environment such as `NOETL_SERVER_MAX_CALL_MB`.
    pub fn start_with(environment: &[(&str, &str)]) -> Self {
        Self::start_on(Arc::new(TempDir::new().expect("a temporary folder")), environment)
    }

    /// On the folder of a server that has stopped.
    pub fn start_on(data: Arc<TempDir>, environment: &[(&str, &str)]) -> Self {
        let child = Self::command(data.path(), environment).spawn().expect("the binary starts");
        Self::listening(child, data)
    }

    /// By a command made from [`Server::command`], which becomes the server.
    pub fn start_by(mut command: Command, data: Arc<TempDir>) -> Self {
        Self::listening(command.spawn().expect("the command starts"), data)
    }

    fn listening(mut child: Child, data: Arc<TempDir>) -> Self {
        let stderr = BufReader::new(child.stderr.take().expect("stderr is piped"));
        let said = Arc::new(Mutex::new(Vec::new()));
        let (tell, told) = mpsc::channel();
        let kept = said.clone();
        let reader = std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                if let Some(url) = line.split("listening on ").nth(1) {
                    // Nobody listens any more once the address is known.
                    let _ = tell.send(url.trim().to_owned());
                }
                kept.lock().expect("no reader panics").push(line);
            }
        });
        let url = told.recv().unwrap_or_else(|_| {
            let said = said.lock().expect("no reader panics").join("\n");
            panic!("the server ended without listening; it said:\n{said}")
        });
        Self { child, url, data, said, reader: Some(reader) }
    }

    /// The command that starts a server, for tests about starts that fail.
    pub fn command(data: &Path, environment: &[(&str, &str)]) -> Command {
        let mut command = Command::new(noetl_bin());
        command.arg("serve").arg("--data").arg(data).args(["--listen", "127.0.0.1:0"]);
        command.envs(environment.iter().copied()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    pub fn data(&self) -> &Path {
        self.data.path()
    }

    /// The folder, to start another server on it when this one is dead.
    pub fn folder(&self) -> Arc<TempDir> {
        self.data.clone()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn admin_token(&self) -> String {
        // By the server's own eyes: its folder may be mounted for it alone.
        let own = PathBuf::from(format!("/proc/{}/root", self.pid()));
        let file = own.join(self.data().strip_prefix("/").expect("an absolute path")).join("admin.token");
        std::fs::read_to_string(file).expect("made at the first start").trim().to_owned()
    }

    /// A client with the administrator's token.
    pub fn admin(&self) -> Api {
        Api::new(&self.url, Some(self.admin_token()))
    }

    /// A client without a token.
    pub fn nobody(&self) -> Api {
        Api::new(&self.url, None)
    }

    pub fn with_token(&self, token: &str) -> Api {
        Api::new(&self.url, Some(token.to_owned()))
    }

    /// Everything the server has written to stderr so far.
    pub fn said(&self) -> String {
        self.said.lock().expect("no reader panics").join("\n")
    }

    /// kill -9, and waits until it is dead.
    pub fn kill(&mut self) {
        self.child.kill().expect("it is our child");
        let _ = self.child.wait();
    }

    /// Asks the server to stop and waits until it has; answers with its folder and everything it said.
    pub fn stop(mut self) -> (Arc<TempDir>, String) {
        let asked = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        assert!(asked.expect("kill is there").success());
        let status = self.child.wait().expect("it is our child");
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the reader ends with the server");
        }
        assert!(status.success(), "the server ended with {status}:\n{}", self.said());
        (self.data.clone(), self.said())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
