//! Memory for what a server sends, asked for before it is read.
//!
//! Who may have how much, and who waits for whom, is known to whoever runs the scripts. One that asks holds nothing of the
//! same kind, so waiting ends.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;

/// Gives out memory.
pub trait GiveRoom: Send + Sync {
    /// Waits until there is this much; what it answers with is held as long as the memory is used.
    fn take(&self, bytes: u64) -> BoxFuture<'static, Taken>;
}

/// Memory that was given out, until it is dropped.
pub type Taken = Box<dyn Any + Send + Sync>;

/// Where memory comes from; by default there is enough.
#[derive(Clone, Default)]
pub struct Room(Option<Arc<dyn GiveRoom>>);

impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "given out" } else { "enough" })
    }
}

impl Room {
    pub fn of(giving: Arc<dyn GiveRoom>) -> Self {
        Self(Some(giving))
    }

    pub(super) async fn take(&self, bytes: u64) -> Taken {
        match &self.0 {
            Some(giving) => giving.take(bytes).await,
            None => Box::new(()),
        }
    }
}
