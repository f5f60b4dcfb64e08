//! What a plugin's calls wrote: the latest lines as JSON, or a stream that follows.
//!
//! The stream is server-sent events: `id` is the line's number, so a client that comes back with
//! `Last-Event-ID` gets what it missed as far as memory still has it. A client that reads too slowly loses
//! lines and is told how many, by an event `lagged`; it never slows a plugin down. Comments keep the
//! connection alive, and with each of them the token is checked again, so that a revoked one stops listening.
//!
//! A tenant reads the lines of its own calls only, also of plugins it shares with others.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::http::HeaderName;
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use noetl_contract::{Tenant, Version};
use noetl_dispatch::{Level, LogFilter, LogLine};
use serde::{Deserialize, Serialize};
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, Interval, MissedTickBehavior};
use utoipa::{IntoParams, ToSchema};

use crate::app::{App, Cx};
use crate::auth::Caller;
use crate::input;
use crate::problem::Problem;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const USUAL_LIMIT: u32 = 100;
const HIGHEST_LIMIT: u32 = 10_000;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct LogsQuery {
    /// Go on with new lines, as server-sent events.
    #[serde(default)]
    follow: bool,
    /// How many of the latest lines; 100 when left out, at most 10000.
    limit: Option<u32>,
    /// The least severe level: `trace`, `debug`, `info`, `warn` or `error`.
    #[param(value_type = Option<String>)]
    level: Option<Level>,
    #[param(value_type = Option<String>)]
    version: Option<Version>,
    /// Lines of this tenant's calls; an administrator who names none gets those of all.
    #[param(value_type = Option<String>)]
    tenant: Option<Tenant>,
}

#[derive(Serialize, ToSchema)]
pub struct LogPage {
    /// Oldest first: `{seq, time_ms, tenant, path, version, call, level, message, fields}`.
    #[schema(value_type = Vec<Object>)]
    lines: Vec<Arc<LogLine>>,
}

/// Read what a plugin logged.
#[utoipa::path(get, path = "/api/plugins/{path}:logs", tag = "plugins", params(("path" = String, Path), LogsQuery),
    responses((status = 200, description = "the lines, or with `follow=true` a stream of `text/event-stream`", body = LogPage)))]
pub async fn logs(mut cx: Cx) -> Result<Response, Problem> {
    let query: LogsQuery = input::query(&cx.query)?;
    let limit = query.limit.unwrap_or(USUAL_LIMIT);
    if limit > HIGHEST_LIMIT {
        let detail = format!("parameter `limit`: at most {HIGHEST_LIMIT}");
        return Err(Problem::invalid_field("invalid_parameter", "limit", detail));
    }
    let mut filter = LogFilter {
        path: Some(cx.plugin()?.clone()),
        tenant: cx.caller()?.acts_for(query.tenant)?,
        version: query.version,
        level: query.level,
        after: last_event_id(&cx)?,
    };
    let book = cx.kernel().logbook();
    if !query.follow {
        return Ok(Json(LogPage { lines: book.recent(&filter, limit as usize) }).into_response());
    }
    // Listening starts before the look back, so that no line falls between the two; what both have is
    // recognised by its number.
    let feed = book.subscribe();
    let limit = if filter.after > 0 { usize::MAX } else { limit as usize };
    let ready: VecDeque<_> = book.recent(&filter, limit).into();
    filter.after = ready.back().map_or(filter.after, |line| line.seq);
    let caller = cx.caller.take().ok_or_else(Problem::unauthenticated)?;
    let heartbeat = heartbeat(Duration::from_secs(cx.app.options.heartbeat_secs.max(1)));
    let closing = cx.app.closing.clone();
    let follower = Follower { app: cx.app, caller, filter, ready, feed, heartbeat, closing };
    let events = futures::stream::unfold(follower, |mut follower| async move {
        let event = follower.next().await?;
        Some((Ok::<_, Infallible>(event), follower))
    });
    Ok(Sse::new(events).into_response())
}

/// The line a client has seen last; 0 is none.
fn last_event_id(cx: &Cx) -> Result<u64, Problem> {
    let Some(value) = cx.headers.get(LAST_EVENT_ID) else { return Ok(0) };
    value.to_str().ok().and_then(|text| text.parse().ok()).ok_or_else(|| {
        let detail = "header `last-event-id`: use the id of an event of this stream";
        Problem::invalid_field("invalid_parameter", "last-event-id", detail)
    })
}

fn heartbeat(period: Duration) -> Interval {
    let mut heartbeat = tokio::time::interval_at(Instant::now() + period, period);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    heartbeat
}

struct Follower {
    app: Arc<App>,
    caller: Caller,
    filter: LogFilter,
    ready: VecDeque<Arc<LogLine>>,
    feed: broadcast::Receiver<Arc<LogLine>>,
    heartbeat: Interval,
    closing: watch::Receiver<bool>,
}

impl Follower {
    /// The next event; none ends the stream.
    async fn next(&mut self) -> Option<Event> {
        if let Some(line) = self.ready.pop_front() {
            return Some(line_event(&line));
        }
        loop {
            tokio::select! {
                received = self.feed.recv() => match received {
                    Ok(line) if self.filter.matches(&line) => {
                        self.filter.after = line.seq;
                        return Some(line_event(&line));
                    }
                    Ok(_) => {}
                    Err(broadcast::error::RecvError::Lagged(missed)) => return Some(lagged_event(missed)),
                    Err(broadcast::error::RecvError::Closed) => return None,
                },
                _ = self.heartbeat.tick() => {
                    if !self.caller.is_still_valid(self.app.kernel.tokens()) {
                        return None;
                    }
                    return Some(Event::default().comment("still here"));
                }
                _ = self.closing.wait_for(|closing| *closing) => return None,
            }
        }
    }
}

fn line_event(line: &LogLine) -> Event {
    let event = Event::default().event("log").id(line.seq.to_string());
    // A line is plain data, which always has a JSON form.
    event.json_data(line).unwrap_or_else(|_| Event::default().comment("a line could not be written"))
}

fn lagged_event(missed: u64) -> Event {
    Event::default().event("lagged").data(format!("{missed} lines came faster than they were read and are left out"))
}
