//! What a process has used, as the system counts it: processor time and bytes handed to the disk.

use anyhow::{Context, Result};

/// The system tells times of processes in hundredths of a second, whatever it counts in itself.
const TICKS_A_SECOND: f64 = 100.0;

/// Since the start of the process.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    pub cpu_seconds: f64,
    /// Nothing where the system does not let us see it.
    pub written_bytes: Option<f64>,
}

impl Usage {
    pub fn of(pid: u32) -> Result<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).context("the server runs")?;
        let cpu_seconds = ticks(&stat).context("the times of a process")? / TICKS_A_SECOND;
        let io = std::fs::read_to_string(format!("/proc/{pid}/io")).ok();
        Ok(Self { cpu_seconds, written_bytes: io.as_deref().and_then(written) })
    }
}

/// User and system time. The name before them is in parentheses and may have spaces and parentheses in it.
fn ticks(stat: &str) -> Option<f64> {
    let (_, after) = stat.rsplit_once(')')?;
    let mut fields = after.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

fn written(io: &str) -> Option<f64> {
    io.lines().find_map(|line| line.strip_prefix("write_bytes:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_whatever_the_process_is_called() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 900 0 3 0 120 34 5 6 20 0 9 0 100 1000 200";
        assert_eq!(ticks(stat), Some(154.0));
        assert_eq!(ticks("7 (short) S 1"), None);
    }

    #[test]
    fn bytes_for_the_disk_are_not_bytes_written() {
        let io = "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 4096\ncancelled_write_bytes: 7\n";
        assert_eq!(written(io), Some(4096.0));
        assert_eq!(written("wchar: 2\n"), None);
    }
}
