//! What people and tables are shown of a chain.
//!
//! A chain holds only what decides ([`crate::event`]). Everything else that is asked about an execution is made here,
//! when it is read: the events in full ([`expand`]), the rows of the tables ([`rows`]), the state at any moment with
//! its checksums ([`surfaces`]), checkpoints ([`build`]) and the reason of an outcome ([`explain`]). Nothing here
//! decides anything, so all of it may change without touching a running execution.
//!
//! Invariants:
//! 1. Live and replayed are the same code: the surfaces of a replay are the rows of [`rows::project`] over the whole
//!    chain, and rows of consecutive parts, laid over each other, are the rows of the whole.
//! 2. The expansion of an event depends on that event alone, so any part of a chain can be read without the rest.
//! 3. Bytes of an answer depend on the events alone: no clock, and objects that are hashed have sorted keys.

pub mod build;
pub mod canonical;
pub mod expand;
pub mod explain;
pub mod rows;
pub mod segment;
pub mod surfaces;
pub mod time;
pub mod upcast;

pub use build::build;
pub use expand::expand;
pub use explain::explain;
pub use rows::{Change, project};
pub use segment::{Broken, Segment};
pub use surfaces::{Cutoff, view};

#[cfg(test)]
mod samples;
