//! The queue in front of the commit thread, bounded by bytes.
//!
//! Order is the order of the calls. Whoever can wait for room does so before entering; whoever cannot is
//! refused when the queue is full. The writer takes everything that has gathered while it was syncing: that
//! is the whole of group commit, without a timer.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::log::{Append, AppendError, Appended};

/// Memory is counted in units of this many bytes.
const UNIT: usize = 1024;
/// What an append costs in memory besides its body.
const OVERHEAD: usize = 256;

/// A commit that waits to be written, and its share of the queue's memory, given back when it is answered.
pub struct Job {
    pub commit: Vec<Append>,
    pub answer: oneshot::Sender<Result<Vec<Appended>, AppendError>>,
    pub room: Option<OwnedSemaphorePermit>,
}

pub struct Queue {
    jobs: Mutex<Jobs>,
    arrived: Condvar,
    room: Arc<Semaphore>,
    units: u32,
}

#[derive(Default)]
struct Jobs {
    waiting: VecDeque<Job>,
    closed: bool,
}

impl Queue {
    pub fn new(bytes: usize) -> Self {
        let units = (bytes / UNIT).clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
        Self {
            jobs: Mutex::default(),
            arrived: Condvar::new(),
            room: Arc::new(Semaphore::new(units)),
            units: units as u32,
        }
    }

    /// A commit larger than the whole queue takes all of it, so it waits but is never stuck.
    fn units_of(&self, commit: &[Append]) -> u32 {
        let bytes: usize = commit.iter().map(|append| append.body.len() + OVERHEAD).sum();
        u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).min(self.units)
    }

    pub fn try_enter(&self, commit: &[Append]) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.room).try_acquire_many_owned(self.units_of(commit)).ok()
    }

    pub async fn enter(&self, commit: &[Append]) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.room).acquire_many_owned(self.units_of(commit)).await.ok()
    }

    /// Gives the job back when the queue is closed.
    pub fn push(&self, job: Job) -> Result<(), Job> {
        let mut jobs = self.jobs.lock();
        if jobs.closed {
            return Err(job);
        }
        jobs.waiting.push_back(job);
        drop(jobs);
        self.arrived.notify_one();
        Ok(())
    }

    /// Everything that waits, as soon as there is something; nothing when the queue is closed and empty.
    pub fn take(&self) -> Option<VecDeque<Job>> {
        let mut jobs = self.jobs.lock();
        while jobs.waiting.is_empty() {
            if jobs.closed {
                return None;
            }
            self.arrived.wait(&mut jobs);
        }
        Some(std::mem::take(&mut jobs.waiting))
    }

    pub fn close(&self) {
        self.jobs.lock().closed = true;
        self.arrived.notify_all();
    }
}
