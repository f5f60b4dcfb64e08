//! What can be asked of an execution: to stop, to go on, to be tried again, to be forgotten.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::app::{Cx, to_the_end};
use crate::input;
use crate::problem::Problem;

/// Room for the value a parked step goes on with.
const MOST_VALUE: u64 = (1 << 20) + (64 << 10);

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelBody {
    /// Why, for the record.
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResumeBody {
    /// The parked step.
    step: String,
    /// The step's result; `null` when left out.
    #[serde(default)]
    #[schema(value_type = Object)]
    value: Value,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryBody {
    /// The failed step to begin with; the first that failed when left out.
    step: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct Steered {
    execution_id: String,
    /// `cancel_requested`, `resumed` or `deleted`.
    status: &'static str,
}

#[derive(Serialize, ToSchema)]
pub struct Retried {
    /// The new execution.
    execution_id: String,
    /// The failed one, whose finished steps it takes over.
    retry_of: String,
    /// `started`.
    status: &'static str,
}

/// Cancel an execution and its children. What runs may end, nothing else begins.
#[utoipa::path(post, path = "/api/executions/{id}/cancel", tag = "executions", params(("id" = String, Path)),
    request_body = CancelBody, responses((status = 200, body = Steered)))]
pub async fn cancel(mut cx: Cx) -> Result<Response, Problem> {
    input::query::<input::Nothing>(&cx.query)?;
    let CancelBody { reason } = input::document(&mut cx).await?;
    let (kernel, id, by) = (cx.kernel().clone(), cx.execution()?, cx.caller()?.token.name.clone());
    to_the_end(async move { kernel.engine().cancel(id, &reason, &by).await }).await?;
    Ok(Json(Steered { execution_id: id.to_string(), status: "cancel_requested" }).into_response())
}

/// Go on with a parked step.
#[utoipa::path(post, path = "/api/executions/{id}/resume", tag = "executions", params(("id" = String, Path)),
    request_body = ResumeBody, responses((status = 200, body = Steered)))]
pub async fn resume(mut cx: Cx) -> Result<Response, Problem> {
    input::query::<input::Nothing>(&cx.query)?;
    let ResumeBody { step, value } = input::document_within(&mut cx, MOST_VALUE).await?;
    let (kernel, id, by) = (cx.kernel().clone(), cx.execution()?, cx.caller()?.token.name.clone());
    to_the_end(async move { kernel.engine().resume(id, &step, &value.to_string(), &by).await }).await?;
    Ok(Json(Steered { execution_id: id.to_string(), status: "resumed" }).into_response())
}

/// Run a failed execution again from the step that failed, as a new execution.
#[utoipa::path(post, path = "/api/executions/{id}/retry", tag = "executions", params(("id" = String, Path)),
    request_body = RetryBody, responses((status = 202, body = Retried)))]
pub async fn retry(mut cx: Cx) -> Result<Response, Problem> {
    input::query::<input::Nothing>(&cx.query)?;
    let RetryBody { step } = input::document(&mut cx).await?;
    let (kernel, id, by) = (cx.kernel().clone(), cx.execution()?, cx.caller()?.token.name.clone());
    let started = to_the_end(async move { kernel.engine().retry(id, step.as_deref(), &by).await }).await?;
    let retried = Retried { execution_id: started.execution.to_string(), retry_of: id.to_string(), status: "started" };
    Ok((StatusCode::ACCEPTED, Json(retried)).into_response())
}

/// Forget an execution that has ended.
#[utoipa::path(delete, path = "/api/executions/{id}", tag = "executions", params(("id" = String, Path)),
    responses((status = 200, body = Steered)))]
pub async fn delete(cx: Cx) -> Result<Response, Problem> {
    input::query::<input::Nothing>(&cx.query)?;
    let (kernel, id) = (cx.kernel().clone(), cx.execution()?);
    to_the_end(async move { kernel.engine().delete(id).await }).await?;
    Ok(Json(Steered { execution_id: id.to_string(), status: "deleted" }).into_response())
}
