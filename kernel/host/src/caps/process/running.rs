//! One program, from its start to the end of everything it started.
//!
//! It is started by a shell that bounds itself and then becomes the program, so the bounds hold from its first instruction
//! on. When it has ended, when its time is over and when nobody waits for it any more (the call was given up), its whole
//! [`Family`] is killed. What was written until then is the output; a reader that somebody keeps waiting all the same is
//! given up.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::Pid;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::task::JoinHandle;

use super::environment::PATH;
use super::family::{self, Family};
use super::wit;

/// Bytes kept of each of what a program writes.
const MOST_OUTPUT: usize = 1 << 20;
/// How long the rest of the output is waited for when everybody who could write it has been killed.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Sets the bounds (no core files, processor seconds, KiB of memory, blocks of 512 bytes a file) and becomes the program.
const BOUNDED: &str = r#"ulimit -c 0 && ulimit -t 600 && ulimit -v 4194304 && ulimit -f 2097152 && exec "$@""#;
const SHELL: &str = "/bin/sh";

/// Runs the file, which is the one of the command's program.
pub(super) async fn run(file: &Path, command: &wit::Command, folder: &Path, time: Duration) -> io::Result<wit::Exited> {
    let mark = family::new_mark();
    let mut child = Command::new(SHELL)
        .args(["-c", BOUNDED, "noetl"])
        .arg(file)
        .args(&command.arguments)
        .current_dir(folder)
        .env_clear()
        .env("PATH", PATH)
        .env("HOME", folder)
        .env("LANG", "C.UTF-8")
        .envs(command.environment.iter().map(|(name, value)| (name, value)))
        .env(family::MARK, &mark)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let leader = leader.ok_or_else(|| io::Error::other("the program has no id"))?;
    let family = Family::new(leader, mark);
    let output = Reading::start(child.stdout.take());
    let errors = Reading::start(child.stderr.take());
    let ended = tokio::time::timeout(time, child.wait()).await;
    // What the program left behind holds its output open; without it the reading ends.
    family.end().await;
    let (status, timed_out) = match ended {
        Ok(status) => (status?, false),
        Err(_) => (child.wait().await?, true),
    };
    let ((output, output_cut), (errors, errors_cut)) = tokio::join!(output.end(), errors.end());
    let cut = output_cut || errors_cut;
    Ok(wit::Exited { code: status.code(), signal: signal(status), output, errors, cut, timed_out })
}

fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    cut: bool,
}

/// All of a stream is read, of which as much is kept as may be: a program whose output nobody reads would stand still.
struct Reading {
    kept: Arc<Mutex<Kept>>,
    task: JoinHandle<()>,
}

impl Reading {
    fn start(from: Option<impl AsyncRead + Unpin + Send + 'static>) -> Self {
        let kept = Arc::new(Mutex::new(Kept::default()));
        let into = kept.clone();
        let task = tokio::spawn(async move {
            let Some(mut from) = from else { return };
            let mut piece = vec![0; 16 << 10];
            // A pipe that cannot be read any more has nothing more to say.
            while let Ok(count @ 1..) = from.read(&mut piece).await {
                let mut kept = into.lock();
                let room = MOST_OUTPUT - kept.bytes.len();
                kept.cut |= count > room;
                kept.bytes.extend_from_slice(&piece[..count.min(room)]);
            }
        });
        Self { kept, task }
    }

    /// What was kept, and whether there was more.
    async fn end(mut self) -> (Vec<u8>, bool) {
        let whole = tokio::time::timeout(LAST_WORDS, &mut self.task).await.is_ok();
        let kept = std::mem::take(&mut *self.kept.lock());
        (kept.bytes, kept.cut || !whole)
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn shell(script: &str) -> wit::Command {
        wit::Command {
            program: "sh".to_owned(),
            arguments: vec!["-c".to_owned(), script.to_owned()],
            folder: None,
            environment: vec![("GIVEN".to_owned(), "yes".to_owned())],
            timeout_ms: None,
        }
    }

    async fn ran(script: &str, time: Duration) -> wit::Exited {
        let folder = tempfile::tempdir().expect("a folder");
        run(Path::new("/bin/sh"), &shell(script), folder.path(), time).await.expect("it runs")
    }

    #[tokio::test]
    async fn a_program_has_its_own_environment_and_says_how_it_ended() {
        let exited = ran("echo \"$GIVEN $CARGO_MANIFEST_DIR\"; echo no >&2; exit 3", LONG).await;
        assert_eq!((exited.code, exited.timed_out), (Some(3), false));
        assert_eq!((exited.output.as_slice(), exited.errors.as_slice()), (&b"yes \n"[..], &b"no\n"[..]));
    }

    #[tokio::test]
    async fn output_beyond_the_bound_is_cut_and_the_program_goes_on() {
        let exited = ran("head -c 3000000 /dev/zero; exit 5", LONG).await;
        assert_eq!((exited.code, exited.output.len(), exited.cut), (Some(5), MOST_OUTPUT, true));
    }

    #[tokio::test]
    async fn what_a_program_started_ends_with_it() {
        let exited = ran("sleep 600 & echo $!", LONG).await;
        assert_eq!(exited.code, Some(0), "its own end is not waited for by what it left behind");
        until_gone(&exited.output).await;
    }

    /// Waits for the end of a process that wrote its id.
    async fn until_gone(output: &[u8]) {
        let left: i32 = String::from_utf8_lossy(output).trim().parse().expect("an id");
        let gone = || {
            let status = std::fs::read_to_string(format!("/proc/{left}/stat")).unwrap_or_default();
            // One that nobody has waited for yet is there as a name without a process.
            status.is_empty() || status.contains(") Z ")
        };
        while !gone() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn who_leaves_the_group_and_keeps_the_output_open_ends_with_the_program() {
        // A session of its own and no parent any more.
        let orphan = "mkfifo f; (setsid sh -c 'echo $$; echo >f; exec sleep 600' &); read x <f";
        let exited = ran(orphan, LONG).await;
        assert_eq!((exited.code, exited.timed_out), (Some(0), false));
        until_gone(&exited.output).await;
        // A session of its own and an empty environment.
        let bare = "mkfifo f; setsid env -i /bin/sh -c 'echo $$; echo >f; exec /bin/sleep 600' & read x <f; sleep 600";
        let exited = ran(bare, Duration::from_secs(3)).await;
        assert!(exited.timed_out);
        until_gone(&exited.output).await;
    }

    #[tokio::test]
    async fn time_ends_the_whole_group() {
        let exited = ran("echo begun; sleep 600 | sleep 600", Duration::from_millis(300)).await;
        assert!(exited.timed_out);
        assert_eq!(exited.code, None);
    }
}
