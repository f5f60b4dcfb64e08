//! What an author does with playbooks before they run: check them, register them, look into the catalog.

mod catalog;
pub mod files;
pub mod problems;
mod register;
mod schema;
pub mod validate;

pub use catalog::{Command as Catalog, run as run_catalog};
pub use register::Register;
pub use schema::Schema;
pub use validate::Validate;

use clap::Args;
use noetl_contract::Tenant;

/// Whose playbooks or executions are meant.
#[derive(Debug, Args)]
pub struct Whose {
    /// The tenant to act for [default: the token's own].
    #[arg(long)]
    tenant: Option<Tenant>,
}

impl Whose {
    pub fn tenant(&self) -> Option<&str> {
        self.tenant.as_ref().map(Tenant::as_str)
    }
}
