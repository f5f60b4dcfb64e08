//! What a script uses that no setting of the library bounds.
//!
//! Sorting, `DISTINCT` and queries that are kept for later spill to temporary files without a largest size, and a statement
//! holds as many values of the largest size as it has registers. The library can bound its heap, but for the whole process:
//! a script at that bound would take the platform's own tables with it, and the index stops for good at its first failed
//! write. So a script that runs looks every few milliseconds at what its thread has written and at what the machine has
//! left, and gives up by itself; whoever uses nothing never notices.
//!
//! Where the system does not tell (no `/proc`), nothing is bounded here.

use std::fs;
use std::time::{Duration, Instant};

use super::super::{Fault, SqlError};

/// What one script writes: to its database, to the journal and to temporary files.
const MOST_WRITTEN: u64 = 1 << 30;
/// Memory that scripts leave to everybody else.
const LEAST_MEMORY: u64 = 256 << 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// What there was too little of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overrun {
    Disk,
    Memory,
    /// Uses of slow functions in one statement.
    Functions,
}

impl From<Overrun> for SqlError {
    fn from(overrun: Overrun) -> Self {
        let (sqlstate, message) = match overrun {
            Overrun::Disk => ("54000", format!("the script has written more than {} MiB to files", MOST_WRITTEN >> 20)),
            Overrun::Memory => {
                ("53200", format!("the machine has less than {} MiB of memory left", LEAST_MEMORY >> 20))
            }
            Overrun::Functions => {
                let text = "a statement uses `instr`, `replace`, `LIKE` and `GLOB` at most 100 times together, and \
                            `json_patch` 5 times";
                ("54000", text.to_owned())
            }
        };
        let fault = Fault { sqlstate: sqlstate.to_owned(), message, ..Fault::default() };
        SqlError::Sql(Box::new(fault))
    }
}

/// For the thread that made it.
pub(super) struct Meter {
    written_before: u64,
    next_look: Instant,
}

impl Meter {
    pub(super) fn new() -> Self {
        Self { written_before: written().unwrap_or_default(), next_look: Instant::now() + BETWEEN_LOOKS }
    }

    /// What is over, if it is time to look.
    pub(super) fn look(&mut self, now: Instant) -> Option<Overrun> {
        if now < self.next_look {
            return None;
        }
        self.next_look = now + BETWEEN_LOOKS;
        judge(written().map(|bytes| bytes.saturating_sub(self.written_before)), memory_left())
    }
}

fn judge(written: Option<u64>, left: Option<u64>) -> Option<Overrun> {
    if written.is_some_and(|bytes| bytes > MOST_WRITTEN) {
        Some(Overrun::Disk)
    } else if left.is_some_and(|bytes| bytes < LEAST_MEMORY) {
        Some(Overrun::Memory)
    } else {
        None
    }
}

/// Bytes that this thread has handed to the system so far. Results on their way to a payload are written by other threads.
fn written() -> Option<u64> {
    number_after(&fs::read_to_string("/proc/thread-self/io").ok()?, "wchar:")
}

/// The machine's, or that of the container, whichever is less.
fn memory_left() -> Option<u64> {
    let machine = number_after(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")? << 10;
    let of_container = |name: &str| {
        let text = fs::read_to_string(format!("/sys/fs/cgroup/memory.{name}")).ok()?;
        text.trim().parse::<u64>().ok()
    };
    // Without a limit the file says `max`, which is no number.
    let Some(limit) = of_container("max") else { return Some(machine) };
    let kept = fs::read_to_string("/sys/fs/cgroup/memory.stat").map_or(0, |text| reclaimable(&text));
    let used = of_container("current").unwrap_or_default().saturating_sub(kept);
    Some(machine.min(limit.saturating_sub(used)))
}

/// What the system only keeps, of files and of its own: it counts as used, and is given back when it is needed.
fn reclaimable(stat: &str) -> u64 {
    let parts = ["inactive_file ", "active_file ", "slab_reclaimable "];
    parts.into_iter().filter_map(|part| number_after(stat, part)).sum()
}

/// The number in the line that begins so.
fn number_after(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_over_is_told_apart() {
        assert_eq!(judge(Some(MOST_WRITTEN), Some(LEAST_MEMORY)), None);
        assert_eq!(judge(Some(MOST_WRITTEN + 1), Some(LEAST_MEMORY)), Some(Overrun::Disk));
        assert_eq!(judge(Some(0), Some(LEAST_MEMORY - 1)), Some(Overrun::Memory));
        assert_eq!(judge(None, None), None);
    }

    #[test]
    fn what_a_thread_writes_is_counted_and_what_others_write_is_not() {
        let Some(before) = written() else { return };
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str| fs::write(folder.path().join(name), vec![7; 1 << 20]).expect("written");
        write("mine");
        let after = written().expect("it was there");
        assert!(after >= before + (1 << 20), "{before} {after}");
        std::thread::scope(|scope| {
            scope.spawn(|| write("theirs"));
        });
        assert_eq!(written(), Some(after));
    }

    #[test]
    fn a_number_is_found_in_its_line() {
        let text = "MemTotal:       10 kB\nMemAvailable:   7 kB\n";
        assert_eq!(number_after(text, "MemAvailable:"), Some(7));
        assert_eq!(number_after(text, "SwapFree:"), None);
    }

    #[test]
    fn what_the_system_gives_back_is_not_used() {
        let stat = "anon 1000\nfile 70\ninactive_anon 500\ninactive_file 10\nactive_file 20\nslab_reclaimable 40\n";
        assert_eq!(reclaimable(stat), 70);
        assert_eq!(reclaimable("anon 1000\n"), 0);
    }
}
