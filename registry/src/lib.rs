//! The catalog: which bytes are which version of which plugin, which version serves whom, and who may say
//! so; and, beside it, the catalog of playbooks. Who vouches for the bytes is in [`signatures`], how they travel
//! between registries and servers in [`oci`].
//!
//! Everything is an event of the log; what is kept in memory is folded from it and can be dropped.
//!
//! Invariants:
//! 1. (path, version) means one digest for ever, even after the version is deleted.
//! 2. What was acknowledged is in the log, and a restart folds it into the same state.
//! 3. Resolution takes no lock: it reads one immutable snapshot.

pub mod catalog;
mod ledger;
mod names;
pub mod oci;
pub mod playbooks;
pub mod signatures;
pub mod tokens;

pub use catalog::{
    BytesAt, Catalog, CatalogError, Change, Embedded, Entry, EntryFilter, Listed, Moved, NewVersion, OpenError,
    PluginView, PushOutcome, ResolveError, Resolved, Selector, Source,
};
pub use ledger::{FoldError, LedgerError, Recorded};
pub use names::{Actor, ChannelName};
pub use playbooks::{PlaybookEntry, PlaybookError, PlaybookPath, Playbooks};
