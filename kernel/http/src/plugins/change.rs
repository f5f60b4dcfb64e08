//! Changes of a plugin by whoever owns it: move a channel, roll back, end a quarantine, delete a version.

use axum::Json;
use axum::response::{IntoResponse, Response};
use noetl_contract::Version;
use noetl_registry::{ChannelName, Moved};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::app::{Cx, to_the_end};
use crate::input;
use crate::problem::Problem;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveChannel {
    #[schema(value_type = String)]
    channel: ChannelName,
    #[schema(value_type = String)]
    version: Version,
    /// Why, for the history.
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Rollback {
    /// `stable` when left out.
    #[schema(value_type = Option<String>)]
    channel: Option<ChannelName>,
    /// The version to go to; the one served before when left out.
    #[schema(value_type = Option<String>)]
    to: Option<Version>,
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Release {
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct DeleteQuery {
    /// The version to delete; nothing may point to it.
    #[param(value_type = String)]
    version: Version,
    #[serde(default)]
    reason: String,
}

#[derive(Serialize, ToSchema)]
pub struct MovedView {
    path: String,
    channel: String,
    /// What the channel served before.
    from: Option<String>,
    to: String,
    /// Whether `to` is the version compiled into the binary.
    embedded: bool,
}

#[derive(Serialize, ToSchema)]
pub struct Released {
    path: String,
    /// False when nothing was in quarantine.
    released: bool,
}

#[derive(Serialize, ToSchema)]
pub struct Deleted {
    path: String,
    version: String,
    deleted: bool,
}

/// Point a channel to a version.
#[utoipa::path(post, path = "/api/plugins/{path}:channel", tag = "plugins", params(("path" = String, Path)),
    request_body = MoveChannel, responses((status = 200, body = MovedView)))]
pub async fn channel(mut cx: Cx) -> Result<Response, Problem> {
    let MoveChannel { channel, version, reason } = input::document(&mut cx).await?;
    let (kernel, actor, path) = (cx.kernel().clone(), cx.caller()?.actor(), cx.plugin()?.clone());
    let to = channel.clone();
    let moved = to_the_end(async move { kernel.move_channel(&actor, &path, &to, &version, &reason).await }).await?;
    moved_answer(&cx, &channel, moved)
}

/// Take a channel back to a version it served before.
#[utoipa::path(post, path = "/api/plugins/{path}:rollback", tag = "plugins", params(("path" = String, Path)),
    request_body = Rollback, responses((status = 200, body = MovedView)))]
pub async fn rollback(mut cx: Cx) -> Result<Response, Problem> {
    let Rollback { channel, to, reason } = input::document(&mut cx).await?;
    let channel = channel.unwrap_or_default();
    let (kernel, actor, path) = (cx.kernel().clone(), cx.caller()?.actor(), cx.plugin()?.clone());
    let of = channel.clone();
    let moved = to_the_end(async move { kernel.switch_back(&actor, &path, &of, to.as_ref(), &reason).await }).await?;
    moved_answer(&cx, &channel, moved)
}

fn moved_answer(cx: &Cx, channel: &ChannelName, moved: Moved) -> Result<Response, Problem> {
    let view = MovedView {
        path: cx.plugin()?.to_string(),
        channel: channel.to_string(),
        from: moved.from.map(|version| version.to_string()),
        to: moved.to.to_string(),
        embedded: moved.embedded,
    };
    Ok(Json(view).into_response())
}

/// Let a plugin in quarantine be called again.
#[utoipa::path(post, path = "/api/plugins/{path}:release", tag = "plugins", params(("path" = String, Path)),
    request_body = Release, responses((status = 200, body = Released)))]
pub async fn release(mut cx: Cx) -> Result<Response, Problem> {
    let Release { reason } = input::document(&mut cx).await?;
    let (actor, path) = (cx.caller()?.actor(), cx.plugin()?);
    let released = cx.kernel().release(path)?;
    // A quarantine is a matter of this process, so its end is a line of the server's log, not of the catalog.
    tracing::info!(plugin = %path, by = actor.name, reason, released, "quarantine ended by hand");
    Ok(Json(Released { path: path.to_string(), released }).into_response())
}

/// Delete a version that nothing uses. Its number stays taken.
#[utoipa::path(delete, path = "/api/plugins/{path}", tag = "plugins", params(("path" = String, Path), DeleteQuery),
    responses((status = 200, body = Deleted)))]
pub async fn delete(cx: Cx) -> Result<Response, Problem> {
    let DeleteQuery { version, reason } = input::query(&cx.query)?;
    let (kernel, actor, path) = (cx.kernel().clone(), cx.caller()?.actor(), cx.plugin()?.clone());
    let deleted = Deleted { path: path.to_string(), version: version.to_string(), deleted: true };
    to_the_end(async move { kernel.catalog().delete_version(&actor, &path, &version, &reason).await }).await?;
    Ok(Json(deleted).into_response())
}
