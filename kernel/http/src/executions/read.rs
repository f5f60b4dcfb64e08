//! What the tables say about executions: a list, one of them whole, its state in short, its commands; and why one
//! ended as it did, which the engine itself says.
//!
//! The tables follow the log. An execution that was acknowledged is never "not found" here: when its row is not there
//! yet, the answer waits for it.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use noetl_contract::Tenant;
use noetl_dispatch::Kernel;
use noetl_dispatch::engine::{Engine, ExecutionId};
use noetl_store::projections::{ExecutionRow, ListQuery as Wanted, PAGE, PathFilter, ProjectionError, is_terminal};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::rows::{CommandView, ExecutionView, LoopView, Progress, StepView};
use crate::app::Cx;
use crate::engine::{Consistency, settled, tables};
use crate::input;
use crate::outcome::Outcome;
use crate::problem::Problem;
use crate::values::{Id, Moment};

const HIGHEST_LIMIT: u32 = 1000;
/// Runs of steps, and loops, that one execution is answered with.
const MOST_PARTS: usize = 1000;
/// Runs of steps that are counted for the progress.
const MOST_COUNTED: usize = 10_000;
/// How an execution came to its end is asked for when it has: the time is only a bound.
const ENDED_WAIT: Duration = Duration::from_secs(5);
const STATUSES: [&str; 4] = ["RUNNING", "COMPLETED", "FAILED", "CANCELLED"];

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// Of this playbook, or with a `*` at the end of all whose paths start so.
    path: Option<String>,
    /// `running`, `completed`, `failed` or `cancelled`, in any case.
    status: Option<String>,
    /// Children of this execution.
    #[param(value_type = Option<String>)]
    parent: Option<Id>,
    /// Started at this time or later: RFC 3339, or milliseconds since 1970.
    #[param(value_type = Option<String>)]
    since: Option<Moment>,
    /// Started at this time or earlier.
    #[param(value_type = Option<String>)]
    until: Option<Moment>,
    /// 50 when left out, at most 1000.
    limit: Option<u32>,
    /// `next` of the page before.
    cursor: Option<String>,
    #[param(inline)]
    consistency: Option<Consistency>,
    /// The token's own tenant when left out; an administrator who names none gets those of all.
    #[param(value_type = Option<String>)]
    tenant: Option<Tenant>,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ShowQuery {
    #[param(inline)]
    consistency: Option<Consistency>,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct CommandsQuery {
    /// 50 when left out, at most 1000.
    limit: Option<u32>,
    /// `next` of the page before.
    after: Option<String>,
    #[param(inline)]
    consistency: Option<Consistency>,
}

#[derive(Serialize, ToSchema)]
pub struct ExecutionPage {
    /// Newest first.
    executions: Vec<ExecutionView>,
    /// Give it as `cursor` for the next page; none on the last one.
    next: Option<String>,
    /// Place in the log up to which the tables stand for it.
    as_of: String,
}

#[derive(Serialize, ToSchema)]
pub struct ExecutionWhole {
    #[serde(flatten)]
    execution: ExecutionView,
    /// The playbook's own with the payload laid over it.
    #[schema(value_type = Object)]
    workload: Value,
    /// Runs of steps in the order of their entering, the first 1000.
    steps: Vec<StepView>,
    loops: Vec<LoopView>,
    /// Of one that has ended.
    #[serde(flatten)]
    outcome: Outcome,
}

#[derive(Serialize, ToSchema)]
pub struct StatusView {
    execution_id: String,
    status: String,
    current_step: Option<String>,
    progress: Progress,
    is_cancelled: bool,
}

#[derive(Serialize, ToSchema)]
pub struct CommandPage {
    /// By step, run, iteration and attempt.
    commands: Vec<CommandView>,
    /// Give it as `after` for the next page; none on the last one.
    next: Option<String>,
}

/// List executions.
#[utoipa::path(get, path = "/api/executions", tag = "executions", params(ListQuery),
    responses((status = 200, body = ExecutionPage)))]
