//! The state of an execution at any moment, folded from its events by the same code that ran it, with checksums.
//!
//! Replay is always within a tenant: a tenant's token reads its own executions, and an administrator's token is the
//! permission to read any. `limit` bounds how many entries of a surface are shown; the checksums always cover all.

use axum::response::Response;
use noetl_contract::Tenant;
use noetl_dispatch::engine::{Cutoff, EngineError};
use serde::Deserialize;
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::app::Cx;
use crate::executions::{self, read::json_text};
use crate::input;
use crate::problem::Problem;
use crate::values::{Id, Moment};

mod payloads;

const USUAL_LIMIT: u32 = 10_000;
const HIGHEST_LIMIT: u32 = 100_000;
/// There is one organization a tenant.
const ORGANIZATION: &str = "default";

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ReplayQuery {
    #[param(value_type = String)]
    execution_id: Id,
    /// The execution's tenant; the token's own when left out.
    #[param(value_type = Option<String>)]
    tenant_id: Option<Tenant>,
    /// `default`, which is the only one a tenant has.
    organization_id: Option<String>,
    /// The state after this event.
    as_of_event_id: Option<u64>,
    /// The state at this place of the log.
    as_of_position: Option<u64>,
    /// The state at this time: RFC 3339, or milliseconds since 1970. Of the three, at most one.
    #[param(value_type = Option<String>)]
    as_of_time: Option<Moment>,
    #[param(inline)]
    projection: Option<Projection>,
    /// Entries of a surface that are shown: 10000 when left out, at most 100000.
    limit: Option<u32>,
    /// Say of each payload the state refers to whether it is there and what it is.
    #[serde(default)]
    resolve_payloads: bool,
}

/// Which surface is answered. All have their checksums in the answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Projection {
    #[default]
    All,
    Execution,
    Stage,
    Frame,
    Command,
    Loop,
    BusinessObject,
}

impl Projection {
    /// Each surface by the name it has in the answer.
    const SURFACES: [(Self, &str, &str); 6] = [
        (Self::Execution, "execution", "execution"),
        (Self::Stage, "stage", "stages"),
        (Self::Frame, "frame", "frames"),
        (Self::Command, "command", "commands"),
        (Self::Loop, "loop", "loops"),
        (Self::BusinessObject, "business_object", "business_objects"),
    ];
}

/// Fold an execution up to a moment.
#[utoipa::path(get, path = "/api/replay/state", tag = "replay", params(ReplayQuery),
    responses((status = 200, description = "`{event_count, last_event_id, execution, stages, frames, commands, \
        business_objects, loops, checksum, checksum_algorithm, projection_checksums, upcaster_registry_digest, ...}`",
        body = Object), (status = 404, description = "there is no such execution")))]
pub async fn state(cx: Cx) -> Result<Response, Problem> {
    let query: ReplayQuery = input::query(&cx.query)?;
    let cutoff = cutoff(&query)?;
    let limit = input::limit(query.limit, USUAL_LIMIT, HIGHEST_LIMIT)?;
    let execution = query.execution_id.0;
    // A tenant's token has its own tenant here, an administrator's the one it named, if any.
    let tenant = cx.caller()?.acts_for(query.tenant_id)?;
    let owner = executions::owner(cx.kernel(), execution).await?;
    let other_organization = query.organization_id.is_some_and(|name| name != ORGANIZATION);
    if other_organization || tenant.is_some_and(|tenant| tenant != owner) {
        return Err(EngineError::ExecutionNotFound(execution).into());
    }
    let text = cx.engine().replay(execution, cutoff).await?;
    let mut shown = Shown::of(text, query.projection.unwrap_or_default(), limit)?;
    if query.resolve_payloads {
        let (found, summary) = payloads::resolve(cx.kernel().payloads(), &shown.answer).await;
        shown.put("payload_resolution", found);
        shown.put("payload_resolution_summary", summary);
    }
    Ok(json_text(shown.into_text()))
}

fn cutoff(query: &ReplayQuery) -> Result<Cutoff, Problem> {
    let given = [
        query.as_of_event_id.map(|id| ("as_of_event_id", Cutoff::Event(id))),
        query.as_of_position.map(|position| ("as_of_position", Cutoff::Position(position))),
        query.as_of_time.map(|time| ("as_of_time", Cutoff::TimeMs(time.0))),
    ];
    let mut given = given.into_iter().flatten();
    let first = given.next();
    match given.next() {
        None => Ok(first.map_or(Cutoff::Head, |(_, cutoff)| cutoff)),
        Some((second, _)) => {
            let detail = format!("parameter `{second}`: name one moment, by its event, its position or its time");
            Err(Problem::invalid_field("invalid_parameter", second, detail))
        }
    }
}

