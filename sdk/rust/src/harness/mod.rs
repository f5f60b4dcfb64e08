//! Runs the built component in the author's own `cargo test`, with capabilities that live in memory.
//!
//! ```no_run
//! use noetl_sdk::harness::{Harness, HarnessError};
//!
//! # fn main() -> Result<(), HarnessError> {
//! let mut plugin = Harness::build(env!("CARGO_MANIFEST_DIR"))?.start()?;
//! plugin.kv_set("greeting", b"Hello")?;
//! assert_eq!(plugin.call(b"Ada")?.text(), "Hello Ada");
//! assert_eq!(plugin.call(b"").expect_err("no name").code(), Some("invalid_input"));
//! # Ok(()) }
//! ```
//!
//! The component runs in the real host, inside the `noetl` command: the same limits, the same errors, and no host
//! to compile with every plugin's tests. The command is `$NOETL_BIN`, else `noetl` on the `PATH`. Two of its
//! subcommands are used:
//!
//! - `noetl plugin build --out FILE`, with the plugin's folder as the current folder, builds the component into FILE;
//! - `noetl plugin harness FILE` runs it and speaks the [`protocol`] over standard input and output.
//!
//! Each [`Session`] is a process of its own with an empty store, so tests may run side by side. When the process ends
//! unexpectedly, the error carries what it wrote to standard error. A session that is dropped ends its process.

mod error;
pub mod protocol;
mod session;

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

pub use error::HarnessError;
pub use session::{Called, Session};

/// A built component, ready to be started as often as a test wants.
#[derive(Debug)]
pub struct Harness {
    command: PathBuf,
    component: PathBuf,
    /// Holds the component when it was built here; removed with the harness.
    _folder: Option<TempDir>,
}

impl Harness {
    /// Build the plugin in `folder`, usually `env!("CARGO_MANIFEST_DIR")`.
    pub fn build(folder: impl AsRef<Path>) -> Result<Self, HarnessError> {
        let command = noetl();
        let output = TempDir::with_prefix("noetl-harness-").map_err(HarnessError::Folder)?;
        let component = output.path().join("plugin.wasm");
        let mut build = Command::new(&command);
        build.args(["plugin", "build", "--out"]).arg(&component).current_dir(folder);
        let built = build.output().map_err(|source| HarnessError::start(&command, source))?;
        if !built.status.success() {
            let said = String::from_utf8_lossy(&built.stderr).trim_end().to_owned();
            return Err(HarnessError::Build { status: built.status, said });
        }
        Ok(Self { command, component, _folder: Some(output) })
    }

    /// Use a component that is built already.
    pub fn of(component: impl Into<PathBuf>) -> Self {
        Self { command: noetl(), component: component.into(), _folder: None }
    }

    /// Start a process that holds the component and an empty store.
    pub fn start(&self) -> Result<Session, HarnessError> {
        Session::start(&self.command, &self.component)
    }
}

fn noetl() -> PathBuf {
    std::env::var_os("NOETL_BIN").map_or_else(|| PathBuf::from("noetl"), PathBuf::from)
}

#[cfg(test)]
mod tests;
