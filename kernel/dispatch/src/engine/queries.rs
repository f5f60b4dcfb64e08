//! Reading executions: their events, their state at any moment, why they ended as they did.
//!
//! All of it comes from the chain, by keyed reads of the log, and through the components that know what events mean.

use std::time::Duration;

use noetl_contract::Tenant;
use noetl_host::services::state_building;
use noetl_store::log::{Append, Expected, Log, Segment, StreamId};
use serde::Deserialize;
use serde_json::Value;

use super::api::{Cutoff, Ended, EngineError, EventPage};
use super::ids::ExecutionId;
use super::segment::{Header, for_services, stream_of};
use super::services::Role;
use super::{Dedup, Engine};

/// Events that are shown for one that is written, at most: ids of shown events are multiples of it and following.
const SHOWN: u64 = 8;
/// Lines expanded beyond what a page asks for, because an event is told with those that follow from it.
const MARGIN: usize = 64;
/// Without news a follower looks again after this long.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

#[derive(Deserialize)]
struct Line {
    id: u64,
}

/// The id of the last event in a segment.
pub(super) fn last_event(segment: &Segment) -> Option<u64> {
    let (_, events) = Header::decode(&segment.body)?;
    let line = events.split(|byte| *byte == b'\n').rfind(|line| !line.is_empty())?;
    serde_json::from_slice::<Line>(line).ok().map(|line| line.id)
}

impl Engine {
    pub(super) fn header(&self, execution: ExecutionId) -> Result<Header, EngineError> {
        let missing = || EngineError::ExecutionNotFound(execution);
        let read = self.shared.log.read_stream(&stream_of(execution), 1, 1);
        let first = read.map_err(|error| EngineError::Store(error.to_string()))?.pop().ok_or_else(missing)?;
        if self.background.is_deleted(execution) {
            return Err(missing());
        }
        Header::decode(&first.body).map(|(header, _)| header).ok_or_else(missing)
    }

    /// Whose execution it is.
    pub fn tenant_of(&self, execution: ExecutionId) -> Result<Tenant, EngineError> {
        self.header(execution).map(|header| header.tenant)
    }

    /// Events as people read them, after the one with the id `after`.
    pub async fn events(&self, execution: ExecutionId, after: u64, limit: usize) -> Result<EventPage, EngineError> {
        self.header(execution)?;
        let mut page = EventPage { events: Vec::new(), complete: false, last_event: after };
        let mut from = self.first_after(execution, after)?;
        while page.events.len() < limit {
            let before = page.last_event;
            let read = self.shared.log.read_stream(&stream_of(execution), from, 1);
            let read = read.map_err(|error| EngineError::Store(error.to_string()))?;
            let Some(last) = read.last() else { break };
            let ends = Header::decode(&last.body).is_some_and(|(header, _)| header.ends);
            from = last.version + 1;
            let mut segments: Vec<_> = read.iter().filter_map(for_services).collect();
            // One commit can hold very many events; no more of them are expanded than the page can use.
            let mut cut = false;
            for segment in &mut segments {
                cut |= window(&mut segment.events, page.last_event / SHOWN, limit + MARGIN);
            }
            let expanded = self
                .background
                .ask(Role::Projector, move |residents, service| residents.expand(&service.module, &segments));
            let mut all_taken = true;
            for text in expanded.await? {
                let id = event_id(&text).unwrap_or(0);
                if id <= after {
                    continue;
                }
                if page.events.len() == limit {
                    all_taken = false;
                    break;
                }
                page.last_event = id;
                page.events.push(text);
            }
            if cut && all_taken && page.events.len() < limit && page.last_event > before {
                // The rest of the same segment comes next.
                from -= 1;
            }
            page.complete = ends && all_taken && !cut;
        }
        Ok(page)
    }

    /// The version of the first segment with events after this one: found by halving, since ids grow with versions.
    fn first_after(&self, execution: ExecutionId, after: u64) -> Result<u64, EngineError> {
        let stream = stream_of(execution);
        let store = |error: noetl_store::log::ReadError| EngineError::Store(error.to_string());
        let head = self.shared.log.head(&stream).map_err(store)?;
        let (mut low, mut high) = (1, head.map_or(1, |head| head.version));
        while low < high {
            let middle = low + (high - low) / 2;
            let read = self.shared.log.read_stream(&stream, middle, 1).map_err(store)?;
            match read.first().and_then(last_event) {
                Some(last) if (last + 1) * SHOWN <= after => low = middle + 1,
                _ => high = middle,
            }
        }
        Ok(low)
    }

