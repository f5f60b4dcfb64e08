//! Playbooks and executions over the API of the real binary: the catalog, running and steering, watching, replaying,
//! and who may see what. The tools are those that need nothing from outside, and `http` against a server of the
//! test's own.

mod catalog;
mod reach;
mod runs;
mod steering;
mod support;
mod upstream;
mod watching;
mod work;
