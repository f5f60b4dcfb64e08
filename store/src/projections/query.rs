//! What can be asked for, and what is answered a page at a time.

use super::{ExecutionRow, ProjectionError};

/// Rows of a page when nothing is said.
pub const PAGE: usize = 50;
/// Rows of a page at most.
pub const MOST: usize = 1000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathFilter {
    Is(String),
    StartsWith(String),
}

/// Which executions to list. The default lists the newest of all tenants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListQuery {
    /// None: every tenant's.
    pub tenant: Option<String>,
    pub path: Option<PathFilter>,
    pub status: Option<String>,
    pub parent: Option<u64>,
    /// Started at this time or later.
    pub since_ms: Option<u64>,
    /// Started at this time or earlier.
    pub until_ms: Option<u64>,
    /// 1 to [`MOST`]; whatever is beyond is brought into that range.
    pub size: usize,
    /// `next` of the page before this one.
    pub cursor: Option<String>,
}

impl Default for ListQuery {
    fn default() -> Self {
        Self {
            tenant: None,
            path: None,
            status: None,
            parent: None,
            since_ms: None,
            until_ms: None,
            size: PAGE,
            cursor: None,
        }
    }
}

/// A page of a list, and where the next one begins if there is more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T = ExecutionRow> {
    pub rows: Vec<T>,
    /// Opaque; goes into the next query.
    pub next: Option<String>,
}

pub(super) fn bad_cursor(given: &str) -> ProjectionError {
    ProjectionError::Cursor(given.chars().take(100).collect())
}