    /// Answers when there may be events after this one, or after `timeout`.
    pub async fn changed(&self, execution: ExecutionId, after: u64, timeout: Duration) {
        let mut follower = self.shared.hub.follow();
        let stream = stream_of(execution);
        let fresh = || {
            let head = self.shared.log.head(&stream).ok().flatten()?;
            let segment = self.shared.log.read_stream(&stream, head.version, 1).ok()?.pop()?;
            last_event(&segment).filter(|last| (last + 1) * SHOWN > after + SHOWN)
        };
        let began = tokio::time::Instant::now();
        while fresh().is_none() && began.elapsed() < timeout {
            let left = timeout.saturating_sub(began.elapsed()).min(LOOK_AGAIN);
            // Whether news came or not, the chain says.
            let _ = tokio::time::timeout(left, follower.news_of(execution)).await;
        }
    }

    /// How an execution that is not live ended.
    pub(crate) async fn ended(&self, execution: ExecutionId) -> Result<Ended, EngineError> {
        let stream = stream_of(execution);
        let head = self.shared.log.head(&stream).map_err(|error| EngineError::Store(error.to_string()))?;
        let head = head.ok_or(EngineError::ExecutionNotFound(execution))?;
        let read = self.shared.log.read_stream(&stream, head.version, 1);
        let read = read.map_err(|error| EngineError::Store(error.to_string()))?;
        let segments: Vec<_> = read.iter().filter_map(for_services).collect();
        let expanded = self
            .background
            .ask(Role::Projector, move |residents, service| residents.expand(&service.module, &segments));
        let last: Value = match expanded.await?.last().map(|text| serde_json::from_str(text)) {
            Some(Ok(last)) => last,
            _ => return Err(EngineError::ExecutionNotFound(execution)),
        };
        let status = last["status"].as_str().unwrap_or_default().to_ascii_lowercase();
        if !["completed", "failed", "cancelled"].contains(&status.as_str()) {
            return Err(EngineError::Refused(format!("execution {execution} has not ended")));
        }
        Ok(Ended { status, body: answer_of(&last).to_string() })
    }

    /// The path and version of the playbook an execution runs.
    pub(super) async fn playbook_of(&self, execution: ExecutionId) -> Result<(String, u32), EngineError> {
        let page = self.events(execution, 0, 1).await?;
        let first: Value = page.events.first().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let found = (first["meta"]["path"].as_str(), first["meta"]["version"].as_u64());
        match found {
            (Some(path), Some(version)) => Ok((path.to_owned(), u32::try_from(version).unwrap_or(u32::MAX))),
            _ => Err(EngineError::ExecutionNotFound(execution)),
        }
    }

    /// The state at a moment, with checksums: one JSON object.
    pub async fn replay(&self, execution: ExecutionId, cutoff: Cutoff) -> Result<String, EngineError> {
        self.header(execution)?;
        let segments = self.shared.whole_chain(execution).map_err(|error| EngineError::Store(error.to_string()))?;
        let cutoff = match cutoff {
            Cutoff::Head => state_building::Cutoff::Head,
            Cutoff::Event(event) => state_building::Cutoff::Event(event),
            Cutoff::Position(position) => state_building::Cutoff::Position(position),
            Cutoff::TimeMs(time) => state_building::Cutoff::TimeMs(time),
        };
        let view = self
            .background
            .ask(Role::StateBuilder, move |residents, service| residents.view(&service.module, &segments, cutoff));
        view.await?.map_err(EngineError::InvalidRequest)
    }

    /// Why an execution ended as it did, or where it stands: one JSON object.
    pub async fn explain(&self, execution: ExecutionId) -> Result<String, EngineError> {
        self.header(execution)?;
        let segments = self.shared.whole_chain(execution).map_err(|error| EngineError::Store(error.to_string()))?;
        let explained = self
            .background
            .ask(Role::StateBuilder, move |residents, service| residents.explain(&service.module, &segments));
        explained.await?.map_err(EngineError::InvalidRequest)
    }

    /// Waits until the tables have everything that is in the log now.
    pub async fn settled(&self) {
        let tip = *self.shared.log.tip().borrow();
        self.shared.hurry.notify_one();
        self.shared.projections.wait_for(tip).await;
    }

