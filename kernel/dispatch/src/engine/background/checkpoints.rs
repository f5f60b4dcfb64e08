//! Checkpoints: a long chain is folded now and then, so that building its state again reads only the tail.

use std::sync::Arc;

use noetl_store::projections::Checkpoint;
use tokio::sync::mpsc::UnboundedReceiver;

use super::super::ids::ExecutionId;
use super::super::services::Role;
use super::super::{Back, Shared};

/// Segments of a chain between two checkpoints.
pub const CHECKPOINT_EVERY: u64 = 256;

/// Writes a checkpoint for every execution that is due. One that cannot be written is missed by nobody.
pub async fn write(kernel: Back, shared: Arc<Shared>, mut due: UnboundedReceiver<ExecutionId>) {
    while let Some(execution) = due.recv().await {
        let Some(kernel) = kernel.upgrade() else { return };
        if let Err(problem) = one(&kernel, &shared, execution).await {
            tracing::warn!(%execution, %problem, "no checkpoint was written");
        }
    }
}

async fn one(kernel: &crate::Kernel, shared: &Arc<Shared>, execution: ExecutionId) -> Result<(), String> {
    let chain = shared.chain(execution).map_err(|error| error.to_string())?;
    let Some(last) = chain.segments.last() else { return Ok(()) };
    let (version, fold_position) = (last.version, last.position);
    let whole = shared.clone();
    let built = kernel.engine().background.ask(Role::StateBuilder, move |residents, service| {
        let built = residents.build(&service.module, chain.checkpoint.as_deref(), &chain.segments)?;
        // A checkpoint of another version of the fold is of no use; the whole chain always is.
        match (built, chain.checkpoint.is_some()) {
            (Err(_), true) => match whole.whole_chain(execution) {
                Ok(segments) => residents.build(&service.module, None, &segments),
                Err(error) => Ok(Err(error.to_string())),
            },
            (built, _) => Ok(built),
        }
    });
    let bytes = built.await.map_err(|error| error.to_string())??;
    let checkpoint = Checkpoint { execution: execution.0, version, fold_position, bytes: bytes.into() };
    shared.projections.put_checkpoints(&[checkpoint]).map_err(|error| error.to_string())?;
    shared.metrics.checkpoints.inc();
    Ok(())
}
