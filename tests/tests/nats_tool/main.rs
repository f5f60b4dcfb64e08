//! The tools `nats` and `subscription` against a server of the test's own, and `shell` switched off and on.

mod hostile;
mod operations;
mod polling;
mod programs;
mod support;
