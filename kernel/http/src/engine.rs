//! What the routes of the engine share: how its errors become problems, and how its tables are asked.
//!
//! Codes and statuses are decided where the errors are made; here they only get their form. The tables are behind
//! the log by what the projector has not seen yet: `consistency=strong` waits for it, up to a bound.

use std::sync::Arc;
use std::time::Duration;

use axum::http::header;
use noetl_dispatch::Kernel;
use noetl_dispatch::engine::EngineError;
use noetl_registry::playbooks::PlaybookError;
use noetl_store::projections::{ProjectionError, Projections};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::problem::Problem;

/// Longest wait for the tables to have what the log has.
const SETTLING: Duration = Duration::from_secs(10);

impl From<EngineError> for Problem {
    fn from(error: EngineError) -> Self {
        let problem = Problem::of(error.status(), error.code(), error.to_string());
        match error {
            EngineError::Invalid { problems } => problem.with("problems", list(&problems)),
            EngineError::Overloaded { .. } | EngineError::Stopping => problem.header(header::RETRY_AFTER, 1.into()),
            _ => problem,
        }
    }
}

impl From<PlaybookError> for Problem {
    fn from(error: PlaybookError) -> Self {
        let status = match &error {
            PlaybookError::TooLarge(_) => 413,
            PlaybookError::Forbidden { .. } => 403,
            PlaybookError::NoPlaybook(_) | PlaybookError::NoVersion { .. } => 404,
            PlaybookError::Payload(_) | PlaybookError::Ledger(_) => 503,
        };
        Problem::of(status, error.code(), error.to_string())
    }
}

impl From<ProjectionError> for Problem {
    fn from(error: ProjectionError) -> Self {
        match error {
            ProjectionError::Cursor(_) => {
                Problem::invalid_field("invalid_parameter", "cursor", format!("parameter `cursor`: {error}"))
            }
            ProjectionError::Database(_) | ProjectionError::Io(_) => {
                tracing::error!(%error, "the tables of executions could not be read");
                Problem::of(503, "store_unavailable", "the tables could not be read; the server's log says why")
            }
        }
    }
}

/// A JSON list that a service wrote; what is none becomes one, so that nothing it said is lost.
pub fn list(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(Value::Array(items)) => Value::Array(items),
        Ok(other) => Value::Array(vec![other]),
        Err(_) => Value::Array(vec![text.into()]),
    }
}

/// How recent an answer has to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Consistency {
    /// As recent as the tables are: normally some milliseconds behind.
    #[default]
    Eventual,
    /// With everything that was acknowledged before the request came.
    Strong,
}

impl Consistency {
    pub async fn reached(self, kernel: &Kernel) -> Result<(), Problem> {
        match self {
            Self::Eventual => Ok(()),
            Self::Strong => settled(kernel).await,
        }
    }
}

/// Waits until the tables have what is in the log now.
pub async fn settled(kernel: &Kernel) -> Result<(), Problem> {
    tokio::time::timeout(SETTLING, kernel.engine().settled()).await.map_err(|_| {
        let seconds = SETTLING.as_secs();
        let detail = format!("the tables are more than {seconds} s behind the log; ask without `consistency=strong`");
        Problem::of(503, "service_unavailable", detail)
    })
}

/// Asks the tables, which block on the disk, away from the threads that serve requests.
pub async fn tables<T: Send + 'static>(
    kernel: &Arc<Kernel>,
    query: impl FnOnce(&Projections) -> Result<T, ProjectionError> + Send + 'static,
) -> Result<T, Problem> {
    let kernel = kernel.clone();
    blocking(move || query(kernel.engine().projections())).await?.map_err(Problem::from)
}

/// Runs what blocks on the disk.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.map_err(Problem::internal)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_invalid_playbook_shows_all_its_problems() {
        let problems = r#"[{"severity":"error","line":3,"column":1,"message":"one"},{"line":9,"message":"two"}]"#;
        let document = Problem::from(EngineError::Invalid { problems: problems.to_owned() }).document("r");
        assert_eq!((&document["status"], &document["code"]), (&json!(422), &json!("invalid_playbook")));
        assert_eq!(document["problems"][0]["line"], 3);
        assert_eq!(document["problems"][1]["message"], "two");
    }

    #[test]
    fn an_overloaded_engine_says_when_to_come_back() {
        let response = Problem::from(EngineError::Overloaded { waiting: 9 }).respond("r");
        assert_eq!(response.status().as_u16(), 503);
        assert_eq!(response.headers()[header::RETRY_AFTER], "1");
    }

    #[test]
    fn whatever_a_service_says_of_problems_is_a_list() {
        assert_eq!(list(r#"["a"]"#), json!(["a"]));
        assert_eq!(list(r#"{"a":1}"#), json!([{"a": 1}]));
        assert_eq!(list("oops"), json!(["oops"]));
    }
}
