//! The thread that brings commits from the log into the tables, in the log's order.
//!
//! It takes each submitted change with the log's answer to it, so nothing is read back from the log. The log
//! answers in the order of submission, hence the order of the queue is the order of positions. Everything
//! that has been answered already goes into one transaction.

use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{oneshot, watch};

use super::tables::Tables;
use super::{Gate, IndexError, Touched};
use crate::log::{AppendError, Appended, Log, StreamId, Ticket};

/// Changes applied in one transaction at most.
const GROUP: usize = 512;

/// A change that the log has been asked to write.
pub struct Task {
    pub number: u64,
    pub stream: StreamId,
    pub body: Bytes,
    pub ticket: Ticket,
    pub written: Vec<Touched>,
    pub settle: watch::Sender<bool>,
    pub reply: oneshot::Sender<Result<(), IndexError>>,
}

type Answered = (Task, Result<Appended, AppendError>);

pub fn start(
    mut tables: Tables,
    log: Arc<dyn Log>,
    gate: Arc<Mutex<Gate>>,
    tasks: mpsc::Receiver<Task>,
) -> std::io::Result<JoinHandle<()>> {
    thread::Builder::new().name("index-applier".to_owned()).spawn(move || {
        let mut held = None;
        loop {
            let Some(task) = held.take().or_else(|| tasks.recv().ok()) else { break };
            let (group, next) = gather(task, &tasks);
            held = next;
            let applied = apply(&mut tables, &*log, &gate, &group);
            settle(&gate, group, &applied);
        }
        // Nothing is under way any more, so the next start need not look at anything before the tip.
        let tip = *log.tip().borrow();
        if gate.lock().behind.is_none()
            && let Err(error) = tables.close(tip)
        {
            tracing::warn!(%error, "the index could not be closed and will be checked at the next start");
        }
    })
}

/// Waits for the first answer, then takes along what has been answered too. Gives back the first task that
/// has not.
fn gather(first: Task, tasks: &mpsc::Receiver<Task>) -> (Vec<Answered>, Option<Task>) {
    let mut group = Vec::new();
    let mut task = first;
    let gone = || Err(AppendError::Stopped("the log's writer is gone".to_owned()));
    loop {
        let answer = if group.is_empty() {
            futures::executor::block_on(&mut task.ticket).unwrap_or_else(|_| gone())
        } else {
            match task.ticket.try_recv() {
                Ok(answer) => answer,
                Err(TryRecvError::Empty) => return (group, Some(task)),
                Err(TryRecvError::Closed) => gone(),
            }
        };
        let answer = answer.and_then(|answers| answers.first().copied().ok_or(AppendError::Invalid("no answer")));
        group.push((task, answer));
        if group.len() == GROUP {
            return (group, None);
        }
        match tasks.try_recv() {
            Ok(next) => task = next,
            Err(_) => return (group, None),
        }
    }
}

fn apply(tables: &mut Tables, log: &dyn Log, gate: &Mutex<Gate>, group: &[Answered]) -> Result<(), IndexError> {
    gate.lock().check()?;
    let written: Vec<_> = group
        .iter()
        .filter_map(|(task, answer)| {
            let appended = answer.as_ref().ok().filter(|appended| !appended.duplicate)?;
            Some((appended.position, &task.stream, &task.body))
        })
        .collect();
    let Some((last, ..)) = written.last().copied() else { return Ok(()) };
    // When this group is all that is under way, every segment of ours up to the tip is applied with it.
    let cursor = {
        let gate = gate.lock();
        if gate.submitted - gate.settled == group.len() as u64 { *log.tip().borrow() } else { last }
    };
    tables.apply(written.into_iter(), cursor)
}

fn settle(gate: &Mutex<Gate>, group: Vec<Answered>, applied: &Result<(), IndexError>) {
    let mut guard = gate.lock();
    if let Err(error) = applied
        && guard.behind.is_none()
    {
        tracing::error!(%error, "the index fell behind the log");
        guard.behind = Some(error.to_string());
    }
    let behind = guard.behind.clone();
    for (task, _) in &group {
        guard.settled += 1;
        for key in &task.written {
            if guard.under_way.get(key).is_some_and(|(number, _)| *number == task.number) {
                guard.under_way.remove(key);
            }
        }
    }
    drop(guard);
    for (task, answer) in group {
        let outcome = match (answer, &behind) {
            (Err(error), _) => Err(IndexError::Log(error)),
            (Ok(_), Some(reason)) => Err(IndexError::Behind(reason.clone())),
            (Ok(_), None) => Ok(()),
        };
        task.settle.send_replace(true);
        // A caller that went away does not need its answer.
        let _delivered = task.reply.send(outcome);
    }
}
