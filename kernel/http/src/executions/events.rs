//! Events of an execution: a page as JSON, or a stream that follows.
//!
//! The stream is server-sent events: `id` is the event's id, `event` its type, `data` the event. A client that comes
//! back with `Last-Event-ID` gets what it missed, however long ago that was, because the log has all of it. After the
//! last event of an execution the stream ends; whoever comes back after that gets 204, which tells an `EventSource` to
//! stay away.
//!
//! Nothing is buffered beyond one page: the next is read when the client has taken the last, so a slow client costs
//! no memory and slows nobody down. Comments keep the connection alive, and with each of them the token is checked
//! again. The stream ends when the server stops.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use noetl_dispatch::engine::{EventPage, ExecutionId};
use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::Instant;
use utoipa::{IntoParams, ToSchema};

use super::read::json_text;
use crate::app::{App, Cx};
use crate::auth::Caller;
use crate::input;
use crate::problem::Problem;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const USUAL_LIMIT: u32 = 100;
const HIGHEST_LIMIT: u32 = 1000;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EventsQuery {
    /// Only events after this one.
    after: Option<u64>,
    /// Events of a page: 100 when left out, at most 1000. A stream has no end but the execution's.
    limit: Option<u32>,
}

/// A page of events.
#[derive(ToSchema)]
#[schema(as = EventPage)]
#[expect(dead_code, reason = "only its schema is used; events are answered as their service wrote them")]
pub struct EventPageView {
    /// `{event_id, event_type, node_name, node_type, status, created_at, result, error, meta, ...}`, oldest first.
    #[schema(value_type = Vec<Object>)]
    events: Vec<String>,
    /// Give it as `after` for the next page.
    last_event: String,
    /// The execution has ended and its last event is on this page.
    complete: bool,
}

/// Read the events of an execution, or with `Accept: text/event-stream` follow them.
#[utoipa::path(get, path = "/api/executions/{id}/events", tag = "executions", params(("id" = String, Path), EventsQuery),
    responses((status = 200, description = "a page, or a stream of `text/event-stream`", body = EventPageView),
        (status = 204, description = "of a stream: the execution has ended, and nothing comes after that event")))]
pub async fn events(mut cx: Cx) -> Result<Response, Problem> {
    let query: EventsQuery = input::query(&cx.query)?;
    let limit = input::limit(query.limit, USUAL_LIMIT, HIGHEST_LIMIT)?;
    let execution = cx.execution()?;
    if !wants_stream(&cx.headers) {
        let page = cx.engine().events(execution, query.after.unwrap_or(0), limit).await?;
        return Ok(json_text(page_text(&page)));
    }
    let after = last_event_id(&cx.headers)?.or(query.after).unwrap_or(0);
    let page = cx.engine().events(execution, after, limit).await?;
    if page.complete && page.events.is_empty() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let caller = cx.caller.take().ok_or_else(Problem::unauthenticated)?;
    let period = Duration::from_secs(cx.app.options.heartbeat_secs.max(1));
    let (app, closing) = (cx.app.clone(), cx.app.closing.clone());
    let beat = Instant::now() + period;
    let mut follower =
        Follower { app, caller, execution, limit, after, ready: VecDeque::new(), ended: false, period, beat, closing };
    follower.take(page);
    let events = futures::stream::unfold(follower, |mut follower| async move {
        let event = follower.next().await?;
        Some((Ok::<_, Infallible>(event), follower))
    });
    Ok(Sse::new(events).into_response())
}

fn wants_stream(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accepted.split(',').any(|part| part.trim().to_ascii_lowercase().starts_with("text/event-stream"))
}

/// The event a client has seen last.
fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(value) = headers.get(LAST_EVENT_ID) else { return Ok(None) };
    value.to_str().ok().and_then(|text| text.parse().ok()).map(Some).ok_or_else(|| {
        let detail = "header `last-event-id`: use the id of an event of this stream";
        Problem::invalid_field("invalid_parameter", "last-event-id", detail)
    })
}

