//! What must not be in an answer, taken out of each value before it goes anywhere.
//!
//! What it is, is known to whoever asks: here it is only applied, at the one place that every value of every database
//! passes, so that rows as JSON and rows as a table are the same in this.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::cells::Cell;

/// Takes something out of values. Each answers with nothing if there is none of it in there.
pub trait Hide: Send + Sync {
    fn text(&self, text: &str) -> Option<String>;

    /// What comes back is JSON still.
    fn json(&self, text: &str) -> Option<String>;

    fn bytes(&self, bytes: &[u8]) -> Option<Vec<u8>>;
}

/// What is taken out of an answer; by default nothing.
#[derive(Clone, Default)]
pub struct Hidden(Option<Arc<dyn Hide>>);

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "something" } else { "nothing" })
    }
}

impl Hidden {
    pub fn by(hide: Arc<dyn Hide>) -> Self {
        Self(Some(hide))
    }

    pub(super) fn name(&self, name: String) -> String {
        self.0.as_ref().and_then(|hide| hide.text(&name)).unwrap_or(name)
    }

    pub(super) fn cell<'c>(&self, cell: Cell<'c>) -> Cell<'c> {
        let Some(hide) = &self.0 else { return cell };
        let hidden = match &cell {
            Cell::Null | Cell::Bool(_) | Cell::Hidden(_) => None,
            // What is left of a number is none.
            Cell::Number(text) => hide.text(text).map(|text| Cell::Hidden(Cow::Owned(text))),
            Cell::Text(text) => hide.text(text).map(|text| Cell::Text(Cow::Owned(text))),
            Cell::Json(text) => hide.json(text).map(|text| Cell::Json(Cow::Owned(text))),
            Cell::Bytes(bytes) => hide.bytes(bytes).map(|bytes| Cell::Bytes(Cow::Owned(bytes))),
        };
        hidden.unwrap_or(cell)
    }
}
