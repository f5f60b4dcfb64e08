//! A program and everything it started, however that has arranged itself since.
//!
//! A process group is left with one system call, and who has lost its parent belongs to the machine's first process. What is
//! not left so easily is the environment that a process began with, which its children begin with too: it carries a mark
//! of the call. So the family is the group, whoever carries the mark, and the children of all of these; it is looked up in
//! `/proc` and killed until nobody is left.
//!
//! Not found is a process that has left the group, lost its parent and begun again with an empty environment, all three. It
//! would take a control group or a namespace to hold that, which a server without privileges cannot make everywhere.

use std::collections::HashSet;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// The variable with the mark. Steps cannot set it: see `environment`.
pub(super) const MARK: &str = "NOETL_PROCESS";
/// Looks at most: who starts processes faster than they are found has no claim to be waited for.
const MOST_ROUNDS: usize = 200;

/// A mark that no other call of any server on this machine has.
pub(super) fn new_mark() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Killed when dropped; who is found only later, in the background.
pub(super) struct Family {
    leader: Pid,
    mark: String,
    ended: bool,
}

impl Family {
    pub(super) fn new(leader: Pid, mark: String) -> Self {
        Self { leader, mark, ended: false }
    }

    /// Ends everybody. Answers when nobody is found any more.
    pub(super) async fn end(mut self) {
        let (leader, mark) = (self.leader, std::mem::take(&mut self.mark));
        // Whoever is dropped while it waits has started the search already, and it goes on by itself.
        self.ended = true;
        // A search that panicked has nothing to say.
        let _ended = tokio::task::spawn_blocking(move || search(leader, &mark)).await;
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        // At once, before anybody is killed by itself: who has lost its parent is harder to find.
        strike(self.leader, &self.mark);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (leader, mark) = (self.leader, std::mem::take(&mut self.mark));
            runtime.spawn_blocking(move || search(leader, &mark));
        }
    }
}

fn search(leader: Pid, mark: &str) {
    for _ in 0..MOST_ROUNDS {
        if strike(leader, mark) {
            return;
        }
        std::thread::yield_now();
    }
    tracing::warn!(mark, "a program starts processes faster than they are killed");
}

/// Kills everybody who is found; whether there was nobody.
fn strike(leader: Pid, mark: &str) -> bool {
    let found = members(leader, mark);
    // Those that have come to the group since then too. Whoever is not there any more is as good as killed.
    let _ = kill_process_group(leader, Signal::KILL);
    for pid in &found {
        let _ = kill_process(*pid, Signal::KILL);
    }
    found.is_empty()
}

struct Process {
    id: i32,
    parent: i32,
    group: i32,
}

/// Those that still run. One that has ended and that nobody has waited for is no member.
fn members(leader: Pid, mark: &str) -> Vec<Pid> {
    let all = processes();
    let marked = format!("{MARK}={mark}");
    let leader = leader.as_raw_nonzero().get();
    let mut family: HashSet<i32> = all
        .iter()
        .filter(|process| process.group == leader || process.id == leader || carries(process.id, &marked))
        .map(|process| process.id)
        .collect();
    // Children of children, until there are no more.
    loop {
        let is_new = |process: &&Process| family.contains(&process.parent) && !family.contains(&process.id);
        let children: Vec<i32> = all.iter().filter(is_new).map(|process| process.id).collect();
        if children.is_empty() {
            break;
        }
        family.extend(children);
    }
    family.into_iter().filter_map(Pid::from_raw).collect()
}

fn processes() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(process).collect()
}

fn process(id: i32) -> Option<Process> {
    // A process names itself, and not always in UTF-8: one that could not be read would never be killed.
    let stat = fs::read(format!("/proc/{id}/stat")).ok()?;
    parse(id, &String::from_utf8_lossy(&stat))
}

/// `id (name) state parent group ...`; the name may have anything in it, brackets included.
fn parse(id: i32, stat: &str) -> Option<Process> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut words = rest.split_ascii_whitespace();
    let state = words.next()?;
    let (parent, group) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    (!matches!(state, "Z" | "X")).then_some(Process { id, parent, group })
}

fn carries(id: i32, marked: &str) -> bool {
    // Of another user's nothing can be read, and nothing is to be killed.
    let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable == marked.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_system_is_read_whatever_the_name_is() {
        let process = parse(7, "7 (a) b) S 3 5 5 0 -1").expect("a process");
        assert_eq!((process.id, process.parent, process.group), (7, 3, 5));
        assert!(parse(7, "7 (a) Z 3 5 5 0 -1").is_none(), "it has ended");
        assert!(parse(7, "").is_none());
    }

    #[test]
    fn one_whose_name_is_no_text_is_seen() {
        // A thread has a name and a line of its own, and this one changes no other's.
        let seen = std::thread::spawn(|| {
            fs::write("/proc/thread-self/comm", b"\xff\xfe").expect("the name is the thread's own");
            let path = fs::read_link("/proc/thread-self").expect("where the system tells of it");
            let id = path.file_name().and_then(|id| id.to_str()?.parse().ok()).expect("a number");
            process(id).is_some_and(|seen| seen.id == id)
        });
        assert!(seen.join().expect("it ended"));
    }

    #[test]
    fn marks_differ() {
        assert_ne!(new_mark(), new_mark());
    }
}
