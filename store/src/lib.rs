//! Ports and adapters for everything that outlives a process: the log (the truth), payloads (bytes by
//! digest), the indexes folded from the log (kv, objects), the projections people query, the wallet, and databases and
//! brokers of the outside.
//!
//! Invariants:
//! 1. What was acknowledged is on disk: every write to the log or the payloads that answers `Ok` has been synced.
//! 2. Everything but the log, the payload bytes and the wallet can be deleted and is rebuilt from them.
//! 3. Only adapters in this crate know a file format, SQL or NATS.

pub mod folder;
pub mod index;
pub mod log;
pub mod nats;
pub mod payloads;
pub mod projections;
pub mod sql;
pub mod wallet;
