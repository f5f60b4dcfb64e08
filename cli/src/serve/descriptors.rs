//! Descriptors of the server: sockets and files that are open at once.
//!
//! A process begins with a soft limit, often 1024, which is for programs of old that know no higher numbers, and may raise
//! it up to the hard one. Programs that the server starts inherit it, so it is not raised beyond what a server needs.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const ENOUGH: u64 = 65_536;

/// As many as the system permits. What cannot be raised stays: every bound on connections holds all the same.
pub fn raise() {
    let limit = getrlimit(Resource::Nofile);
    if let Some(current) = raised(limit)
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: Some(current), ..limit })
    {
        tracing::warn!(%error, "the number of open files stays as it was");
    }
}

/// None in a limit means that there is none.
fn raised(limit: Rlimit) -> Option<u64> {
    let wanted = limit.maximum.map_or(ENOUGH, |hard| hard.min(ENOUGH));
    limit.current.filter(|soft| *soft < wanted).map(|_| wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_is_raised_and_never_lowered() {
        let of = |current, maximum| raised(Rlimit { current, maximum });
        assert_eq!(of(Some(1024), Some(4096)), Some(4096));
        assert_eq!(of(Some(1024), Some(1 << 30)), Some(ENOUGH));
        assert_eq!(of(Some(1024), None), Some(ENOUGH));
        assert_eq!(of(Some(4096), Some(4096)), None);
        assert_eq!(of(Some(1 << 20), Some(1 << 30)), None);
        assert_eq!(of(None, None), None);
    }
}
