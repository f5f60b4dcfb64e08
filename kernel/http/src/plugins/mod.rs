//! The routes about plugins, and how errors of the layers below become problems. Their codes and statuses
//! are decided there; here they only get their form.

use axum::http::header;
use noetl_dispatch::{CallError, SwitchError, catalog_status};
use noetl_registry::tokens::TokenError;
use noetl_registry::{CatalogError, ResolveError};

use crate::problem::Problem;

pub mod attest;
pub mod call;
pub mod change;
pub mod fetch;
pub mod list;
pub mod logs;
pub mod overrides;
pub mod push;

impl From<CatalogError> for Problem {
    fn from(error: CatalogError) -> Self {
        Problem::of(catalog_status(&error), error.code(), error.to_string())
    }
}

impl From<SwitchError> for Problem {
    fn from(error: SwitchError) -> Self {
        Problem::of(error.status(), error.code(), error.to_string())
    }
}

impl From<ResolveError> for Problem {
    fn from(error: ResolveError) -> Self {
        CallError::from(error).into()
    }
}

impl From<CallError> for Problem {
    fn from(error: CallError) -> Self {
        let mut problem = Problem::of(error.status(), error.code(), error.to_string());
        if let Some(class) = error.class() {
            problem = problem.with("class", class.name());
        }
        match error.retry_after() {
            // Rounded up: a client that comes back too early is refused once more.
            Some(pause) => problem.header(header::RETRY_AFTER, (pause.as_secs() + 1).into()),
            None => problem,
        }
    }
}

impl From<TokenError> for Problem {
    fn from(error: TokenError) -> Self {
        use TokenError as E;
        let field = |field: &str| Problem::invalid_field("invalid_body", field, format!("field `{field}`: {error}"));
        match &error {
            E::BadName => field("name"),
            E::PrivilegeTooHigh(_) => field("privilege"),
            E::NotFound(_) => Problem::of(404, error.code(), error.to_string()),
            E::Forbidden { .. } => Problem::of(403, error.code(), error.to_string()),
            E::NoRandomness(_) => Problem::internal(error),
            E::Ledger(_) => Problem::of(503, error.code(), error.to_string()),
        }
    }
}
