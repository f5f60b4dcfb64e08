//! What end-to-end tests share: a server of the real binary, a client of its API, and guests.
//!
//! Every server has a folder and a port of its own and ends with the test. Nothing here waits by the clock: a
//! server is up when it says so.

mod api;
pub mod bystander;
pub mod compat;
mod guests;
pub mod load;
pub mod made;
mod nats;
mod outside;
pub mod paginated;
mod postgres;
mod ran;
pub mod recorder;
mod server;
mod small_disk;

pub use api::{Answer, Api};
pub use guests::{guest, system_guest, with_manifest, with_marker, with_version};
pub use nats::Nats;
pub use outside::Outside;
pub use paginated::Paginated;
pub use postgres::Postgres;
pub use ran::{Ran, run};
pub use recorder::Recorder;
pub use server::{Server, noetl_bin};
pub use small_disk::SmallDisk;
