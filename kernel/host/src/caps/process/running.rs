//! One program, from its start to the end of everything it started.
//!
//! It is started by a shell that bounds itself and then becomes the program, so the bounds hold from its first instruction
//! on. Its process group is its own: when it has ended, when its time is over and when nobody waits for it any more (the
//! call was given up), the whole group is killed.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

use super::wit;

/// Bytes kept of each of what a program writes.
const MOST_OUTPUT: usize = 1 << 20;
/// Sets the bounds (no core files, processor seconds, KiB of memory, blocks of 512 bytes a file) and becomes the program.
const BOUNDED: &str = r#"ulimit -c 0 && ulimit -t 600 && ulimit -v 4194304 && ulimit -f 2097152 && exec "$@""#;
const SHELL: &str = "/bin/sh";
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Kills a group when dropped.
struct Group(Option<Pid>);

impl Group {
    fn kill(&self) {
        if let Some(leader) = self.0 {
            // There may be nobody left in it, which is as good.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

pub(super) async fn run(command: &wit::Command, folder: &Path, time: Duration) -> io::Result<wit::Exited> {
    let mut child = Command::new(SHELL)
        .args(["-c", BOUNDED, "noetl", command.program.as_str()])
        .args(&command.arguments)
        .current_dir(folder)
        .env_clear()
        .env("PATH", PATH)
        .env("HOME", folder)
        .env("LANG", "C.UTF-8")
        .envs(command.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let group = Group(leader);
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let reading = tokio::spawn(async move { tokio::join!(read(output), read(errors)) });
    let ended = tokio::time::timeout(time, child.wait()).await;
    // What the program left behind holds its output open; without it the reading ends.
    group.kill();
    let (status, timed_out) = match ended {
        Ok(status) => (status?, false),
        Err(_) => (child.wait().await?, true),
    };
    let ((output, output_cut), (errors, errors_cut)) = reading.await.map_err(io::Error::other)?;
    let cut = output_cut || errors_cut;
    Ok(wit::Exited { code: status.code(), signal: signal(status), output, errors, cut, timed_out })
}

fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

/// All of it, of which as much is kept as may be: a program whose output nobody reads would stand still.
async fn read(from: Option<impl AsyncRead + Unpin>) -> (Vec<u8>, bool) {
    let (mut kept, mut cut) = (Vec::new(), false);
    let Some(mut from) = from else { return (kept, cut) };
    let mut piece = vec![0; 16 << 10];
    // A pipe that cannot be read any more has nothing more to say.
    while let Ok(count @ 1..) = from.read(&mut piece).await {
        let room = MOST_OUTPUT - kept.len();
        cut |= count > room;
        kept.extend_from_slice(&piece[..count.min(room)]);
    }
    (kept, cut)
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
        run(&shell(script), folder.path(), time).await.expect("it runs")
    }

    #[tokio::test]
    async fn a_program_has_its_own_environment_and_says_how_it_ended() {
        let exited = ran("echo \"$GIVEN $CARGO_MANIFEST_DIR\"; echo no >&2; exit 3", LONG).await;
        assert_eq!((exited.code, exited.timed_out), (Some(3), false));
        assert_eq!((exited.output.as_slice(), exited.errors.as_slice()), (&b"yes \n"[..], &b"no\n"[..]));
        let missing = wit::Command { program: "no-such-program".to_owned(), ..shell("") };
        let folder = tempfile::tempdir().expect("a folder");
        let exited = run(&missing, folder.path(), LONG).await.expect("the shell runs");
        assert_eq!(exited.code, Some(127));
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
        let left: i32 = String::from_utf8(exited.output).expect("digits").trim().parse().expect("an id");
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
    async fn time_ends_the_whole_group() {
        let exited = ran("echo begun; sleep 600 | sleep 600", Duration::from_millis(300)).await;
        assert!(exited.timed_out);
        assert_eq!(exited.code, None);
    }
}
