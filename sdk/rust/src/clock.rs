//! Time, for plugins that hold the capability `clock`.

use std::time::{Duration, SystemTime};

use crate::bindings::noetl::clock::clock;

/// Time since 1970-01-01T00:00:00Z.
pub fn since_epoch() -> Duration {
    Duration::from_nanos(clock::now())
}

/// The same as the standard library's type, for crates that want it.
pub fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + since_epoch()
}

/// Time since an arbitrary moment of this call; never goes back. Subtract two of them to measure.
pub fn monotonic() -> Duration {
    Duration::from_nanos(clock::monotonic())
}
