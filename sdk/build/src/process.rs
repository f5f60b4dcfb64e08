//! Running a helper program: its output as text, and a limit on its time.

use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How a program that was given a limited time ended.
pub(crate) struct Ended {
    pub success: bool,
    /// What it wrote to stdout and stderr.
    pub output: String,
}

/// The trimmed stdout of a program that succeeded; none if it is absent or failed.
pub(crate) fn answer(program: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// Runs to the end or to the limit, whichever is first; at the limit the program is killed and counts as failed.
pub(crate) fn run_limited(command: &mut Command, limit: Duration) -> io::Result<Ended> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    // The pipes are drained by threads: a program that fills one while nobody reads would wait for ever.
    let readers = [
        child.stdout.take().map(|pipe| thread::spawn(move || read_all(pipe))),
        child.stderr.take().map(|pipe| thread::spawn(move || read_all(pipe))),
    ];
    let deadline = Instant::now() + limit;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            break None;
        }
        thread::sleep(Duration::from_millis(20));
    };
    let Some(status) = status else {
        // A grandchild may hold the pipes open for as long as it likes, so what was written is not waited for.
        return Ok(Ended { success: false, output: format!("no answer within {} s", limit.as_secs()) });
    };
    let output = readers.into_iter().flatten().filter_map(|reader| reader.join().ok()).collect::<String>();
    Ok(Ended { success: status.success(), output })
}

fn read_all(mut pipe: impl Read) -> String {
    let mut bytes = Vec::new();
    // A broken pipe ends the text; what came before it is still worth showing.
    let _ = pipe.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_does_not_end_is_stopped() {
        let ended = run_limited(Command::new("sleep").arg("600"), Duration::from_millis(50)).expect("sleep starts");
        assert!(!ended.success);
        assert!(ended.output.contains("no answer"));
    }

    #[test]
    fn both_streams_of_a_failed_program_are_kept() {
        let ended =
            run_limited(Command::new("sh").args(["-c", "echo one; echo two >&2; exit 3"]), Duration::from_secs(60))
                .expect("sh starts");
        assert!(!ended.success);
        assert!(ended.output.contains("one") && ended.output.contains("two"));
    }
}
