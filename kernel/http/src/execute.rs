//! Playbooks are started here: one, waited for or not, or many at a time.
//!
//! An execution that is answered with an id is in the log, whatever becomes of the client or the server afterwards.
//! Waiting only watches: when the time is over the answer has the id and the execution goes on. A server that stops
//! breaks the wait off with 503; what was started goes on after the next start, and a `dedup` key finds it again.
//!
//! Of a batch each item succeeds or fails by itself. All are started at once, so that they share commits of the log.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::future::join_all;
use noetl_contract::Tenant;
use noetl_dispatch::Kernel;
use noetl_dispatch::engine::{Dedup, Ended, EngineError, Execute, Started};
use noetl_registry::playbooks::CatalogId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use crate::app::{App, Cx, to_the_end};
use crate::input;
use crate::outcome::Outcome;
use crate::problem::Problem;
use crate::values::{Version, Wait};

/// Largest payload of an execution, as JSON.
const MOST_PAYLOAD: usize = 1 << 20;
/// The payload and the short fields beside it.
const MOST_BODY: u64 = MOST_PAYLOAD as u64 + (64 << 10);
const MOST_BATCH_BODY: u64 = 32 << 20;
const MOST_BATCH: usize = 1000;
const USUAL_WAIT: Duration = Duration::from_secs(60);
const LONGEST_WAIT: Duration = Duration::from_secs(600);
const USUAL_WINDOW_SECS: u64 = 300;
const LONGEST_WINDOW_SECS: u64 = 7 * 24 * 3600;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ExecuteQuery {
    /// Answer when the execution has ended, or after so many seconds: `true` is 60, at most 600.
    #[param(value_type = Option<u64>)]
    wait: Option<Wait>,
    /// The token's own tenant when left out; an administrator names one, or means `main`.
    #[param(value_type = Option<String>)]
    tenant: Option<Tenant>,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct BatchQuery {
    #[param(value_type = Option<String>)]
    tenant: Option<Tenant>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExecuteBody {
    /// Path of the playbook, or `catalog_id`.
    path: Option<String>,
    /// `<path>@<version>`.
    catalog_id: Option<String>,
    /// A number, or `latest`, which is what leaving it out means.
    #[schema(value_type = Option<u32>)]
    version: Option<Version>,
    /// Laid over the playbook's own workload; at most 1 MiB.
    #[serde(alias = "workload")]
    #[schema(value_type = Option<Object>)]
    payload: Option<Map<String, Value>>,
    /// Where its commands run unless the playbook says otherwise.
    execution_pool: Option<String>,
    trace: Option<Trace>,
    dedup: Option<DedupBody>,
    /// As the parameter, which goes first.
    #[schema(value_type = Option<u64>)]
    wait: Option<Wait>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// W3C trace context to carry on; the header of the same name when left out.
    traceparent: String,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DedupBody {
    /// Within the window, a second request with this key starts nothing and gets the id of the first.
    key: String,
    /// 300 when left out.
    window_secs: Option<u64>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchBody {
    /// 1 to 1000 bodies as of `execute`, without `wait`.
    #[schema(value_type = Vec<ExecuteBody>)]
    executions: Vec<Value>,
}

#[derive(Serialize, ToSchema)]
pub struct StartedView {
    execution_id: String,
    /// `started`, or `duplicate` for one that an earlier request with the same key started.
    status: &'static str,
}

/// What was waited for.
#[derive(Serialize, ToSchema)]
pub struct Waited {
    execution_id: String,
    /// `completed`, `failed`, `cancelled`, or `running` when the time was over before it ended.
    status: String,
    /// Result of the last step.
    #[schema(value_type = Object)]
    output: Value,
    /// Where the whole is, when `output` is only an extract.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    output_ref: Option<Value>,
    /// `{code, message, retryable}` of one that failed.
    #[schema(value_type = Object)]
    error: Value,
}

#[derive(Serialize, ToSchema)]
pub struct BatchView {
    count: usize,
    started: usize,
    duplicates: usize,
    failed: usize,
    /// In the order of the request.
    results: Vec<BatchResult>,
}

#[derive(Serialize, ToSchema)]
pub struct BatchResult {
    index: usize,
    /// `started`, `duplicate` or `failed`.
    status: &'static str,
    execution_id: Option<String>,
    /// `{code, detail, ...}` of an item that failed: the problem it alone would have been answered with.
    #[schema(value_type = Option<Object>)]
    error: Option<Value>,
}

/// Start a playbook.
#[utoipa::path(post, path = "/api/execute", tag = "executions", params(ExecuteQuery), request_body = ExecuteBody,
    responses((status = 202, description = "it is in the log, and will run whatever happens", body = StartedView),
        (status = 200, description = "with `wait`: how it ended", body = Waited),
        (status = 404, description = "there is no such playbook"),
        (status = 422, description = "the playbook has mistakes")))]
pub async fn execute(mut cx: Cx) -> Result<Response, Problem> {
    let query: ExecuteQuery = input::query(&cx.query)?;
    let tenant = cx.caller()?.works_for(query.tenant)?;
    let body: ExecuteBody = input::document_within(&mut cx, MOST_BODY).await?;
    let wait = wait_time(query.wait.or(body.wait))?;
    let trace = traceparent(&cx.headers);
    let request = request(body, tenant, cx.caller()?.token.name.clone(), trace)?;
    match wait {
        None => {
            let started = start(cx.kernel().clone(), request).await?;
            accepted(started, &StartedView::of(started))
        }
        Some(time) => {
            let (started, ended) = start_and_watch(&cx.app, request, time).await?;
            let Some(ended) = ended else {
                return accepted(started, &Waited::of(started, "running".to_owned(), Outcome::default()));
            };
            let outcome = Outcome::of(cx.kernel().payloads(), &ended).await;
            Ok(Json(Waited::of(started, ended.status, outcome)).into_response())
        }
    }
}

/// Start up to 1000 playbooks. Each succeeds or fails by itself.
#[utoipa::path(post, path = "/api/execute/batch", tag = "executions", params(BatchQuery), request_body = BatchBody,
    responses((status = 200, body = BatchView)))]