/// What was asked for of the whole answer. A whole that nothing is changed of is passed on as it came, so that its
/// numbers are the very ones the checksums were made of.
struct Shown {
    text: Option<String>,
    answer: Value,
}

impl Shown {
    fn of(text: String, projection: Projection, limit: usize) -> Result<Self, Problem> {
        let answer: Value = serde_json::from_str(&text)
            .map_err(|error| Problem::internal(format!("the state builder's answer is not JSON: {error}")))?;
        let mut shown = Self { text: Some(text), answer };
        if !shown.answer.is_object() {
            return Err(Problem::internal("the state builder's answer is not an object"));
        }
        let mut truncated = Vec::new();
        for (surface, name, key) in Projection::SURFACES {
            if projection == surface {
                shown.put("projection", name.into());
            } else if projection != Projection::All {
                shown.remove(key);
                continue;
            }
            // The execution is one thing; the others are many by their keys.
            let entries = shown.answer[key].as_object_mut().filter(|_| surface != Projection::Execution);
            if let Some(entries) = entries.filter(|entries| entries.len() > limit) {
                *entries = std::mem::take(entries).into_iter().take(limit).collect();
                truncated.push(Value::from(key));
            }
        }
        if !truncated.is_empty() {
            shown.put("truncated", Value::Array(truncated));
        }
        Ok(shown)
    }

    fn put(&mut self, name: &str, value: Value) {
        self.answer[name] = value;
        self.text = None;
    }

    fn remove(&mut self, name: &str) {
        if let Some(members) = self.answer.as_object_mut() {
            members.retain(|member, _| member != name);
        }
        self.text = None;
    }

    fn into_text(self) -> String {
        self.text.unwrap_or_else(|| self.answer.to_string())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Result<ReplayQuery, Problem> {
        input::query(&format!("execution_id=7&{text}"))
    }

    fn cut(text: &str) -> Result<Cutoff, Problem> {
        read(text).and_then(|query| cutoff(&query))
    }

    #[test]
    fn one_moment_may_be_named() {
        assert_eq!(cut("").expect("valid"), Cutoff::Head);
        assert_eq!(cut("as_of_event_id=15").expect("valid"), Cutoff::Event(15));
        assert_eq!(cut("as_of_position=3").expect("valid"), Cutoff::Position(3));
        assert_eq!(cut("as_of_time=1769860800000").expect("valid"), Cutoff::TimeMs(1_769_860_800_000));
        assert_eq!(cut("as_of_time=2026-01-31T12:00:00Z").expect("valid"), Cutoff::TimeMs(1_769_860_800_000));
        let problem = cut("as_of_event_id=15&as_of_time=1").expect_err("two moments");
        assert_eq!((problem.code(), &problem.document("r")["field"]), ("invalid_parameter", &json!("as_of_time")));
    }

    #[test]
    fn an_unknown_surface_is_refused() {
        assert_eq!(read("projection=business_object").expect("valid").projection, Some(Projection::BusinessObject));
        let problem = read("projection=everything").err().expect("unknown");
        assert_eq!((problem.code(), &problem.document("r")["field"]), ("invalid_parameter", &json!("projection")));
        assert!(input::query::<ReplayQuery>("").is_err(), "an execution must be named");
    }

    fn answer() -> Value {
        json!({
            "projection": "all", "execution": {"a": 1, "b": 2, "c": 3}, "stages": {"x#1": {}, "y#1": {}, "z#1": {}},
            "frames": {}, "commands": {"x#1": {}}, "business_objects": {}, "loops": {},
            "checksum": "s", "projection_checksums": {"execution": "e", "stages": "t"},
        })
    }

    fn cut_down(projection: Projection, limit: usize) -> Value {
        let shown = Shown::of(answer().to_string(), projection, limit).expect("an object");
        serde_json::from_str(&shown.into_text()).expect("JSON")
    }

    #[test]
    fn one_surface_is_shown_with_the_checksums_of_all() {
        let stages = cut_down(Projection::Stage, 10);
        assert_eq!((&stages["projection"], &stages["stages"]), (&json!("stage"), &answer()["stages"]));
        assert!(stages.get("execution").is_none() && stages.get("commands").is_none(), "{stages}");
        assert_eq!(stages["projection_checksums"], answer()["projection_checksums"]);
    }

    #[test]
    fn the_whole_is_passed_on_unless_it_is_too_long() {
        let text = answer().to_string() + " ";
        let whole = Shown::of(text.clone(), Projection::All, 3).expect("an object");
        assert_eq!(whole.into_text(), text);
        let short = cut_down(Projection::All, 2);
        assert_eq!(short["stages"], json!({"x#1": {}, "y#1": {}}));
        assert_eq!((&short["truncated"], &short["execution"]), (&json!(["stages"]), &answer()["execution"]));
        assert!(Shown::of("[]".to_owned(), Projection::All, 1).is_err());
    }
}