pub async fn list(cx: Cx) -> Result<Response, Problem> {
    let query: ListQuery = input::query(&cx.query)?;
    let tenant = cx.caller()?.acts_for(query.tenant.clone())?;
    let consistency = query.consistency.unwrap_or_default();
    let wanted = wanted(query, tenant)?;
    consistency.reached(cx.kernel()).await?;
    // Read before the rows, so that it never promises more than they have.
    let as_of = cx.engine().projections().cursor().to_string();
    let page = tables(cx.kernel(), move |tables| tables.executions(&wanted)).await?;
    let executions = page.rows.into_iter().map(ExecutionView::from).collect();
    Ok(Json(ExecutionPage { executions, next: page.next, as_of }).into_response())
}

fn wanted(query: ListQuery, tenant: Option<Tenant>) -> Result<Wanted, Problem> {
    let path = query.path.map(|path| match path.strip_suffix('*') {
        Some(prefix) => PathFilter::StartsWith(prefix.to_owned()),
        None => PathFilter::Is(path),
    });
    let status = query.status.map(|given| {
        let known = STATUSES.iter().find(|status| status.eq_ignore_ascii_case(&given));
        known.map(|status| (*status).to_owned()).ok_or_else(|| {
            let detail = "parameter `status`: use `running`, `completed`, `failed` or `cancelled`";
            Problem::invalid_field("invalid_parameter", "status", detail)
        })
    });
    Ok(Wanted {
        tenant: tenant.map(|tenant| tenant.to_string()),
        path,
        status: status.transpose()?,
        parent: query.parent.map(|id| id.0.0),
        since_ms: query.since.map(|moment| moment.0),
        until_ms: query.until.map(|moment| moment.0),
        size: input::limit(query.limit, PAGE as u32, HIGHEST_LIMIT)?,
        cursor: query.cursor,
    })
}

/// Show one execution: where it stands, its steps and loops, and what it came to.
#[utoipa::path(get, path = "/api/executions/{id}", tag = "executions", params(("id" = String, Path), ShowQuery),
    responses((status = 200, body = ExecutionWhole)))]
pub async fn show(cx: Cx) -> Result<Response, Problem> {
    let query: ShowQuery = input::query(&cx.query)?;
    let id = cx.execution()?;
    query.consistency.unwrap_or_default().reached(cx.kernel()).await?;
    let row = row(cx.kernel(), id).await?;
    let parts = move |tables: &noetl_store::projections::Projections| {
        Ok::<_, ProjectionError>((tables.steps(id.0, MOST_PARTS)?, tables.loops(id.0, MOST_PARTS)?))
    };
    let (steps, loops) = tables(cx.kernel(), parts).await?;
    let ended = row.status.as_deref().is_some_and(is_terminal);
    let ended = if ended { cx.engine().wait(id, ENDED_WAIT).await? } else { None };
    let outcome = match ended {
        Some(ended) => Outcome::of(cx.kernel().payloads(), &ended).await,
        None => Outcome::default(),
    };
    let whole = ExecutionWhole {
        execution: row.into(),
        workload: workload(cx.engine(), id).await?,
        steps: steps.into_iter().map(StepView::from).collect(),
        loops: loops.into_iter().map(LoopView::from).collect(),
        outcome,
    };
    Ok(Json(whole).into_response())
}

/// What an execution began with is in its first event.
async fn workload(engine: &Engine, id: ExecutionId) -> Result<Value, Problem> {
    let page = engine.events(id, 0, 1).await?;
    let first: Value = page.events.first().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    Ok(first.pointer("/result/context/data").or(first.pointer("/result/extracted")).cloned().unwrap_or_default())
}

/// Say in short where an execution stands.
#[utoipa::path(get, path = "/api/executions/{id}/status", tag = "executions",
    params(("id" = String, Path), ShowQuery), responses((status = 200, body = StatusView)))]
