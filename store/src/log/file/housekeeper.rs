//! Work beside the commit thread: the sidecar of a volume that was sealed, merging sidecars, and the next
//! volume made ready before it is needed, because zeroing it takes longer than a caller should wait.
//!
//! Nothing here decides what is in the log. A sidecar that cannot be written stays a table in memory, and is
//! made at the next start; a spare volume that cannot be made is tried again by the writer, whose caller
//! then gets the error.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use parking_lot::Mutex;

use super::disk::{Disk, DiskFile};
use super::lookup::{Lookup, Table};
use super::run::Run;

/// How many neighbouring runs of one level become one of the next.
const MERGE: usize = 8;
pub enum Chore {
    /// Write the sidecars of all volumes that wait for one.
    Seal,
    /// Make a spare volume of this capacity.
    Spare { capacity: u64 },
}

/// A volume that has no place in the log yet. Its name, like all that end in `.tmp`, is deleted when the log is
/// opened. Each spare has a name of its own: while the writer gives one its place, the next may be in the making.
pub struct Spare {
    pub name: String,
    pub file: Arc<dyn DiskFile>,
    pub capacity: u64,
}

/// What both threads share.
pub struct Chores {
    disk: Arc<dyn Disk>,
    lookup: Arc<Lookup>,
    /// Locked while a spare is made, so that the writer waits for it instead of making a second one.
    spare: Mutex<Option<Spare>>,
    spares_made: AtomicU64,
}

pub struct Housekeeper {
    chores: Arc<Chores>,
    /// None: chores are done by the caller, which makes tests repeatable.
    thread: Option<(mpsc::Sender<Chore>, JoinHandle<()>)>,
}

impl Housekeeper {
    pub fn start(disk: Arc<dyn Disk>, lookup: Arc<Lookup>, background: bool) -> io::Result<Self> {
        let chores = Arc::new(Chores { disk, lookup, spare: Mutex::new(None), spares_made: AtomicU64::new(0) });
        let thread = if background {
            let (sender, receiver) = mpsc::channel::<Chore>();
            let worker = Arc::clone(&chores);
            let run = move || receiver.iter().for_each(|chore| worker.perform(chore));
            Some((sender, thread::Builder::new().name("log-housekeeper".to_owned()).spawn(run)?))
        } else {
            None
        };
        Ok(Self { chores, thread })
    }

    pub fn request(&self, chore: Chore) {
        match &self.thread {
            Some((sender, _)) => {
                // The thread ends only after this sender is gone.
                let _sent = sender.send(chore);
            }
            None => self.chores.perform(chore),
        }
    }

    /// A zeroed, synced volume file of at least `capacity` bytes.
    pub fn take_spare(&self, capacity: u64) -> io::Result<Spare> {
        let ready = self.chores.spare.lock().take();
        match ready {
            Some(ready) if ready.capacity >= capacity => Ok(ready),
            Some(small) => self.chores.disk.remove(&small.name).and_then(|()| self.chores.make_spare(capacity)),
            None => self.chores.make_spare(capacity),
        }
    }
}

impl Drop for Housekeeper {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.thread.take() {
            drop(sender);
            // A panic there has been reported by the runtime; nothing of it concerns the log's content.
            let _finished = thread.join();
        }
    }
}

impl Chores {
    fn perform(&self, chore: Chore) {
        let outcome = match chore {
            Chore::Seal => self.seal(),
            Chore::Spare { capacity } => self.prepare(capacity),
        };
        if let Err(error) = outcome {
            tracing::warn!(%error, "the log's housekeeping failed and will be tried again");
        }
    }

    fn seal(&self) -> io::Result<()> {
        while let Some((base, table)) = self.lookup.oldest_sealing() {
            self.lookup.install(write_table(&*self.disk, base, &table)?);
        }
        self.merge()
    }

    fn prepare(&self, capacity: u64) -> io::Result<()> {
        let mut spare = self.spare.lock();
        if spare.is_none() {
            *spare = Some(self.make_spare(capacity)?);
        }
        Ok(())
    }

    fn make_spare(&self, capacity: u64) -> io::Result<Spare> {
        let name = format!("spare-{}.tmp", self.spares_made.fetch_add(1, Ordering::Relaxed));
        let made = self.disk.create(&name).and_then(|file| file.reserve(capacity).map(|()| file));
        if made.is_err() {
            // Give the space back: a full disk must not be kept full by our own attempt.
            let _removed = self.disk.remove(&name);
        }
        Ok(Spare { file: made?, name, capacity })
    }

    fn merge(&self) -> io::Result<()> {
        loop {
            let runs = self.lookup.runs();
            let same = |group: &&[Arc<Run>]| group.iter().all(|run| run.level == group[0].level);
            let Some(group) = runs.windows(MERGE).find(same) else { return Ok(()) };
            self.lookup.install(Run::merge(&*self.disk, group)?);
            for run in group {
                self.disk.remove(&run.name)?;
            }
        }
    }
}

/// Writes the sidecar of one volume.
pub fn write_table(disk: &dyn Disk, base: u64, table: &Table) -> io::Result<Arc<Run>> {
    let mut entries: Vec<_> = table.iter().map(|(hash, position)| (*hash, *position)).collect();
    entries.sort_unstable();
    Run::write(disk, (base, base), 0, entries.len() as u64, entries.into_iter().map(Ok))
}
