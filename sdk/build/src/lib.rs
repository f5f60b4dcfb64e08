//! From a guest crate to a component: find a compiler for WebAssembly, run it, wrap its output.
//!
//! Used by `cargo xtask build` for the platform's own components and by `noetl plugin build` for an author's, so that
//! both are made in the same way. A plugin that is source text is not compiled; [`source`] collects its files. The invariants:
//!
//! 1. The same sources, compiler and lock file give the same bytes, wherever the target folder is.
//! 2. No path of the machine that built it is in a component.
//! 3. The standard library and registry dependencies are compiled once for all projects of a user, yet a project
//!    never gets the output of another that has the same name ([`shared`] says how).
//! 4. Nothing is installed by [`Toolchain::find`] or [`build`]; only [`install`] does, when asked.
//!
//! A compile error is the compiler's own text on stderr, unchanged. Everything else that can go wrong is a
//! [`BuildError`] or [`ToolchainError`] that says what to do.

mod build;
pub mod dependencies;
mod install;
mod process;
pub mod shared;
pub mod source;
mod toolchain;

pub use build::{BuildError, BuildRequest, Built, build};
pub use install::{InstallError, install, install_packages};
pub use noetl_contract::manifest::BuildTarget;
pub use toolchain::{Route, TARGETS, Toolchain, ToolchainError};
