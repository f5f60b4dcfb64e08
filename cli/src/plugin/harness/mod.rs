//! `noetl plugin harness`: a component in the real host, driven by an author's tests over stdin and stdout.
//!
//! It is a kernel on a temporary data folder in this process: the same limits, the same staging of writes, the same
//! errors as on a server, and nothing left behind. Only HTTP is different: requests are answered from a list and never
//! reach the network ([`canned`]).
//!
//! The protocol is the SDK's own file, compiled into both sides, so that they cannot disagree.
//!
//! Bad input: a line that is not a request is answered with an error of the class `harness`, and the next one is read.

mod canned;
#[path = "../../../../sdk/rust/src/harness/protocol.rs"]
mod protocol;
mod session;

use std::io::{BufRead as _, Write as _};
use std::path::PathBuf;

use clap::Args;

use crate::failure::{self, Failure, Outcome};
use protocol::{CLASS_HARNESS, CallError, Outcome as Said, Reply, Request};
pub use session::Session;

#[derive(Debug, Args)]
pub struct Harness {
    /// The component to run.
    component: PathBuf,
}

impl Harness {
    pub fn run(self) -> Outcome {
        let folder = tempfile::Builder::new()
            .prefix("noetl-harness-")
            .tempdir()
            .map_err(|error| Failure::failed(format!("make a temporary folder: {error}")))?;
        let bytes = std::fs::read(&self.component).map_err(failure::io("read the component", &self.component))?;
        let runtime =
            tokio::runtime::Runtime::new().map_err(|error| Failure::failed(format!("start the runtime: {error}")))?;
        let mut session = match runtime.block_on(Session::start(folder.path(), bytes)) {
            Ok((session, ready)) => {
                answer(&Reply::from(Said::Ready(ready)));
                session
            }
            Err(error) => {
                let message = error.message.clone();
                answer(&Reply::from(Said::Error(error)));
                return Err(Failure::failed(message));
            }
        };
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            let reply = match serde_json::from_str::<Request>(&line) {
                Ok(request) => runtime.block_on(session.serve(request)),
                Err(error) => Reply::from(Said::Error(confused(format!("this line is not a request: {error}")))),
            };
            answer(&reply);
        }
        // The kernel waits for its own threads when it is dropped, which must not happen on the runtime.
        drop(runtime);
        drop(session);
        Ok(())
    }
}

/// A request that cannot be served, whatever the component does.
fn confused(message: String) -> CallError {
    CallError { class: CLASS_HARNESS.to_owned(), message }
}

/// A reader that is gone needs no answer; the end of its input ends this process too.
fn answer(reply: &Reply) {
    let line = serde_json::to_string(reply).expect("replies are plain data");
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}
