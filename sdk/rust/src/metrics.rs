//! Numbers a plugin reports about its own work, shown under `noetl_plugin_custom_*` in the server's metrics.

use crate::Failure;
use crate::bindings::noetl::metrics::metrics::{self, Label, MetricsError};

/// Why a number was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("metric or label name is not valid: {0}; use `[a-z][a-z0-9_]*`, at most 64 bytes")]
    InvalidName(String),
    #[error("the plugin already reports as many series as the operator allows; use fewer label values")]
    TooManySeries,
}

impl From<MetricsError> for Error {
    fn from(error: MetricsError) -> Self {
        match error {
            MetricsError::InvalidName(name) => Self::InvalidName(name),
            MetricsError::TooManySeries => Self::TooManySeries,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::new("metrics", error)
    }
}

/// Add to a counter that only grows.
pub fn count(name: &str, labels: &[(&str, &str)], value: u64) -> Result<(), Error> {
    Ok(metrics::counter_add(name, &owned(labels), value)?)
}

/// Set a gauge.
pub fn gauge(name: &str, labels: &[(&str, &str)], value: f64) -> Result<(), Error> {
    Ok(metrics::gauge_set(name, &owned(labels), value)?)
}

fn owned(labels: &[(&str, &str)]) -> Vec<Label> {
    labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}
