//! What each compact event is told as.

use serde_json::{Map, Value as Json, json};

use super::draft::{Draft, Outcome};
use super::last_id;
use crate::event::{Data, Ending, Event, Reported, Started};
use crate::view::segment::Placed;
use crate::view::time::rfc3339;

/// The events in order, one at least.
pub fn drafts(placed: &Placed) -> Vec<Draft> {
    let recorded = &placed.recorded;
    let draft = match &recorded.event {
        Event::Started(started) => return of_start(started),
        Event::Reported(reported) => return of_report(reported, placed.claim),
        Event::LoopClosed { step, run, total, succeeded, failed } => {
            return of_loop_end(step, *run, [*total, *succeeded, *failed]);
        }
        Event::Resumed { step, run, data, requested_by } => return of_resume(step, *run, data, requested_by),
        Event::Adopted(adopted) => Draft::new("execution.adopted", &adopted.step, "playbook", "COMPLETED")
            .meta("from_execution_id", adopted.execution.as_str())
            .meta("steps", adopted.steps.iter().map(|step| step.step.as_str()).collect::<Vec<_>>()),
        Event::Entered { step, run, from, arc } => Draft::new("step.enter", step, "step", "STARTED")
            .meta("run", *run)
            .maybe("from", from.as_deref())
            .maybe("arc", *arc),
        Event::Arrived { step, from, arc } => {
            Draft::new("step.waiting", step, "step", "PENDING").meta("from", from.as_str()).meta("arc", *arc)
        }
        Event::Issued { command, tools, item } => {
            let kind = tools.first().map_or("task", String::as_str);
            let draft = Draft::new("command.issued", &command.step, kind, "PENDING").command(command);
            let draft = draft.meta("tools", tools.clone());
            draft.maybe("item", item.as_ref().map(|item| item.value.clone()))
        }
        Event::Lost { command } => Draft::new("command.lost", &command.step, "task", "FAILED").command(command),
        Event::LoopOpened { step, run, mode, total, in_flight, items: _ } => {
            Draft::new("loop.started", step, "loop", "STARTED")
                .meta("run", *run)
                .meta("mode", json!(mode))
                .meta("loop_event_id", last_id(recorded.id).to_string())
                .maybe("iterations_expected", *total)
                .maybe("max_in_flight", *in_flight)
        }
        Event::Claimed { step, run, count, items: _ } => {
            Draft::new("loop.claimed", step, "loop", "RUNNING").meta("run", *run).meta("count", *count)
        }
        Event::LoopSpilled { step, run, chunk, count } => {
            let data = Data { reference: Some(chunk.clone()), ..Data::default() };
            Draft::new("loop.spilled", step, "loop", "RUNNING")
                .result(Outcome::data(true, &data, step, *run, None))
                .meta("run", *run)
                .meta("count", *count)
        }
        Event::Set { step, values } => updated(step, values),
        Event::Skipped { step, from } => {
            Draft::new("step.skipped", step, "step", "SKIPPED").maybe("from", from.as_deref())
        }
        Event::ChildStarted { command, execution, path, label } => {
            Draft::new("child.started", &command.step, "playbook", "STARTED")
                .command(command)
                .meta("child_execution_id", execution.as_str())
                .meta("path", path.as_str())
                .maybe("label", label.as_deref())
        }
        Event::Parked { step, run, message, until } => Draft::new("step.parked", step, "step", "PARKED")
            .meta("run", *run)
            .maybe("message", message.as_deref())
            .maybe("until", until.map(rfc3339)),
        Event::Failing { step, error } => {
            Draft::new("execution.failing", step, "playbook", "RUNNING").error(Some(error))
        }
        Event::CancelRequested { reason, requested_by } => {
            Draft::new("execution.cancel_requested", "playbook", "playbook", "RUNNING")
                .meta("reason", reason.as_str())
                .meta("requested_by", requested_by.as_str())
        }
        Event::Finished(finished) => {
            let (kind, status) = match finished.status {
                Ending::Completed => ("playbook.completed", "COMPLETED"),
                Ending::Failed => ("playbook.failed", "FAILED"),
                Ending::Cancelled => ("execution.cancelled", "CANCELLED"),
            };
            let ok = finished.status == Ending::Completed;
            Draft::new(kind, "playbook", "playbook", status)
                .result(Outcome::data(ok, &finished.output, "playbook", 1, None))
                .error(finished.error.as_ref())
                .meta("failed_steps", finished.failed_steps.clone())
                .maybe("returned", finished.returned.as_ref().map(|returned| json!(returned)))
        }
    };
    vec![draft]
}

