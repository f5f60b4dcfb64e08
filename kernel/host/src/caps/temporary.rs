//! Temporary files of one call, counted.
//!
//! A payload beyond some size is a file on disk, and an open one, until its handle is dropped. A call can have a thousand
//! handles, so the largest payload alone bounds neither the disk nor the descriptors it takes: all of its files together
//! do. What is counted follows the file, wherever its handle goes.

use std::sync::Arc;

use parking_lot::Mutex;

/// Files of one call at once.
const MOST_FILES: usize = 64;

/// What a call has in files.
#[derive(Clone)]
pub(crate) struct Temporary {
    most: u64,
    used: Arc<Mutex<Used>>,
}

#[derive(Default)]
struct Used {
    files: usize,
    bytes: u64,
}

/// One file of it, counted until it is dropped.
pub(crate) struct Counted {
    used: Arc<Mutex<Used>>,
    most: u64,
    bytes: u64,
}

impl Temporary {
    pub(crate) fn new(most: u64) -> Self {
        Self { most, used: Arc::default() }
    }

    /// Bytes that are left for one more file.
    pub(crate) fn left(&self) -> u64 {
        self.most.saturating_sub(self.used.lock().bytes)
    }

    /// Room for one more file, or what to say if there is none.
    pub(crate) fn file(&self) -> Result<Counted, String> {
        let mut used = self.used.lock();
        if used.files >= MOST_FILES {
            return Err(format!(
                "a call has at most {MOST_FILES} large payloads at once: drop those that are done with, or store them"
            ));
        }
        used.files += 1;
        Ok(Counted { used: self.used.clone(), most: self.most, bytes: 0 })
    }
}

impl Counted {
    /// Whether the file may have this many bytes more.
    pub(crate) fn grow(&mut self, by: u64) -> bool {
        let mut used = self.used.lock();
        let Some(bytes) = used.bytes.checked_add(by).filter(|bytes| *bytes <= self.most) else { return false };
        used.bytes = bytes;
        self.bytes += by;
        true
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut used = self.used.lock();
        used.files -= 1;
        used.bytes -= self.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_of_a_call_share_one_bound() {
        let temporary = Temporary::new(100);
        let (mut first, mut second) = (temporary.file().expect("room"), temporary.file().expect("room"));
        assert!(first.grow(60) && !second.grow(60) && second.grow(40));
        assert_eq!(temporary.left(), 0);
        drop(first);
        assert!(second.grow(60));
    }

    #[test]
    fn files_are_counted_while_they_are_there() {
        let temporary = Temporary::new(100);
        let files: Vec<Counted> = (0..MOST_FILES).map(|_| temporary.file().expect("room")).collect();
        assert!(temporary.file().is_err_and(|text| text.contains("64")));
        drop(files);
        assert!(temporary.file().is_ok());
    }
}
