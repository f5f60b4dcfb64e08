//! A database that is opened for a script, and what the script may not do with it.
//!
//! The authorizer is asked when a statement is compiled, for everything it would do. What is not known to it is denied.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit as Bound;
use rusqlite::{Connection, OpenFlags};

use super::super::SqlError;
use super::{Place, wrong};

/// The largest value, and the largest row.
const LARGEST_VALUE: i32 = 64 << 20;
/// Pages of 4 KiB: 256 MiB in memory, 16 GiB in a file.
const MOST_PAGES_IN_MEMORY: u32 = 64 << 10;
const MOST_PAGES: u32 = 4 << 20;

/// What can be asked about a database, and the few settings that are a script's own business.
const PRAGMAS: [&str; 24] = [
    "application_id",
    "case_sensitive_like",
    "collation_list",
    "compile_options",
    "data_version",
    "defer_foreign_keys",
    "encoding",
    "foreign_key_check",
    "foreign_key_list",
    "foreign_keys",
    "freelist_count",
    "function_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "integrity_check",
    "optimize",
    "page_count",
    "quick_check",
    "recursive_triggers",
    "table_info",
    "table_list",
    "table_xinfo",
    "user_version",
];

/// Functions that reach into the process: one loads machine code, the other reads and writes addresses of it.
const FUNCTIONS_OF_THE_PROCESS: [&str; 2] = ["load_extension", "fts3_tokenizer"];
/// Virtual tables that are made of ordinary ones.
const MODULES: [&str; 3] = ["fts5", "rtree", "geopoly"];

/// When a script has to end.
pub(super) struct Limit {
    pub(super) end: Instant,
    pub(super) given_up: Arc<AtomicBool>,
}

impl Limit {
    fn is_over(&self) -> bool {
        self.given_up.load(Ordering::Relaxed) || Instant::now() >= self.end
    }
}

/// Steps of a statement between two looks at the limit; a fraction of a millisecond.
const STEPS: i32 = 10_000;

pub(super) fn open(place: &Place, patience: Duration, limit: Limit) -> Result<Connection, SqlError> {
    let failed = |error| wrong(error, 0);
    // Without URIs, so that a name is a name.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let (connection, pages) = match place {
        Place::Memory => (Connection::open_in_memory_with_flags(flags).map_err(failed)?, MOST_PAGES_IN_MEMORY),
        Place::File(path) => (Connection::open_with_flags(path, flags).map_err(failed)?, MOST_PAGES),
    };
    connection.busy_timeout(patience).map_err(failed)?;
    connection.set_limit(Bound::SQLITE_LIMIT_LENGTH, LARGEST_VALUE).map_err(failed)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true).map_err(failed)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false).map_err(failed)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true).map_err(failed)?;
    connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(())).map_err(failed)?;
    connection.progress_handler(STEPS, Some(move || limit.is_over())).map_err(failed)?;
    connection.authorizer(Some(authorize)).map_err(failed)?;
    Ok(connection)
}

fn authorize(asked: AuthContext<'_>) -> Authorization {
    let allowed = match asked.action {
        // Not even one in memory, which would have no bound. VACUUM attaches one too.
        AuthAction::Attach { .. } => false,
        AuthAction::Pragma { pragma_name, .. } => PRAGMAS.contains(&pragma_name.to_ascii_lowercase().as_str()),
        AuthAction::Function { function_name } => {
            !FUNCTIONS_OF_THE_PROCESS.iter().any(|name| function_name.eq_ignore_ascii_case(name))
        }
        AuthAction::CreateVtable { module_name, .. } => {
            MODULES.iter().any(|name| module_name.eq_ignore_ascii_case(name))
        }
        AuthAction::Unknown { .. } => false,
        _ => true,
    };
    if allowed { Authorization::Allow } else { Authorization::Deny }
}
