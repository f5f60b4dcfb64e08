//! The log into the tables people query. The only place that writes them.
//!
//! Rows come from the projector component, the cursor goes with them in one transaction, and which executions are open
//! is noted from the headers alone, so that recovery depends on no component. The thread has a low priority: tables
//! may lag under load, executions may not.

use std::io;
use std::time::Duration;

use noetl_host::Residents;
use noetl_host::services::projecting as wit;
use noetl_store::log::{Log, Segment};
use noetl_store::projections::{Change, CommandRow, ExecutionRow, LoopRow, OpenChange, StepRow};
use tokio::sync::watch;

use super::super::ids::ExecutionId;
use super::super::segment::{Header, execution_of, for_services};
use super::super::services::{Role, Service};
use super::super::{Back, Shared};
use super::{DELETED, deleted_id, thread};
use std::sync::Arc;

/// Segments brought in by one transaction.
const BATCH: usize = 1024;
/// Bytes of them at most: rows take several times as much in the component.
const BATCH_BYTES: usize = 2 << 20;
const NICE: i32 = 15;
/// How old the tables may be when nobody asks.
const GATHER: Duration = Duration::from_millis(200);
/// After an error this long passes before the next try.
const PAUSE: Duration = Duration::from_millis(500);

pub fn start(
    kernel: Back,
    shared: Arc<Shared>,
    residents: Residents,
    stopping: watch::Receiver<bool>,
) -> io::Result<()> {
    thread("projector".to_owned(), async move {
        if let Err(error) = rustix::process::setpriority_process(None, NICE) {
            tracing::debug!(%error, "the projector keeps the ordinary priority");
        }
        follow(kernel, shared, residents, stopping).await;
    })
}

async fn follow(kernel: Back, shared: Arc<Shared>, mut residents: Residents, mut stopping: watch::Receiver<bool>) {
    let mut tip = shared.log.tip();
    while !*stopping.borrow() {
        let upto = *tip.borrow_and_update();
        let behind = upto.saturating_sub(shared.projections.cursor());
        shared.metrics.projection_lag.set(behind);
        if behind == 0 {
            tokio::select! {
                changed = tip.changed() => if changed.is_err() { return },
                _ = stopping.changed() => return,
            }
            continue;
        }
        // Many segments in one transaction cost little more than one, so it waits for some to gather, unless
        // somebody waits for it.
        tokio::select! {
            () = tokio::time::sleep(GATHER) => {}
            () = shared.hurry.notified() => {}
            _ = stopping.changed() => return,
        }
        while shared.projections.cursor() < *tip.borrow() {
            if let Err(problem) = step(&kernel, &shared, &mut residents).await {
                tracing::error!(%problem, "the tables could not be brought up to date; trying again");
                tokio::time::sleep(PAUSE).await;
                break;
            }
        }
    }
}

/// One batch from the log into the tables.
async fn step(kernel: &Back, shared: &Shared, residents: &mut Residents) -> Result<(), String> {
    let mut segments = shared.log.read_all(shared.projections.cursor(), BATCH).map_err(|error| error.to_string())?;
    let mut bytes = 0;
    let mut fits = |segment: &Segment| {
        bytes += segment.body.len();
        bytes <= BATCH_BYTES
    };
    let count = segments.iter().position(|segment| !fits(segment)).unwrap_or(segments.len()).max(1);
    segments.truncate(count);
    let Some(last) = segments.last().map(|segment| segment.position) else { return Ok(()) };
    let chain: Vec<_> = segments.iter().filter_map(for_services).collect();
    let rows = if chain.is_empty() { Vec::new() } else { project(kernel, residents, &chain).await? };
    let mut changes: Vec<Change> = rows.into_iter().map(change).collect();
    let deleted = segments.iter().filter(|segment| segment.stream.as_str() == DELETED);
    changes.extend(deleted.filter_map(|segment| deleted_id(&segment.body)).map(|id| Change::Deleted(id.0)));
    let open: Vec<OpenChange> = segments.iter().filter_map(open_change).collect();
    let applied = shared.projections.apply(changes, &open, last).map_err(|error| error.to_string())?;
    shared.metrics.projected.inc_by(chain.len() as u64);
    shared.metrics.projection_stale.inc_by(applied.stale);
    Ok(())
}

/// Asks the version that serves, then those before it.
async fn project(
    kernel: &Back,
    residents: &mut Residents,
    chain: &[noetl_host::services::chain::Segment],
) -> Result<Vec<wit::Change>, String> {
    let kernel = kernel.upgrade().ok_or("the server is stopping")?;
    let service = kernel.service(Role::Projector).await?;
    residents.keep_only(&[service.digest()]);
    let fault = match residents.project(&service.module, chain) {
        Ok(rows) => {
            kernel.service_worked(&service.entry);
            return Ok(rows);
        }
        Err(fault) => fault,
    };
    kernel.service_faulted(&service.entry, &fault).await;
    for Service { module, .. } in kernel.stand_ins(Role::Projector, service.digest()).await {
        if let Ok(rows) = residents.project(&module, chain) {
            return Ok(rows);
        }
    }
    Err(fault.message)
}

fn open_change(segment: &Segment) -> Option<OpenChange> {
    let ExecutionId(execution) = execution_of(&segment.stream)?;
    let (header, _) = Header::decode(&segment.body)?;
    match (header.opens, header.ends) {
        (_, true) => Some(OpenChange::Ended { execution }),
        (true, false) => Some(OpenChange::Opened { execution, tenant: header.tenant.to_string(), root: header.root.0 }),
        (false, false) => None,
    }
}

fn change(row: wit::Change) -> Change {
    match row {
        wit::Change::Execution(row) => Change::Execution(ExecutionRow {
            execution: row.execution,
            tenant: row.tenant,
            path: row.path,
            playbook_version: row.playbook_version,
            parent: row.parent,
            root: row.root,
            status: row.status,
            started_ms: row.started_ms,
            ended_ms: row.ended_ms,
            error: row.error,
            step: row.step,
            requested_by: row.requested_by,
            last_event: row.last_event,
            version: row.version,
        }),
        wit::Change::Step(row) => Change::Step(StepRow {
            execution: row.execution,
            step: row.step,
            run: row.run,
            status: row.status,
            entered_ms: row.entered_ms,
            ended_ms: row.ended_ms,
            error: row.error,
            version: row.version,
        }),
        wit::Change::Command(row) => Change::Command(CommandRow {
            execution: row.execution,
            command: row.command,
            step: row.step,
            run: row.run,
            iteration: row.iteration,
            attempt: row.attempt,
            status: row.status,
            tool: row.tool,
            plugin: row.plugin,
            issued_ms: row.issued_ms,
            ended_ms: row.ended_ms,
            error: row.error,
            version: row.version,
        }),
        wit::Change::IterationLoop(row) => Change::Loop(LoopRow {
            execution: row.execution,
            step: row.step,
            run: row.run,
            total: row.total,
            succeeded: row.succeeded,
            failed: row.failed,
            status: row.status,
            version: row.version,
        }),
    }
}
