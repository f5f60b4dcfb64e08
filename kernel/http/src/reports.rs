//! What workers say about their commands.
//!
//! A worker that holds a command tells how it ended: `call.done` or `command.completed` with a result, `call.error` or
//! `command.failed` with an error. The first word about a command counts and every further one is a duplicate, so a
//! worker that is not sure whether it was heard says it again, alone or in a batch. Whatever else a worker tells
//! (`command.claimed`, `command.started`, a heartbeat) changes nothing and is answered as noted.

use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse, Response};
use noetl_dispatch::Kernel;
use noetl_dispatch::engine::ExecutionId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::app::{Cx, to_the_end};
use crate::executions::check_owner;
use crate::input;
use crate::problem::Problem;
use crate::values::Id;

const MOST_BODY: u64 = 32 << 20;
const MOST_BATCH: usize = 1000;

/// Said by workers as well; nothing is decided by it.
const ASIDES: [&str; 6] = ["step", "worker_id", "event_id", "created_at", "actionable", "informative"];

#[derive(ToSchema)]
#[expect(dead_code, reason = "only its schema is used; the two parts are read one after the other")]
pub struct EventBody {
    execution_id: String,
    #[serde(flatten)]
    event: WorkerEvent,
}

/// One word of a worker. `step`, `worker_id`, `event_id`, `created_at`, `actionable` and `informative` may be there too.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkerEvent {
    /// `call.done`, `command.completed`, `call.error`, `command.failed`; others are noted.
    #[serde(alias = "name")]
    event_type: String,
    /// `{command_id, result, error}`. `result` is the value itself, or `{status, context: {data}}`; `error` is
    /// `{code, message, retryable}`, or a sentence.
    #[serde(default, alias = "context")]
    #[schema(value_type = Object)]
    payload: Map<String, Value>,
    /// `command_id`, when the payload does not have it.
    #[serde(default)]
    #[schema(value_type = Object)]
    meta: Map<String, Value>,
    /// `data`, which is the only kind: results are sent themselves.
    #[serde(default)]
    #[expect(dead_code, reason = "reading it refuses any other kind")]
    result_kind: ResultKind,
    /// `FAILED` makes a failure of any end.
    status: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ResultKind {
    #[default]
    Data,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EventBatch {
    #[schema(value_type = String)]
    execution_id: Id,
    #[expect(dead_code, reason = "nothing is decided by it")]
    worker_id: Option<String>,
    /// 1 to 1000, in the order they happened.
    #[schema(value_type = Vec<WorkerEvent>)]
    events: Vec<Value>,
    /// May be sent and is not needed: each command counts once.
    #[expect(dead_code, reason = "the commands are what makes a repeated batch harmless")]
    idempotency_key: Option<String>,
}

/// What became of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Heard {
    /// It is in the log.
    Recorded,
    /// The command had ended before.
    Duplicate,
    /// It changes nothing.
    Noted,
}

#[derive(Serialize, ToSchema)]
pub struct EventAnswer {
    /// `ok`.
    status: &'static str,
    outcome: Heard,
}

#[derive(Serialize, ToSchema)]
pub struct EventBatchAnswer {
    /// `ok` when none failed, else `partial`.
    status: &'static str,
    recorded: usize,
    duplicates: usize,
    noted: usize,
    failed: usize,
    /// In the order of the request.
    results: Vec<EventResult>,
}

#[derive(Serialize, ToSchema)]
pub struct EventResult {
    index: usize,
    outcome: Option<Heard>,
    /// The problem it alone would have been answered with.
    #[schema(value_type = Option<Object>)]
    error: Option<Value>,
}

/// Tell how a command ended.
#[utoipa::path(post, path = "/api/events", tag = "events", request_body = EventBody,
    responses((status = 200, body = EventAnswer), (status = 404, description = "there is no such execution")))]
pub async fn report(mut cx: Cx) -> Result<Response, Problem> {
    input::query::<input::Nothing>(&cx.query)?;
    let body: Value = input::document_within(&mut cx, MOST_BODY).await?;
    let (execution, event) = single(body)?;
    check_owner(cx.kernel(), cx.caller()?, execution).await?;
    let kernel = cx.kernel().clone();
    let outcome = to_the_end(async move { hear(&kernel, execution, event).await }).await?;
    Ok(Json(EventAnswer { status: "ok", outcome }).into_response())
}

/// Tell how several commands of one execution ended.
#[utoipa::path(post, path = "/api/events/batch", tag = "events", request_body = EventBatch,
    responses((status = 200, body = EventBatchAnswer), (status = 404, description = "there is no such execution")))]