    /// Takes an ended execution out of everything that is shown. Its chain stays in the log.
    pub async fn delete(&self, execution: ExecutionId) -> Result<(), EngineError> {
        let header = self.header(execution)?;
        let stream = stream_of(execution);
        let store = |error: noetl_store::log::ReadError| EngineError::Store(error.to_string());
        let head = self.shared.log.head(&stream).map_err(store)?;
        let last = head.map(|head| self.shared.log.read_stream(&stream, head.version, 1)).transpose().map_err(store)?;
        let ends = last.iter().flatten().filter_map(|segment| Header::decode(&segment.body)).any(|(last, _)| last.ends);
        if !ends {
            return Err(EngineError::Refused(format!("execution {execution} runs; cancel it first")));
        }
        self.background.delete(&self.shared, execution, &header.tenant).await
    }

    /// The id of an execution for a key: a fresh one, or that of the request that came first within the window.
    pub(super) async fn once(
        &self,
        tenant: &Tenant,
        path: &str,
        dedup: Dedup,
    ) -> Result<(ExecutionId, bool), EngineError> {
        let stream = StreamId::new(format!("dedup/{tenant}"));
        let now = self.shared.clock.now_ms();
        let fresh = self.shared.mint.next();
        let key = format!("{path}\n{}", dedup.key);
        let mut name = key.clone();
        loop {
            let append = Append {
                stream: stream.clone(),
                expected: Expected::Any,
                key: Some(noetl_contract::Digest::of(name.as_bytes()).hex()),
                body: fresh.to_string().into_bytes().into(),
            };
            let appended = self.shared.log.append(append).await;
            let appended = appended.map_err(|error| EngineError::Store(error.to_string()))?;
            if !appended.duplicate {
                return Ok((fresh, false));
            }
            if now.saturating_sub(appended.time_ms) <= u64::try_from(dedup.window.as_millis()).unwrap_or(u64::MAX) {
                let read = self.shared.log.read_all(appended.position.saturating_sub(1), 1);
                let read = read.map_err(|error| EngineError::Store(error.to_string()))?;
                let text = read.first().map(|segment| String::from_utf8_lossy(&segment.body).into_owned());
                let known: Option<ExecutionId> = text.and_then(|text| text.parse().ok());
                let known = known.ok_or_else(|| EngineError::Store("a key's execution cannot be read".to_owned()))?;
                // Its request may have died between the key and the start; then this one is the start.
                let exists = self.shared.log.head(&stream_of(known)).ok().flatten().is_some();
                return Ok((known, exists));
            }
            // The window is over: the key begins anew under a name that follows from what it was.
            name = format!("{key}\n{}", appended.position);
        }
    }
}

/// What a terminal event tells whoever waits for the execution, in the form the drive would have given it.
fn answer_of(event: &Value) -> Value {
    let result = &event["result"];
    let place = |reference: &Value| serde_json::json!({"sha256": reference["sha256"], "size": reference["bytes"]});
    let mut output = serde_json::Map::new();
    let value = result["context"].get("data").or_else(|| result.get("extracted"));
    output.insert("value".to_owned(), value.cloned().unwrap_or_default());
    output.extend(result.get("reference").map(|reference| ("reference".to_owned(), place(reference))));
    let chunks = result.get("chunks").and_then(Value::as_array);
    output.extend(chunks.map(|chunks| ("chunks".to_owned(), chunks.iter().map(place).collect())));
    let mut answer = serde_json::Map::new();
    answer.insert("output".to_owned(), output.into());
    answer.extend(event.get("error").filter(|error| !error.is_null()).map(|error| ("error".to_owned(), error.clone())));
    if let Some(returned) = event["meta"].get("returned")
        && let Some(step) = returned["step"].as_str()
    {
        answer.insert("steps".to_owned(), serde_json::json!({step: returned["data"]}));
    }
    answer.into()
}

/// Keeps the lines of events with ids from `from` on, at most `most`; tells whether some behind them were left out.
fn window(events: &mut Vec<u8>, from: u64, most: usize) -> bool {
    let wanted = |line: &&[u8]| serde_json::from_slice::<Line>(line).map_or(true, |line| line.id >= from);
    let lines = events.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let mut lines = lines.skip_while(|line| !wanted(line));
    let mut kept: Vec<u8> = Vec::new();
    for line in lines.by_ref().take(most) {
        kept.extend_from_slice(line);
        kept.push(b'\n');
    }
    let more = lines.next().is_some();
    *events = kept;
    more
}

fn event_id(text: &str) -> Option<u64> {
    #[derive(Deserialize)]
    struct Id<'a> {
        #[serde(borrow)]
        event_id: std::borrow::Cow<'a, str>,
    }
    serde_json::from_str::<Id<'_>>(text).ok()?.event_id.parse().ok()
}