fn of_start(started: &Started) -> Vec<Draft> {
    let parent = started.starter().map(str::to_owned);
    let mut first = Draft::new("playbook.initialized", "playbook", "playbook", "STARTED")
        .meta("path", started.path.as_str())
        .meta("version", started.version)
        .meta("playbook_digest", started.digest.as_str())
        .meta("root_execution_id", started.root.as_str())
        .meta("requested_by", started.requested_by.as_str())
        .maybe("parent_command_id", started.parent.as_ref().map(|parent| parent.command.to_string()))
        .maybe("execution_pool", started.pool.as_deref())
        .maybe("trace", started.trace.as_deref());
    let workload = Data { value: Json::Object(started.workload.clone()), ..Data::default() };
    first = first.result(Outcome::data(true, &workload, "playbook", 1, None));
    let mut second = Draft::new("workflow.initialized", "workflow", "workflow", "STARTED");
    first.parent_execution = parent.clone();
    second.parent_execution = parent;
    vec![first, second]
}

/// What a report tells of its command, and then what it means to the step: its end, unless it is one of many.
fn of_report(reported: &Reported, claim: bool) -> Vec<Draft> {
    let Reported { command, data, error, .. } = reported;
    let ok = error.is_none();
    let status = if ok { "COMPLETED" } else { "FAILED" };
    let kind = kind_of(reported.plugin.as_deref());
    let draft = |name, status| Draft::new(name, &command.step, kind, status).command(command);
    let mut drafts = Vec::new();
    // A failure before any call may well be one of a command that nobody ever took.
    if ok || reported.calls > 0 || reported.execution.is_some() {
        drafts.extend([draft("command.claimed", "RUNNING"), draft("command.started", "STARTED")]);
    }
    let call = draft(if ok { "call.done" } else { "call.error" }, status)
        .result(Outcome::data(ok, data, &command.step, command.run, command.iteration))
        .error(error.as_ref())
        .meta("duration_ms", reported.took)
        .meta("calls", reported.calls)
        .maybe("plugin", reported.plugin.as_deref())
        .maybe("digest", reported.digest.as_deref())
        .maybe("child_execution_id", reported.execution.as_deref());
    let end = draft(if ok { "command.completed" } else { "command.failed" }, status)
        .result(Outcome::status(ok))
        .error(error.as_ref())
        .meta("duration_ms", reported.took);
    drafts.extend([call, end]);
    if !reported.set.is_empty() {
        drafts.push(updated(&command.step, &reported.set).command(command));
    }
    match command.iteration {
        Some(_) => drafts.push(Draft::new("loop.item", &command.step, "loop", status).command(command)),
        None if claim => {}
        None => drafts.push(step_exit(&command.step, command.run, ok).error(error.as_ref())),
    }
    drafts
}

fn of_loop_end(step: &str, run: u32, [total, succeeded, failed]: [u32; 3]) -> Vec<Draft> {
    let ok = failed == 0;
    let counts = Data { value: json!({"total": total, "succeeded": succeeded, "failed": failed}), ..Data::default() };
    let done = Draft::new("loop.done", step, "loop", if ok { "COMPLETED" } else { "FAILED" })
        .result(Outcome::data(ok, &counts, step, run, None))
        .meta("run", run);
    vec![done, step_exit(step, run, ok)]
}

fn of_resume(step: &str, run: u32, data: &Data, requested_by: &str) -> Vec<Draft> {
    let resumed = Draft::new("step.resumed", step, "step", "RUNNING")
        .result(Outcome::data(true, data, step, run, None))
        .meta("run", run)
        .meta("requested_by", requested_by);
    vec![resumed, step_exit(step, run, true)]
}

fn step_exit(step: &str, run: u32, ok: bool) -> Draft {
    let status = if ok { "COMPLETED" } else { "FAILED" };
    Draft::new("step.exit", step, "step", status).result(Outcome::status(ok)).meta("run", run)
}

fn updated(step: &str, values: &Map<String, Json>) -> Draft {
    Draft::new("ctx.updated", step, "step", "COMPLETED").meta("values", values.clone())
}

/// `http` for `tools/http@0.1.0`, the plugin's path for any other.
fn kind_of(plugin: Option<&str>) -> &str {
    let path = plugin.map(|plugin| plugin.split('@').next().unwrap_or(plugin));
    path.map_or("task", |path| path.strip_prefix("tools/").unwrap_or(path))
}