pub async fn status(cx: Cx) -> Result<Response, Problem> {
    let query: ShowQuery = input::query(&cx.query)?;
    let id = cx.execution()?;
    query.consistency.unwrap_or_default().reached(cx.kernel()).await?;
    let row = row(cx.kernel(), id).await?;
    let steps = tables(cx.kernel(), move |tables| tables.steps(id.0, MOST_COUNTED)).await?;
    let view = ExecutionView::from(row);
    let status = StatusView {
        execution_id: view.execution_id,
        is_cancelled: view.status == "CANCELLED",
        status: view.status,
        current_step: view.current_step,
        progress: Progress::of(&steps, view.ended_at.is_some()),
    };
    Ok(Json(status).into_response())
}

/// List the commands of an execution.
#[utoipa::path(get, path = "/api/executions/{id}/commands", tag = "executions",
    params(("id" = String, Path), CommandsQuery), responses((status = 200, body = CommandPage)))]
pub async fn commands(cx: Cx) -> Result<Response, Problem> {
    let query: CommandsQuery = input::query(&cx.query)?;
    let (id, limit) = (cx.execution()?, input::limit(query.limit, PAGE as u32, HIGHEST_LIMIT)?);
    query.consistency.unwrap_or_default().reached(cx.kernel()).await?;
    let page = tables(cx.kernel(), move |tables| tables.commands(id.0, query.after.as_deref(), limit)).await?;
    let commands = page.rows.into_iter().map(CommandView::from).collect();
    Ok(Json(CommandPage { commands, next: page.next }).into_response())
}

/// Explain how an execution came to its end, or what it waits for: the chain of causes, event by event.
#[utoipa::path(get, path = "/api/executions/{id}/why", tag = "executions", params(("id" = String, Path)),
    responses((status = 200, description = "`{status, headline, error, failed_steps, chain, waiting}`", body = Object)))]
pub async fn why(cx: Cx) -> Result<Response, Problem> {
    input::query::<input::Nothing>(&cx.query)?;
    let answer = cx.engine().explain(cx.execution()?).await?;
    Ok(json_text(answer))
}

/// JSON that a service wrote, as it is.
pub fn json_text(text: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], Body::from(text)).into_response()
}

/// The row of an execution that the engine knows.
async fn row(kernel: &Arc<Kernel>, id: ExecutionId) -> Result<ExecutionRow, Problem> {
    let find = || tables(kernel, move |tables| tables.execution(None, id.0));
    if let Some(row) = find().await? {
        return Ok(row);
    }
    settled(kernel).await?;
    find().await?.ok_or_else(|| {
        let detail = format!("execution {id} is in the log and not in the tables: the projector has not come to it");
        Problem::of(503, "service_unavailable", detail)
    })
}

#[cfg(test)]
mod tests {
    use noetl_store::projections::MOST;

    use super::*;

    fn read(text: &str) -> Result<Wanted, Problem> {
        input::query::<ListQuery>(text).and_then(|query| wanted(query, Tenant::new("acme").ok()))
    }

    #[test]
    fn filters_are_read_in_their_forms() {
        let all =
            read("path=a/*&status=failed&parent=7&since=2026-01-31T12:00:00Z&until=1769860800001&limit=10&cursor=1.2");
        let wanted = all.expect("valid");
        assert_eq!(wanted.tenant.as_deref(), Some("acme"));
        assert_eq!(wanted.path, Some(PathFilter::StartsWith("a/".to_owned())));
        assert_eq!(wanted.status.as_deref(), Some("FAILED"));
        assert_eq!((wanted.parent, wanted.size), (Some(7), 10));
        assert_eq!((wanted.since_ms, wanted.until_ms), (Some(1_769_860_800_000), Some(1_769_860_800_001)));
        assert_eq!(read("path=a/b").expect("valid").path, Some(PathFilter::Is("a/b".to_owned())));
        assert_eq!(read("").expect("valid").size, PAGE);
        assert_eq!(HIGHEST_LIMIT as usize, MOST);
    }

    #[test]
    fn a_wrong_filter_is_named() {
        for (text, field) in [
            ("status=done", "status"),
            ("limit=0", "limit"),
            ("limit=1001", "limit"),
            ("parent=x", "parent"),
            ("since=yesterday", "since"),
            ("statuss=failed", "statuss"),
            ("consistency=total", "consistency"),
        ] {
            assert_eq!(read(text).expect_err(text).document("r")["field"], field, "{text}");
        }
    }
}
