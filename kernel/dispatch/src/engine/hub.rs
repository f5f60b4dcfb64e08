//! The embedded stream: what the publisher publishes, for whoever follows an execution in this process.
//!
//! It is transport, never truth: a follower that missed a message reads the chain, so a slow one loses nothing and
//! holds up nobody.

use tokio::sync::broadcast;

use super::ids::ExecutionId;

/// Messages kept for slow followers; one that falls further behind reads the chain.
const KEPT: usize = 4096;

pub struct Hub(broadcast::Sender<ExecutionId>);

impl Hub {
    pub fn new() -> Self {
        Self(broadcast::Sender::new(KEPT))
    }

    /// Something new is in the chain of an execution.
    pub fn publish(&self, execution: ExecutionId) {
        // Nobody may be listening.
        let _ = self.0.send(execution);
    }

    pub fn follow(&self) -> Follower {
        Follower(self.0.subscribe())
    }
}

pub struct Follower(broadcast::Receiver<ExecutionId>);

impl Follower {
    /// Waits for news of an execution, or for having missed some.
    pub async fn news_of(&mut self, execution: ExecutionId) {
        loop {
            match self.0.recv().await {
                Ok(published) if published == execution => return,
                Ok(_) => {}
                Err(broadcast::error::RecvError::Lagged(_)) => return,
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}