/// The events are JSON already; taking them apart would only cost time.
fn page_text(page: &EventPage) -> String {
    let EventPage { events, complete, last_event } = page;
    format!(r#"{{"events":[{}],"last_event":"{last_event}","complete":{complete}}}"#, events.join(","))
}

struct Follower {
    app: Arc<App>,
    caller: Caller,
    execution: ExecutionId,
    limit: usize,
    /// The last event that was read.
    after: u64,
    /// Read and not taken yet.
    ready: VecDeque<String>,
    /// Nothing comes after what is ready.
    ended: bool,
    period: Duration,
    /// When to show the next sign of life.
    beat: Instant,
    closing: watch::Receiver<bool>,
}

impl Follower {
    fn take(&mut self, page: EventPage) {
        self.after = page.last_event.max(self.after);
        self.ended = page.complete;
        self.ready = page.events.into();
    }

    /// The next event; none ends the stream.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(text) = self.ready.pop_front() {
                return Some(shown(&text));
            }
            if self.ended || *self.closing.borrow() {
                return None;
            }
            if self.beat <= Instant::now() {
                if !self.caller.is_still_valid(self.app.kernel.tokens()) {
                    return None;
                }
                self.beat = Instant::now() + self.period;
                return Some(Event::default().comment("still here"));
            }
            if let Some(problem) = self.read().await {
                self.ended = true;
                return Some(problem);
            }
        }
    }

    /// Waits until there may be more and reads it; answers with what to say when that is not possible.
    async fn read(&mut self) -> Option<Event> {
        let engine = self.app.kernel.engine();
        let rest = self.beat.saturating_duration_since(Instant::now());
        tokio::select! {
            () = engine.changed(self.execution, self.after, rest) => {}
            _ = self.closing.wait_for(|closing| *closing) => return None,
        }
        match engine.events(self.execution, self.after, self.limit).await {
            Ok(page) => {
                self.take(page);
                None
            }
            Err(error) => {
                let problem = Problem::from(error).as_part();
                Some(Event::default().event("problem").data(problem.to_string()))
            }
        }
    }
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    event_id: Cow<'a, str>,
    #[serde(borrow)]
    event_type: Cow<'a, str>,
}

/// An event as a client gets it. What a service wrote is not trusted to fit the lines of a stream.
fn shown(text: &str) -> Event {
    let fits = |name: &str| !name.is_empty() && !name.contains(['\n', '\r', '\0']);
    let event = Event::default().data(text.replace(['\n', '\r'], " "));
    match serde_json::from_str::<Named<'_>>(text) {
        Ok(Named { event_id, event_type }) if fits(&event_id) && fits(&event_type) => {
            event.id(event_id).event(event_type)
        }
        _ => event,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use futures::stream;
    use serde_json::{Value, json};

    use super::*;

    fn headers(name: HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn a_stream_is_asked_for_by_its_type() {
        assert!(wants_stream(&headers(header::ACCEPT, "application/json, text/event-stream;q=0.9")));
        assert!(!wants_stream(&headers(header::ACCEPT, "*/*")) && !wants_stream(&HeaderMap::new()));
    }

    #[test]
    fn the_last_event_is_a_number() {
        assert_eq!(last_event_id(&headers(LAST_EVENT_ID, "15")).expect("valid"), Some(15));
        assert_eq!(last_event_id(&HeaderMap::new()).expect("absent"), None);
        let problem = last_event_id(&headers(LAST_EVENT_ID, "x")).expect_err("refused");
        assert_eq!(problem.document("r")["field"], "last-event-id");
    }

    #[test]
    fn a_page_is_one_document() {
        let events = vec![r#"{"event_id":"14"}"#.to_owned(), r#"{"event_id":"15"}"#.to_owned()];
        let text = page_text(&EventPage { events, complete: true, last_event: 15 });
        let page: Value = serde_json::from_str(&text).expect("JSON");
        let expected =
            json!({"events": [{"event_id": "14"}, {"event_id": "15"}], "last_event": "15", "complete": true});
        assert_eq!(page, expected);
        let empty = page_text(&EventPage { events: vec![], complete: false, last_event: 0 });
        assert_eq!(serde_json::from_str::<Value>(&empty).expect("JSON")["events"], json!([]));
    }

    /// The bytes a client would read.
    async fn written(event: Event) -> String {
        let stream = stream::iter([Ok::<_, Infallible>(event)]);
        let body = Sse::new(stream).into_response().into_body();
        let bytes = axum::body::to_bytes(body, 1 << 16).await.expect("short");
        String::from_utf8(bytes.to_vec()).expect("text")
    }

    #[tokio::test]
    async fn an_event_has_its_id_its_type_and_one_line_of_data() {
        let text = r#"{"event_id":"15","event_type":"step.exit","x":"a\nb"}"#;
        let lines = written(shown(text)).await;
        for line in ["id: 15\n", "event: step.exit\n", &format!("data: {text}\n")] {
            assert!(lines.contains(line), "{lines}");
        }
    }

    #[tokio::test]
    async fn what_does_not_fit_a_stream_cannot_break_it() {
        for odd in [r#"{"event_id":"1\n2","event_type":"x"}"#, r#"{"event_id":"1","event_type":"a\nb"}"#, "{\n}", "no"]
        {
            let lines = written(shown(odd)).await;
            assert!(lines.starts_with("data: ") && lines.matches('\n').count() == 2, "{lines}");
        }
    }
}
