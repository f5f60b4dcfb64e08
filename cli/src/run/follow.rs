//! The events of an execution and its children, as one sequence that reads in order.
//!
//! Each execution is followed by a task of its own. A child is followed from the event that announces it, a bounded
//! number at a time: a loop over thousands of playbooks is seen by its progress. An event that tells what a child came to
//! waits a moment for the child's own last events, so that the parent's line does not come before them; a child that
//! nobody waits for goes on, and its parent does too.
//!
//! It ends with the execution that was asked for. A child that cannot be followed is left out; that one cannot.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::failure::{Failure, Outcome};

/// Children that are followed at the same time.
const MOST_CHILDREN: usize = 16;
/// How long an event waits for those of a child.
const PATIENCE: Duration = Duration::from_millis(250);
/// Events on their way from the tasks.
const ON_THE_WAY: usize = 256;

/// Where events come from.
pub trait Feed: Clone + Send + 'static {
    /// Tells every event of the execution, oldest first, and is done after its last.
    fn follow(self, execution: String, teller: Teller) -> impl Future<Output = Outcome> + Send;
}

/// Takes the events of one execution.
pub struct Teller {
    execution: String,
    sender: mpsc::Sender<(String, Told)>,
}

impl Teller {
    pub async fn event(&self, event: Value) {
        // Nobody listens once the execution that was asked for has ended.
        let _ = self.sender.send((self.execution.clone(), Told::Event(Box::new(event)))).await;
    }
}

enum Told {
    Event(Box<Value>),
    End(Outcome),
}

/// What waits for a child of its execution.
struct Held {
    child: String,
    until: Instant,
    told: VecDeque<Told>,
}

struct Merge<F> {
    feed: F,
    root: String,
    patience: Duration,
    sender: mpsc::Sender<(String, Told)>,
    tasks: JoinSet<()>,
    open: Vec<String>,
    held: HashMap<String, Held>,
    ended: Option<Outcome>,
}

/// Shows every event until the execution has ended.
pub async fn follow<F: Feed>(feed: F, root: &str, see: impl FnMut(&Value)) -> Outcome {
    follow_with(feed, root, PATIENCE, see).await
}

async fn follow_with<F: Feed>(feed: F, root: &str, patience: Duration, mut see: impl FnMut(&Value)) -> Outcome {
    let (sender, mut receiver) = mpsc::channel(ON_THE_WAY);
    let mut merge = Merge {
        feed,
        root: root.to_owned(),
        patience,
        sender,
        tasks: JoinSet::new(),
        open: Vec::new(),
        held: HashMap::new(),
        ended: None,
    };
    merge.start(root.to_owned());
    loop {
        if let Some(ended) = merge.ended.take() {
            return ended;
        }
        let next = match merge.held.values().map(|held| held.until).min() {
            Some(until) => timeout_at(until, receiver.recv()).await.ok(),
            None => Some(receiver.recv().await),
        };
        match next {
            Some(Some((execution, told))) => merge.told(&execution, told, &mut see),
            Some(None) => return Err(Failure::failed("the events ended before the execution did")),
            None => {}
        }
        merge.release(&mut see);
    }
}

impl<F: Feed> Merge<F> {
    fn start(&mut self, execution: String) {
        self.open.push(execution.clone());
        let (feed, sender) = (self.feed.clone(), self.sender.clone());
        self.tasks.spawn(async move {
            let teller = Teller { execution: execution.clone(), sender: sender.clone() };
            let ended = feed.follow(execution.clone(), teller).await;
            let _ = sender.send((execution, Told::End(ended))).await;
        });
    }

    fn told(&mut self, execution: &str, told: Told, see: &mut impl FnMut(&Value)) {
        if let Some(held) = self.held.get_mut(execution) {
            held.told.push_back(told);
            return;
        }
        let event = match told {
            Told::End(ended) => return self.end(execution, ended),
            Told::Event(event) => event,
        };
        let child = event["meta"]["child_execution_id"].as_str();
        match child {
            Some(child) if event["event_type"] == "child.started" => {
                see(&event);
                if self.open.len() <= MOST_CHILDREN {
                    self.start(child.to_owned());
                }
            }
            Some(child) if self.open.iter().any(|open| open == child) => {
                let held = Held {
                    child: child.to_owned(),
                    until: Instant::now() + self.patience,
                    told: [Told::Event(event)].into(),
                };
                self.held.insert(execution.to_owned(), held);
            }
            _ => see(&event),
        }
    }

    fn end(&mut self, execution: &str, ended: Outcome) {
        self.open.retain(|open| open != execution);
        if execution == self.root {
            self.ended = Some(ended);
        }
    }

    /// Lets go on what has waited long enough, or whose child has ended.
    fn release(&mut self, see: &mut impl FnMut(&Value)) {
        loop {
            let now = Instant::now();
            let ready = |held: &Held| held.until <= now || !self.open.contains(&held.child);
            let Some(execution) = self.held.iter().find(|(_, held)| ready(held)).map(|(name, _)| name.clone()) else {
                return;
            };
            let Some(mut held) = self.held.remove(&execution) else { return };
            // The first is what was held; it is not held again.
            if let Some(Told::Event(event)) = held.told.pop_front() {
                see(&event);
            }
            for told in held.told {
                self.told(&execution, told, see);
            }
        }
    }
}

#[cfg(test)]
#[path = "follow_tests.rs"]
mod tests;
