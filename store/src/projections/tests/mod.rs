//! The projections on a real file.

use std::path::PathBuf;

use super::*;

mod durable;
mod large;
mod model;
mod rows;

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("projections.sqlite")
    }

    fn open(&self) -> Arc<Projections> {
        Projections::open(self.file(), u64::MAX).expect("opens")
    }
}

/// An execution that has just been started.
fn started(execution: u64, tenant: &str, path: &str) -> ExecutionRow {
    ExecutionRow {
        execution,
        tenant: tenant.to_owned(),
        path: Some(path.to_owned()),
        playbook_version: Some(1),
        root: Some(execution),
        status: Some("RUNNING".to_owned()),
        started_ms: Some(1000 + execution),
        requested_by: Some("ci".to_owned()),
        last_event: 8,
        version: 1,
        ..ExecutionRow::default()
    }
}

/// A later row of an execution that says nothing but its status.
fn became(execution: u64, tenant: &str, status: &str, version: u64) -> ExecutionRow {
    ExecutionRow {
        execution,
        tenant: tenant.to_owned(),
        status: Some(status.to_owned()),
        last_event: version * 8,
        version,
        ..ExecutionRow::default()
    }
}

fn step(execution: u64, step: &str, run: u32, version: u64) -> StepRow {
    StepRow { execution, step: step.to_owned(), run, version, ..StepRow::default() }
}

fn command(execution: u64, step: &str, iteration: Option<u32>, attempt: u32, version: u64) -> CommandRow {
    let command = format!("{step}#1{}~{attempt}", iteration.map_or_else(String::new, |at| format!("[{at}]")));
    CommandRow {
        execution,
        command,
        step: step.to_owned(),
        run: 1,
        iteration,
        attempt,
        version,
        ..CommandRow::default()
    }
}

/// Everything about the executions, from the first to the last.
type Contents = Vec<(ExecutionRow, Vec<StepRow>, Vec<CommandRow>, Vec<LoopRow>)>;

fn contents(projections: &Projections) -> Contents {
    let mut rows = all(projections, &ListQuery::default());
    rows.sort_by_key(|row| row.execution);
    rows.into_iter()
        .map(|row| {
            let id = row.execution;
            let steps = projections.steps(id, usize::MAX >> 1).expect("readable");
            let loops = projections.loops(id, usize::MAX >> 1).expect("readable");
            (row, steps, all_commands(projections, id), loops)
        })
        .collect()
}

/// All pages of a list.
fn all(projections: &Projections, query: &ListQuery) -> Vec<ExecutionRow> {
    let mut query = query.clone();
    let mut rows = Vec::new();
    loop {
        let page = projections.executions(&query).expect("readable");
        assert!(page.rows.len() <= query.size && (page.next.is_none() || page.rows.len() == query.size));
        rows.extend(page.rows);
        query.cursor = page.next;
        if query.cursor.is_none() {
            return rows;
        }
    }
}

fn all_commands(projections: &Projections, execution: u64) -> Vec<CommandRow> {
    let (mut rows, mut after) = (Vec::new(), None);
    loop {
        let page = projections.commands(execution, after.as_deref(), 3).expect("readable");
        rows.extend(page.rows);
        after = page.next;
        if after.is_none() {
            return rows;
        }
    }
}
