//! Rows of the tables as they are answered: ids as text, times as RFC 3339.

use noetl_store::projections::{CommandRow, ExecutionRow, LoopRow, StepRow};
use serde::Serialize;
use utoipa::ToSchema;

use crate::values::rfc3339;

/// Each written event is shown as up to eight, so ids of shown events go up by this much for one that was written.
const SHOWN_PER_WRITTEN: u64 = 8;

#[derive(Serialize, ToSchema)]
pub struct ExecutionView {
    pub execution_id: String,
    pub tenant: String,
    pub path: Option<String>,
    /// Of the playbook.
    pub version: Option<u32>,
    /// `RUNNING`, `COMPLETED`, `FAILED` or `CANCELLED`.
    pub status: String,
    pub started_at: Option<String>,
    pub ended_at: Option<String>,
    pub duration_ms: Option<u64>,
    /// The step that was entered last.
    pub current_step: Option<String>,
    /// Why it failed, in a sentence.
    pub error: Option<String>,
    pub parent_execution_id: Option<String>,
    pub root_execution_id: Option<String>,
    pub requested_by: Option<String>,
    /// Events written so far; one is shown as several.
    pub event_count: u64,
    pub last_event_id: String,
}

impl From<ExecutionRow> for ExecutionView {
    fn from(row: ExecutionRow) -> Self {
        let duration = row.started_ms.zip(row.ended_ms).map(|(started, ended)| ended.saturating_sub(started));
        Self {
            execution_id: row.execution.to_string(),
            tenant: row.tenant,
            path: row.path,
            version: row.playbook_version,
            status: row.status.unwrap_or_else(|| "RUNNING".to_owned()),
            started_at: row.started_ms.map(rfc3339),
            ended_at: row.ended_ms.map(rfc3339),
            duration_ms: duration,
            current_step: row.step,
            error: row.error,
            parent_execution_id: row.parent.map(|id| id.to_string()),
            root_execution_id: row.root.map(|id| id.to_string()),
            requested_by: row.requested_by,
            event_count: row.last_event / SHOWN_PER_WRITTEN,
            last_event_id: row.last_event.to_string(),
        }
    }
}

/// One run of a step.
#[derive(Serialize, ToSchema)]
pub struct StepView {
    pub step: String,
    /// The how-manieth time it was entered; 0 for a step that was skipped.
    pub run: u32,
    /// `RUNNING`, `PARKED`, `COMPLETED`, `FAILED` or `SKIPPED`.
    pub status: Option<String>,
    pub entered_at: Option<String>,
    pub ended_at: Option<String>,
    pub error: Option<String>,
}

impl From<StepRow> for StepView {
    fn from(row: StepRow) -> Self {
        Self {
            step: row.step,
            run: row.run,
            status: row.status,
            entered_at: row.entered_ms.map(rfc3339),
            ended_at: row.ended_ms.map(rfc3339),
            error: row.error,
        }
    }
}

/// One loop of a run of a step.
#[derive(Serialize, ToSchema)]
pub struct LoopView {
    pub step: String,
    pub run: u32,
    /// None while it is not known, as for a cursor.
    pub total: Option<u32>,
    pub succeeded: u32,
    pub failed: u32,
    /// `RUNNING`, `COMPLETED` or `FAILED`.
    pub status: Option<String>,
}

impl From<LoopRow> for LoopView {
    fn from(row: LoopRow) -> Self {
        let LoopRow { step, run, total, succeeded, failed, status, .. } = row;
        Self { step, run, total, succeeded, failed, status }
    }
}

/// One attempt at a command.
#[derive(Serialize, ToSchema)]
pub struct CommandView {
    pub command_id: String,
    pub step: String,
    pub run: u32,
    pub iteration: Option<u32>,
    pub attempt: u32,
    /// `PENDING`, `COMPLETED`, `FAILED` or `LOST`.
    pub status: Option<String>,
    pub tool: Option<String>,
    /// Who did it: `tools/http@0.1.0`.
    pub plugin: Option<String>,
    pub issued_at: Option<String>,
    pub ended_at: Option<String>,
    pub error: Option<String>,
}

impl From<CommandRow> for CommandView {
    fn from(row: CommandRow) -> Self {
        Self {
            command_id: row.command,
            step: row.step,
            run: row.run,
            iteration: row.iteration,
            attempt: row.attempt,
            status: row.status,
            tool: row.tool,
            plugin: row.plugin,
            issued_at: row.issued_ms.map(rfc3339),
            ended_at: row.ended_ms.map(rfc3339),
            error: row.error,
        }
    }
}

/// How far an execution is, in runs of steps.
#[derive(Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Progress {
    /// Entered or skipped so far.
    pub total: u64,
    /// Done or skipped.
    pub completed: u64,
    /// Running or parked. None is once the execution has ended: what was under way then was given up.
    pub running: u64,
    pub failed: u64,
}

impl Progress {
    pub fn of(steps: &[StepRow], has_ended: bool) -> Self {
        let mut progress = Self::default();
        for step in steps {
            progress.total += 1;
            match step.status.as_deref() {
                Some("COMPLETED" | "SKIPPED") => progress.completed += 1,
                Some("FAILED") => progress.failed += 1,
                _ => progress.running += u64::from(!has_ended),
            }
        }
        progress
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ids_are_text_and_times_are_dates() {
        let row = ExecutionRow {
            execution: 340_000_000_000_000_001,
            tenant: "acme".to_owned(),
            parent: Some(5),
            started_ms: Some(1_769_860_800_000),
            ended_ms: Some(1_769_860_801_500),
            last_event: 8 * 3 + 7,
            ..ExecutionRow::default()
        };
        let view = serde_json::to_value(ExecutionView::from(row)).expect("plain data");
        assert_eq!(view["execution_id"], "340000000000000001");
        assert_eq!(view["parent_execution_id"], "5");
        assert_eq!(view["started_at"], "2026-01-31T12:00:00.000Z");
        assert_eq!((&view["duration_ms"], &view["event_count"]), (&json!(1500), &json!(3)));
        assert_eq!(view["status"], "RUNNING", "an execution nobody has said more about runs");
    }

    #[test]
    fn progress_counts_runs_of_steps() {
        let step = |status: &str| StepRow { status: Some(status.to_owned()), ..StepRow::default() };
        let steps = ["COMPLETED", "SKIPPED", "FAILED", "RUNNING", "PARKED"].map(step);
        assert_eq!(Progress::of(&steps, false), Progress { total: 5, completed: 2, running: 2, failed: 1 });
        assert_eq!(Progress::of(&steps, true).running, 0);
    }
}