pub async fn batch(mut cx: Cx) -> Result<Response, Problem> {
    input::query::<input::Nothing>(&cx.query)?;
    let EventBatch { execution_id: Id(execution), events, .. } = input::document_within(&mut cx, MOST_BODY).await?;
    if !(1..=MOST_BATCH).contains(&events.len()) {
        let detail = format!("field `events`: from 1 to {MOST_BATCH} of them; this has {}", events.len());
        return Err(Problem::invalid_field("invalid_body", "events", detail));
    }
    check_owner(cx.kernel(), cx.caller()?, execution).await?;
    let kernel = cx.kernel().clone();
    let outcomes = to_the_end(async move {
        let mut outcomes = Vec::with_capacity(events.len());
        for event in events {
            outcomes.push(match worker_event(event) {
                Ok(event) => hear(&kernel, execution, event).await,
                Err(problem) => Err(problem),
            });
        }
        outcomes
    });
    Ok(Json(EventBatchAnswer::of(outcomes.await)).into_response())
}

/// The execution and the event of a body that has both side by side.
fn single(mut body: Value) -> Result<(ExecutionId, WorkerEvent), Problem> {
    let Some(id) = body.as_object_mut().and_then(|members| members.remove("execution_id")) else {
        let detail = "field `execution_id`: say which execution this is about";
        return Err(Problem::invalid_field("invalid_body", "execution_id", detail));
    };
    let Id(execution) = serde_json::from_value(id).map_err(|error| {
        Problem::invalid_field("invalid_body", "execution_id", format!("field `execution_id`: {error}"))
    })?;
    Ok((execution, worker_event(body)?))
}

fn worker_event(mut value: Value) -> Result<WorkerEvent, Problem> {
    if let Some(members) = value.as_object_mut() {
        members.retain(|name, _| !ASIDES.contains(&name.as_str()));
    }
    input::part(value)
}

async fn hear(kernel: &Arc<Kernel>, execution: ExecutionId, event: WorkerEvent) -> Result<Heard, Problem> {
    let Some(report) = report_of(event)? else { return Ok(Heard::Noted) };
    let Report { command, result, error } = report;
    let new = kernel.engine().report(execution, &command, &result.to_string(), error).await?;
    Ok(if new { Heard::Recorded } else { Heard::Duplicate })
}

/// How a command ended.
#[derive(Debug, PartialEq)]
struct Report {
    command: String,
    result: Value,
    /// Code, message, whether another attempt may help.
    error: Option<(String, String, bool)>,
}

/// The report in an event; none when the event is not about an end.
fn report_of(event: WorkerEvent) -> Result<Option<Report>, Problem> {
    let WorkerEvent { event_type, mut payload, meta, status, .. } = event;
    let failed = match event_type.as_str() {
        "call.done" | "command.completed" => status.is_some_and(|status| status.eq_ignore_ascii_case("failed")),
        "call.error" | "command.failed" => true,
        _ => return Ok(None),
    };
    let command = payload.get("command_id").or(meta.get("command_id")).and_then(Value::as_str);
    let Some(command) = command.filter(|command| !command.is_empty()).map(str::to_owned) else {
        let detail = "field `payload.command_id`: say which command this is about";
        return Err(Problem::invalid_field("invalid_body", "payload.command_id", detail));
    };
    let given = payload.remove("error").filter(|error| !error.is_null());
    let (result, said_error) = result_of(payload.remove("result").unwrap_or_default());
    let error = (failed || said_error || given.is_some()).then(|| error_of(given));
    Ok(Some(Report { command, result, error }))
}

/// The value in a result, and whether the result says that it is an error's.
fn result_of(result: Value) -> (Value, bool) {
    let Value::Object(mut members) = result else { return (result, false) };
    let status = members.get("status").and_then(Value::as_str).map(str::to_owned);
    let wrapped = status.is_some() && members.keys().all(|name| matches!(name.as_str(), "status" | "context"));
    if !wrapped {
        return (Value::Object(members), false);
    }
    let error = status.is_some_and(|status| matches!(status.as_str(), "error" | "failed"));
    let value = match members.remove("context") {
        Some(Value::Object(mut context)) if context.len() == 1 && context.contains_key("data") => {
            context.remove("data").unwrap_or_default()
        }
        context => context.unwrap_or_default(),
    };
    (value, error)
}

