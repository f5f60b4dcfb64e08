//! What operators and their tools ask: alive, ready, metrics, and the help pages of errors.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::Cx;
use crate::help;
use crate::problem::Problem;

const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Browsers show plain text and download Markdown.
const PAGE_TYPE: &str = "text/plain; charset=utf-8";

#[derive(Serialize, ToSchema)]
pub struct Health {
    /// Always `ok`: a process that is not does not answer.
    status: &'static str,
    version: &'static str,
}

#[derive(Serialize, ToSchema)]
pub struct Ready {
    ready: bool,
    /// What the server waits for, or that it waits for nothing.
    detail: String,
}

/// Whether the process answers.
#[utoipa::path(get, path = "/health", tag = "operations", responses((status = 200, body = Health)))]
pub async fn health(_cx: Cx) -> Result<Response, Problem> {
    Ok(Json(Health { status: "ok", version: env!("CARGO_PKG_VERSION") }).into_response())
}

/// Whether the server can take calls: 200 when it can, 503 while it cannot.
#[utoipa::path(get, path = "/ready", tag = "operations",
    responses((status = 200, body = Ready), (status = 503, body = Ready)))]
pub async fn ready(cx: Cx) -> Result<Response, Problem> {
    let readiness = cx.kernel().readiness();
    let ready = readiness.ready && !*cx.app.closing.borrow();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    Ok((status, Json(Ready { ready, detail: readiness.detail })).into_response())
}

/// All metrics in the OpenMetrics text format. Needs an administrator's token unless the server listens on
/// loopback or the operator opened them.
#[utoipa::path(get, path = "/metrics", tag = "operations",
    responses((status = 200, body = String, content_type = "application/openmetrics-text")))]
pub async fn metrics(cx: Cx) -> Result<Response, Problem> {
    Ok(([(header::CONTENT_TYPE, METRICS_TYPE)], cx.kernel().render_metrics()).into_response())
}

/// The codes of all problems, with their titles.
#[utoipa::path(get, path = "/errors", tag = "operations",
    responses((status = 200, body = String, content_type = "text/plain")))]
pub async fn error_index(_cx: Cx) -> Result<Response, Problem> {
    Ok(([(header::CONTENT_TYPE, PAGE_TYPE)], help::index()).into_response())
}

/// The help page of one problem: what it means, why it happens, what to do.
#[utoipa::path(get, path = "/errors/{code}", tag = "operations", params(("code" = String, Path)),
    responses((status = 200, body = String, content_type = "text/plain")))]
pub async fn error_page(cx: Cx) -> Result<Response, Problem> {
    let page = help::page(&cx.args.name).ok_or_else(|| {
        Problem::new(StatusCode::NOT_FOUND, "not_found", "there is no problem with this code; `/errors` lists all")
    })?;
    Ok(([(header::CONTENT_TYPE, PAGE_TYPE)], page).into_response())
}
