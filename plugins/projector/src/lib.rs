//! The service `system/projector`: glue between the world `projector` and `noetl_flow::view`.

use noetl_flow::view::{self, Segment, rows};
use noetl_sdk::engine::projector::projecting;

struct Service;

noetl_sdk::projector!(Service);

impl projecting::Guest for Service {
    fn project(segments: Vec<projecting::Segment>) -> Vec<projecting::Change> {
        view::project(&all(segments)).into_iter().map(change).collect()
    }

    fn expand(segments: Vec<projecting::Segment>) -> Vec<String> {
        view::expand(&all(segments)).iter().map(ToString::to_string).collect()
    }
}

fn all(segments: Vec<projecting::Segment>) -> Vec<Segment> {
    let of = |segment| {
        let projecting::Segment { execution, tenant, version, position, time_ms, decided_by, events } = segment;
        Segment { execution, tenant, version, position, time_ms, decided_by, events }
    };
    segments.into_iter().map(of).collect()
}

fn change(change: view::Change) -> projecting::Change {
    match change {
        view::Change::Execution(row) => projecting::Change::Execution(execution(row)),
        view::Change::Step(row) => projecting::Change::Step(step(row)),
        view::Change::Command(row) => projecting::Change::Command(command(row)),
        view::Change::Loop(row) => projecting::Change::IterationLoop(iteration_loop(row)),
    }
}

fn execution(row: rows::ExecutionRow) -> projecting::ExecutionRow {
    projecting::ExecutionRow {
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
    }
}

fn step(row: rows::StepRow) -> projecting::StepRow {
    let rows::StepRow { execution, step, run, status, entered_ms, ended_ms, error, version } = row;
    projecting::StepRow { execution, step, run, status, entered_ms, ended_ms, error, version }
}

fn command(row: rows::CommandRow) -> projecting::CommandRow {
    projecting::CommandRow {
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
    }
}

fn iteration_loop(row: rows::LoopRow) -> projecting::LoopRow {
    let rows::LoopRow { execution, step, run, total, succeeded, failed, status, version } = row;
    projecting::LoopRow { execution, step, run, total, succeeded, failed, status, version }
}