fn error_of(given: Option<Value>) -> (String, String, bool) {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match given {
        Some(Value::Object(members)) => {
            let code = members.get("code").map_or_else(|| "worker_failure".to_owned(), text);
            let message = members.get("message").map_or_else(|| "the worker gave no message".to_owned(), text);
            (code, message, members.get("retryable").and_then(Value::as_bool).unwrap_or(false))
        }
        Some(sentence) => ("worker_failure".to_owned(), text(&sentence), false),
        None => ("worker_failure".to_owned(), "the worker gave no message".to_owned(), false),
    }
}

impl EventBatchAnswer {
    fn of(outcomes: Vec<Result<Heard, Problem>>) -> Self {
        let one = |(index, outcome): (usize, Result<Heard, Problem>)| match outcome {
            Ok(heard) => EventResult { index, outcome: Some(heard), error: None },
            Err(problem) => EventResult { index, outcome: None, error: Some(problem.as_part()) },
        };
        let results: Vec<_> = outcomes.into_iter().enumerate().map(one).collect();
        let number = |wanted: Option<Heard>| results.iter().filter(|result| result.outcome == wanted).count();
        let failed = number(None);
        Self {
            status: if failed == 0 { "ok" } else { "partial" },
            recorded: number(Some(Heard::Recorded)),
            duplicates: number(Some(Heard::Duplicate)),
            noted: number(Some(Heard::Noted)),
            failed,
            results,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(event: Value) -> Result<Option<Report>, Problem> {
        worker_event(event).and_then(report_of)
    }

    fn done(result: Value) -> Report {
        let event = json!({"event_type": "call.done", "payload": {"command_id": "a#1", "result": result}});
        read(event).expect("valid").expect("an end")
    }

    #[test]
    fn a_result_is_the_value_itself_or_wrapped_as_events_have_it() {
        for result in [json!({"n": 1}), json!({"status": "success", "context": {"data": {"n": 1}}})] {
            let report = done(result);
            assert_eq!((report.command.as_str(), report.result, report.error), ("a#1", json!({"n": 1}), None));
        }
        let with_status = json!({"status": "shipped", "order": 7});
        assert_eq!(done(with_status.clone()).result, with_status, "a value may have a status of its own");
        assert!(done(json!({"status": "error", "context": {}})).error.is_some());
        assert_eq!(done(Value::Null).result, Value::Null);
    }

    #[test]
    fn a_failure_is_told_in_several_ways() {
        let error = json!({"code": "http_500", "message": "no", "retryable": true});
        let failed = json!({"name": "command.failed", "context": {"error": error}, "meta": {"command_id": "a#1[2]~3"}});
        let report = read(failed).expect("valid").expect("an end");
        assert_eq!(report.command, "a#1[2]~3");
        assert_eq!(report.error, Some(("http_500".to_owned(), "no".to_owned(), true)));
        let sentence = json!({"event_type": "call.error", "payload": {"command_id": "a#1", "error": "it broke"}});
        let error = read(sentence).expect("valid").expect("an end").error.expect("an error");
        assert_eq!((error.0.as_str(), error.1.as_str()), ("worker_failure", "it broke"));
        let status = json!({"event_type": "call.done", "status": "FAILED", "payload": {"command_id": "a#1"}});
        assert!(read(status).expect("valid").expect("an end").error.is_some());
    }

    #[test]
    fn other_words_are_noted_and_wrong_ones_named() {
        let claimed = json!({"event_type": "command.claimed", "step": "a", "worker_id": "w", "actionable": false});
        assert_eq!(read(claimed).expect("valid"), None);
        for (event, field) in [
            (json!({"payload": {}}), "event_type"),
            (json!({"event_type": "call.done"}), "payload.command_id"),
            (json!({"event_type": "call.done", "result_kind": "ref"}), "result_kind"),
            (json!({"event_type": "call.done", "paylod": {}}), "paylod"),
        ] {
            assert_eq!(read(event.clone()).expect_err("refused").document("r")["field"], field, "{event}");
        }
        let problem = single(json!({"event_type": "x"})).expect_err("no execution");
        assert_eq!(problem.document("r")["field"], "execution_id");
        assert_eq!(single(json!({"execution_id": 7, "event_type": "x"})).expect("valid").0, ExecutionId(7));
    }

    #[test]
    fn a_batch_is_counted() {
        let problem = Problem::of(409, "execution_state", "no");
        let answer =
            EventBatchAnswer::of(vec![Ok(Heard::Recorded), Ok(Heard::Duplicate), Ok(Heard::Noted), Err(problem)]);
        assert_eq!((answer.recorded, answer.duplicates, answer.noted, answer.failed), (1, 1, 1, 1));
        assert_eq!(answer.status, "partial");
    }
}
