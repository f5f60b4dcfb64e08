//! The routes about executions: list and read, watch their events, steer them.
//!
//! Whether a caller may know of an execution is decided once, before any of these handlers, by [`check_owner`]. To a
//! tenant an execution of another one is not there.

use std::sync::Arc;

use noetl_contract::Tenant;
use noetl_dispatch::Kernel;
use noetl_dispatch::engine::{EngineError, ExecutionId};

use crate::auth::Caller;
use crate::engine::blocking;
use crate::problem::Problem;

pub mod events;
pub mod read;
mod rows;
pub mod steer;

/// Whose an execution is.
pub async fn owner(kernel: &Arc<Kernel>, execution: ExecutionId) -> Result<Tenant, Problem> {
    let kernel = kernel.clone();
    Ok(blocking(move || kernel.engine().tenant_of(execution)).await??)
}

/// Refuses an execution that is not there or not the caller's, with the same words.
pub async fn check_owner(kernel: &Arc<Kernel>, caller: &Caller, execution: ExecutionId) -> Result<(), Problem> {
    let owner = owner(kernel, execution).await?;
    match caller.tenant() {
        Some(own) if *own != owner => Err(EngineError::ExecutionNotFound(execution).into()),
        _ => Ok(()),
    }
}
