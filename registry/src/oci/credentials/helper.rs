//! Credential helpers: the programs that keep logins for docker, `docker-credential-NAME`.
//!
//! A helper is given the name of a server on its standard input and answers with a user's name and a secret. It may ask a
//! keychain, and that a person: one that waits for a window nobody sees would hold the command for ever. So it has a time,
//! after which it is ended, and its name is in every error, since its user may not know that there is one.
//!
//! Bad input: a helper that says more than a credential can be is not read on, and then fails by itself. A program that it
//! left behind may hold its output open; that is not waited for either.

use std::io::{Read, Write as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use docker_credential::{CredentialRetrievalError, DockerCredential};
use serde::Deserialize;

/// Long enough for somebody to unlock a keychain.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a helper is looked after.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// More than any credential has.
const LONGEST_ANSWER: u64 = 256 << 10;
/// What a helper calls a user who has an identity token.
const TOKEN_USER: &str = "<token>";

/// Why a helper gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum HelperError {
    #[error("the helper `{helper}` cannot be run: {why}")]
    Unusable { helper: String, why: String },
    #[error("the helper `{helper}` did not answer within {} s", .patience.as_secs())]
    Silent { helper: String, patience: Duration },
    #[error("the helper `{helper}` answered with what is no credential")]
    Unreadable { helper: String },
    /// What it said may hold a secret.
    #[error("the helper failed")]
    Failed(CredentialRetrievalError),
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    username: String,
    secret: String,
}

/// What the helper of this name has for a server.
pub fn ask(name: &str, server: &str) -> Result<DockerCredential, HelperError> {
    let helper = format!("docker-credential-{name}");
    let mut command = Command::new(&helper);
    command.arg("get");
    run(command, &helper, server, PATIENCE)
}

fn run(mut command: Command, helper: &str, server: &str, patience: Duration) -> Result<DockerCredential, HelperError> {
    let unusable = |error: std::io::Error| HelperError::Unusable { helper: helper.to_owned(), why: error.to_string() };
    let silent = || HelperError::Silent { helper: helper.to_owned(), patience };
    let until = Instant::now() + patience;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().map_err(unusable)?;
    if let Some(mut stdin) = process.stdin.take() {
        // One that does not listen may know the answer all the same.
        let _ = stdin.write_all(server.as_bytes());
    }
    let (stdout, stderr) = (read_aside(process.stdout.take()), read_aside(process.stderr.take()));
    let status = end_of(&mut process, until).map_err(unusable)?.ok_or_else(silent)?;
    let rest = |heard: Receiver<Vec<u8>>| heard.recv_timeout(until.saturating_duration_since(Instant::now()));
    let stdout = rest(stdout).map_err(|_| silent())?;
    if !status.success() {
        let text = |said: &[u8]| String::from_utf8_lossy(said).into_owned();
        let (stdout, stderr) = (text(&stdout), text(&rest(stderr).unwrap_or_default()));
        let failure = CredentialRetrievalError::HelperFailure { helper: helper.to_owned(), stdout, stderr };
        return Err(HelperError::Failed(failure));
    }
    let answer: Answer =
        serde_json::from_slice(&stdout).map_err(|_| HelperError::Unreadable { helper: helper.to_owned() })?;
    Ok(match answer.username.as_str() {
        TOKEN_USER => DockerCredential::IdentityToken(answer.secret),
        _ => DockerCredential::UsernamePassword(answer.username, answer.secret),
    })
}

/// How a process ended; none when it had to be ended.
fn end_of(process: &mut Child, until: Instant) -> std::io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = process.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= until {
            // Already gone is as good.
            let _ = process.kill();
            let _ = process.wait();
            return Ok(None);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Reads while the process runs: one whose output nobody takes would not come to its end.
fn read_aside(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (told, heard) = channel();
    std::thread::spawn(move || {
        let mut said = Vec::new();
        if let Some(pipe) = pipe {
            // What came before a failure is all there is.
            let _ = pipe.take(LONGEST_ANSWER).read_to_end(&mut said);
        }
        // Nobody waits for it after the time is over.
        let _ = told.send(said);
    });
    heard
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// A shell in the place of a helper.
    fn helper(script: &str, patience: Duration) -> Result<DockerCredential, HelperError> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run(command, "docker-credential-x", "ghcr.io", patience)
    }

    #[test]
    fn a_helper_is_told_the_server_and_answers_with_a_login() {
        let script = r#"read server; echo "{\"ServerURL\":\"x\",\"Username\":\"ada\",\"Secret\":\"$server\"}""#;
        // Without an end of the line `read` fails, and has read all the same.
        let login = helper(script, PATIENCE).expect("a login");
        assert_eq!(login, DockerCredential::UsernamePassword("ada".to_owned(), "ghcr.io".to_owned()));
        let token = helper(r#"echo '{"Username":"<token>","Secret":"hush"}'"#, PATIENCE).expect("a token");
        assert_eq!(token, DockerCredential::IdentityToken("hush".to_owned()));
    }

    #[test]
    fn a_helper_that_hangs_is_ended_and_named() {
        let started = Instant::now();
        for script in ["exec sleep 60", "exec >&- 2>&-; exec sleep 60", "sleep 5 & exit 0"] {
            let refused = helper(script, Duration::from_millis(300)).expect_err("it says nothing");
            assert!(matches!(refused, HelperError::Silent { .. }), "{script}: {refused}");
            assert!(refused.to_string().contains("docker-credential-x"), "{refused}");
        }
        assert!(started.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn a_helper_that_is_broken_or_not_there_is_named_and_what_it_said_is_not_repeated() {
        let refused = run(Command::new("docker-credential-none-such"), "docker-credential-none-such", "a", PATIENCE);
        assert!(refused.expect_err("no program").to_string().contains("docker-credential-none-such"));
        let refused = helper("echo hush; exit 1", PATIENCE).expect_err("it fails");
        assert!(!refused.to_string().contains("hush"), "{refused}");
        for said in ["echo hush", "yes hush | head -c 1000000"] {
            let refused = helper(said, PATIENCE).expect_err("no credential");
            assert!(!refused.to_string().contains("hush"), "{refused}");
        }
    }
}
