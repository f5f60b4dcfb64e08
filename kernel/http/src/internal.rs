//! For services of the platform: what was appended and still has to be published, and whether the tables follow.
//!
//! A claim hands out messages for a while. Whoever has published them says so; what is not heard of again is handed
//! out anew, so a publisher that dies loses nothing and receivers drop duplicates by the `key`.

use axum::Json;
use axum::response::{IntoResponse, Response};
use noetl_dispatch::engine;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::app::{Cx, to_the_end};
use crate::engine::settled;
use crate::input;
use crate::problem::Problem;

const USUAL_LIMIT: u32 = 100;
const HIGHEST_LIMIT: u32 = 1000;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ClaimQuery {
    /// Messages at most: 100 when left out, at most 1000.
    limit: Option<u32>,
}

#[derive(Serialize, ToSchema)]
pub struct Claimed {
    rows: Vec<OutboxRow>,
    claimed: usize,
}

/// A message to be published.
#[derive(Serialize, ToSchema)]
pub struct OutboxRow {
    /// Messages with the same id are published or fail together.
    outbox_id: String,
    subject: String,
    /// The same for the same message, however often it is handed out.
    key: String,
    /// Text of the message.
    payload: String,
    /// `json`.
    payload_codec: &'static str,
    /// The how-manieth time it is handed out.
    attempts: u32,
}

impl From<engine::OutboxRow> for OutboxRow {
    fn from(row: engine::OutboxRow) -> Self {
        Self {
            outbox_id: row.lease.to_string(),
            subject: row.subject,
            key: row.key,
            payload: String::from_utf8_lossy(&row.payload).into_owned(),
            payload_codec: "json",
            attempts: row.attempts,
        }
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Ids of a claim, at least one.
    outbox_ids: Vec<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Failed {
    outbox_id: String,
    /// Why it could not be published.
    error: String,
}

#[derive(Serialize, ToSchema)]
pub struct Marked {
    /// Ids that were handed out and not marked before.
    marked: usize,
}

#[derive(Serialize, ToSchema)]
pub struct Pending {
    /// Places of the log that are not published yet.
    pending: u64,
}

#[derive(Serialize, ToSchema)]
pub struct Projected {
    /// Places of the log the tables were behind.
    projected: u64,
    /// Place of the log the tables stand for now.
    position: String,
}

/// Take messages to publish.
#[utoipa::path(post, path = "/api/internal/outbox/claim", tag = "internal", params(ClaimQuery),
    responses((status = 200, body = Claimed)))]
pub async fn claim(cx: Cx) -> Result<Response, Problem> {
    let query: ClaimQuery = input::query(&cx.query)?;
    let limit = input::limit(query.limit, USUAL_LIMIT, HIGHEST_LIMIT)?;
    let kernel = cx.kernel().clone();
    let messages = to_the_end(async move { kernel.engine().outbox_claim(limit).await }).await?;
    let rows: Vec<_> = messages.into_iter().map(OutboxRow::from).collect();
    Ok(Json(Claimed { claimed: rows.len(), rows }).into_response())
}

/// Say that messages were published.
#[utoipa::path(post, path = "/api/internal/outbox/mark-published", tag = "internal", request_body = Published,
    responses((status = 200, body = Marked)))]
pub async fn mark_published(mut cx: Cx) -> Result<Response, Problem> {
    input::query::<input::Nothing>(&cx.query)?;
    let Published { outbox_ids } = input::document(&mut cx).await?;
    if outbox_ids.is_empty() {
        return Err(Problem::invalid_field("invalid_body", "outbox_ids", "field `outbox_ids`: name at least one"));
    }
    let ids = outbox_ids.iter().map(|id| outbox_id("outbox_ids", id)).collect::<Result<Vec<_>, _>>()?;
    let kernel = cx.kernel().clone();
    let marked = to_the_end(async move { kernel.engine().outbox_mark_published(&ids).await }).await?;
    Ok(Json(Marked { marked }).into_response())
}

/// Say that a message could not be published; it is handed out again after a pause that grows.
#[utoipa::path(post, path = "/api/internal/outbox/mark-failed", tag = "internal", request_body = Failed,
    responses((status = 200, body = Marked)))]
pub async fn mark_failed(mut cx: Cx) -> Result<Response, Problem> {
    input::query::<input::Nothing>(&cx.query)?;
    let Failed { outbox_id: id, error } = input::document(&mut cx).await?;
    let (kernel, id) = (cx.kernel().clone(), outbox_id("outbox_id", &id)?);
    let marked = to_the_end(async move { kernel.engine().outbox_mark_failed(id, &error).await }).await?;
    Ok(Json(Marked { marked }).into_response())
}

/// Count what is not published yet.
#[utoipa::path(get, path = "/api/internal/outbox/pending-count", tag = "internal",
    responses((status = 200, body = Pending)))]
pub async fn pending_count(cx: Cx) -> Result<Response, Problem> {
    input::query::<input::Nothing>(&cx.query)?;
    Ok(Json(Pending { pending: cx.engine().outbox_pending().await? }).into_response())
}

/// Bring the tables up to the log, which they follow by themselves: answers when they have what it has now.
#[utoipa::path(post, path = "/api/internal/events/project", tag = "internal",
    responses((status = 200, body = Projected)))]
pub async fn project(cx: Cx) -> Result<Response, Problem> {
    input::query::<input::Nothing>(&cx.query)?;
    let tables = cx.engine().projections();
    let before = tables.cursor();
    settled(cx.kernel()).await?;
    let now = tables.cursor();
    Ok(Json(Projected { projected: now - before, position: now.to_string() }).into_response())
}

fn outbox_id(field: &str, text: &str) -> Result<u64, Problem> {
    text.parse().map_err(|_| {
        let detail = format!("field `{field}`: `{text:.64}` is not an id of a claim");
        Problem::invalid_field("invalid_body", field, detail)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_is_none_is_named() {
        assert_eq!(outbox_id("outbox_id", "17").expect("valid"), 17);
        assert_eq!(outbox_id("outbox_id", "x").expect_err("refused").document("r")["field"], "outbox_id");
    }
}
