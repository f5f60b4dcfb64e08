//! The pure core: what a playbook means.
//!
//! Everything here is a function of its arguments. There is no clock, no I/O, no randomness and no order of a hash
//! table in it, because the same code runs natively and as components, live and in replay, and must give the same
//! bytes in all of them. Time comes with the input, jitter from the id of a command.
//!
//! - [`playbook`]: the language: a document becomes a checked model, or a list of all its problems.
//! - [`template`]: expressions and text in playbooks.
//! - [`keychain`]: what stands for a secret.
//! - [`event`]: what is written down about an execution, and nothing that can be derived from it.
//! - [`state`]: the fold of events. [`decide`]: what an execution does next.
//! - [`task`]: what a command is to a runner, and the runner's machine.
//! - [`view`]: what people and tables are shown of a chain.
//! - [`schedule`]: when a playbook is due.

mod cache;
pub mod decide;
pub mod event;
pub mod extract;
pub mod ids;
pub mod keychain;
pub mod playbook;
mod response;
pub mod schedule;
pub mod state;
pub mod task;
pub mod template;
pub mod view;
