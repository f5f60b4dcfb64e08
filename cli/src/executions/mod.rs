//! Executions on a server: start them, see them, steer them, and ask why they ended as they did.

mod act;
mod events;
mod exec;
mod list;
mod replay;
mod status;
mod stream;
pub mod why;

pub use act::{Cancel, Resume, Retry};
pub use events::Events;
pub use exec::Exec;
pub use list::List;
pub use replay::Replay;
pub use status::Status;
pub use why::Why;

use noetl_dispatch::engine::ExecutionId;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::output::one_line;

/// The execution's address in the API.
fn at(id: ExecutionId) -> String {
    format!("/api/executions/{id}")
}

/// Why a command that waited for an execution did not succeed: it failed or was cancelled. Nothing if it completed.
pub fn ending(ended: &Value) -> Option<Failure> {
    let status = ended["status"].as_str().unwrap_or("unknown").to_lowercase();
    if status == "completed" {
        return None;
    }
    let id = ended["execution_id"].as_str().unwrap_or_default();
    let error = &ended["error"];
    let message = match (error["code"].as_str(), error["message"].as_str().or_else(|| error.as_str())) {
        (Some(code), Some(message)) => format!("execution {id} {status}: {message} ({code})"),
        (None, Some(message)) => format!("execution {id} {status}: {message}"),
        _ => format!("execution {id} {status}"),
    };
    let mut failure = Failure::failed(one_line(&message, 1000)).next(format!("`noetl why {id}` tells what led to it"));
    let code = format!("execution_{status}");
    failure.problem = Some(Box::new(
        json!({ "code": code, "detail": failure.message, "execution_id": id, "status": status, "error": error }),
    ));
    Some(failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_completed_execution_is_a_success() {
        assert!(ending(&json!({"execution_id": "7", "status": "completed"})).is_none());
        assert!(ending(&json!({"execution_id": "7", "status": "COMPLETED"})).is_none());
        let failed =
            json!({"execution_id": "7", "status": "FAILED", "error": {"code": "timeout", "message": "no answer"}});
        let failure = ending(&failed).expect("failed");
        assert_eq!(failure.message, "execution 7 failed: no answer (timeout)");
        assert_eq!(
            (failure.code(), failure.next.as_deref()),
            ("execution_failed", Some("`noetl why 7` tells what led to it"))
        );
        let cancelled = ending(&json!({"execution_id": "7", "status": "cancelled", "error": "too late"}));
        assert_eq!(cancelled.expect("cancelled").message, "execution 7 cancelled: too late");
    }
}