pub async fn batch(mut cx: Cx) -> Result<Response, Problem> {
    let query: BatchQuery = input::query(&cx.query)?;
    let tenant = cx.caller()?.works_for(query.tenant)?;
    let BatchBody { executions } = input::document_within(&mut cx, MOST_BATCH_BODY).await?;
    if !(1..=MOST_BATCH).contains(&executions.len()) {
        let detail = format!("field `executions`: from 1 to {MOST_BATCH} of them; this has {}", executions.len());
        return Err(Problem::invalid_field("invalid_body", "executions", detail));
    }
    let (by, trace) = (cx.caller()?.token.name.clone(), traceparent(&cx.headers));
    let one = |item: Value| {
        let request = batch_item(item).and_then(|body| request(body, tenant.clone(), by.clone(), trace.clone()));
        let kernel = cx.kernel().clone();
        async move { start(kernel, request?).await }
    };
    let outcomes = join_all(executions.into_iter().map(one)).await;
    Ok(Json(BatchView::of(outcomes)).into_response())
}

fn batch_item(item: Value) -> Result<ExecuteBody, Problem> {
    let body: ExecuteBody = input::part(item)?;
    if body.wait.is_some_and(|wait| wait != Wait::No) {
        let detail = "field `wait`: a batch is not waited for; start it alone, or watch its events";
        return Err(Problem::invalid_field("invalid_body", "wait", detail));
    }
    Ok(body)
}

async fn start(kernel: Arc<Kernel>, request: Execute) -> Result<Started, Problem> {
    Ok(to_the_end(async move { kernel.engine().execute(request).await }).await?)
}

/// How it ended; none when the time is over first. A server that stops breaks off the wait, not the execution.
async fn start_and_watch(app: &App, request: Execute, time: Duration) -> Result<(Started, Option<Ended>), Problem> {
    let mut closing = app.closing.clone();
    tokio::select! {
        ended = app.kernel.engine().execute_and_wait(request, time) => Ok(ended?),
        _ = closing.wait_for(|closing| *closing) => Err(EngineError::Stopping.into()),
    }
}

fn accepted(started: Started, view: &impl Serialize) -> Result<Response, Problem> {
    let place = format!("/api/executions/{}", started.execution);
    let place = HeaderValue::from_str(&place).map_err(Problem::internal)?;
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, place)], Json(view)).into_response())
}

/// What the engine is asked for.
fn request(body: ExecuteBody, tenant: Tenant, by: String, trace: Option<String>) -> Result<Execute, Problem> {
    let (path, version) = target(&body)?;
    let payload = Value::Object(body.payload.unwrap_or_default()).to_string();
    if payload.len() > MOST_PAYLOAD {
        let detail = format!("field `payload`: at most {MOST_PAYLOAD} bytes of JSON; this has {}", payload.len());
        let problem = Problem::of(413, "body_too_large", detail);
        return Err(problem.with("field", "payload").with("limit_bytes", MOST_PAYLOAD as u64));
    }
    let trace = match body.trace {
        Some(given) if is_traceparent(&given.traceparent) => Some(given.traceparent),
        Some(_) => return Err(invalid("trace.traceparent", "use `00-<32 hex digits>-<16 hex digits>-<2 hex digits>`")),
        None => trace,
    };
    let dedup = body.dedup.map(dedup).transpose()?;
    Ok(Execute { tenant, path, version, payload, pool: body.execution_pool, trace, requested_by: by, dedup })
}

fn target(body: &ExecuteBody) -> Result<(String, Option<u32>), Problem> {
    let version = body.version.and_then(|version| version.0);
    match (&body.path, &body.catalog_id) {
        (Some(path), None) => Ok((path.clone(), version)),
        (None, Some(id)) if body.version.is_none() => {
            let id: CatalogId = id.parse().map_err(|error| invalid("catalog_id", format_args!("{error}")))?;
            Ok((id.path.to_string(), Some(id.version)))
        }
        (None, Some(_)) => Err(invalid("version", "`catalog_id` names the version already")),
        (Some(_), Some(_)) => Err(invalid("catalog_id", "name the playbook by `path` or by `catalog_id`, not by both")),
        (None, None) => Err(invalid("path", "name the playbook to execute")),
    }
}

fn dedup(given: DedupBody) -> Result<Dedup, Problem> {
    if !(1..=256).contains(&given.key.len()) {
        return Err(invalid("dedup.key", "use 1 to 256 bytes"));
    }
    let window = given.window_secs.unwrap_or(USUAL_WINDOW_SECS);
    if !(1..=LONGEST_WINDOW_SECS).contains(&window) {
        return Err(invalid("dedup.window_secs", format_args!("from 1 to {LONGEST_WINDOW_SECS}")));
    }
    Ok(Dedup { key: given.key, window: Duration::from_secs(window) })
}

fn wait_time(wait: Option<Wait>) -> Result<Option<Duration>, Problem> {
    match wait {
        None | Some(Wait::No | Wait::Seconds(0)) => Ok(None),
        Some(Wait::Usual) => Ok(Some(USUAL_WAIT)),
        Some(Wait::Seconds(seconds)) if seconds <= LONGEST_WAIT.as_secs() => Ok(Some(Duration::from_secs(seconds))),
        Some(Wait::Seconds(_)) => {
            let detail = format!("parameter `wait`: at most {} s; watch its events instead", LONGEST_WAIT.as_secs());
            Err(Problem::invalid_field("invalid_parameter", "wait", detail))
        }
    }
}

fn invalid(field: &str, detail: impl std::fmt::Display) -> Problem {
    Problem::invalid_field("invalid_body", field, format!("field `{field}`: {detail}"))
}

/// The trace of the request itself, where it has one that is well formed.
fn traceparent(headers: &HeaderMap) -> Option<String> {
    let given = headers.get("traceparent")?.to_str().ok()?;
    is_traceparent(given).then(|| given.to_owned())
}

fn is_traceparent(text: &str) -> bool {
    let hex = |part: &str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let parts: Vec<&str> = text.split('-').collect();
    parts.iter().map(|part| part.len()).eq([2, 32, 16, 2]) && parts.iter().all(|part| hex(part))
}

impl StartedView {
    fn of(started: Started) -> Self {
        let status = if started.duplicate { "duplicate" } else { "started" };
        Self { execution_id: started.execution.to_string(), status }
    }
}

impl Waited {
    fn of(started: Started, status: String, outcome: Outcome) -> Self {
        let Outcome { output, output_ref, failure } = outcome;
        Self { execution_id: started.execution.to_string(), status, output, output_ref, error: failure }
    }
}

impl BatchView {
    fn of(outcomes: Vec<Result<Started, Problem>>) -> Self {
        let one = |(index, outcome): (usize, Result<Started, Problem>)| match outcome {
            Ok(started) => {
                let StartedView { execution_id, status } = StartedView::of(started);
                BatchResult { index, status, execution_id: Some(execution_id), error: None }
            }
            Err(problem) => BatchResult { index, status: "failed", execution_id: None, error: Some(problem.as_part()) },
        };
        let results: Vec<_> = outcomes.into_iter().enumerate().map(one).collect();
        let number = |status: &str| results.iter().filter(|result| result.status == status).count();
        let (started, duplicates, failed) = (number("started"), number("duplicate"), number("failed"));
        Self { count: results.len(), started, duplicates, failed, results }
    }
}

#[cfg(test)]
#[path = "execute_tests.rs"]
mod tests;
