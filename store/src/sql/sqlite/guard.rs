//! A database that is opened for a script, and what the script may not do with it.
//!
//! The authorizer is asked when a statement is compiled, for everything it would do. What is not known to it is denied.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit as Bound;
use rusqlite::{Connection, OpenFlags};

use super::super::SqlError;
use super::functions::{self, MOST_WEIGHT};
use super::meter::{Meter, Overrun};
use super::{Place, wrong};

/// What one statement may be. A function is not interrupted while it runs, and some take the square of the length of what
/// they are given: the largest value is also what bounds one call of a function.
const BOUNDS: [(Bound, i32); 12] = [
    // Of a value and of a row.
    (Bound::SQLITE_LIMIT_LENGTH, 1 << 20),
    // Of a whole script.
    (Bound::SQLITE_LIMIT_SQL_LENGTH, 1 << 20),
    (Bound::SQLITE_LIMIT_COLUMN, 500),
    (Bound::SQLITE_LIMIT_EXPR_DEPTH, 200),
    (Bound::SQLITE_LIMIT_COMPOUND_SELECT, 50),
    (Bound::SQLITE_LIMIT_VDBE_OP, 100_000),
    (Bound::SQLITE_LIMIT_FUNCTION_ARG, 100),
    (Bound::SQLITE_LIMIT_ATTACHED, 0),
    (Bound::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000),
    (Bound::SQLITE_LIMIT_VARIABLE_NUMBER, 10_000),
    (Bound::SQLITE_LIMIT_TRIGGER_DEPTH, 20),
    (Bound::SQLITE_LIMIT_WORKER_THREADS, 0),
];
/// Pages of 4 KiB: 32 MiB in memory, 16 GiB in a file, 64 MiB of temporary tables, which lie in files too.
const MOST_PAGES_IN_MEMORY: u32 = 8 << 10;
const MOST_PAGES: u32 = 4 << 20;
const MOST_TEMPORARY_PAGES: u32 = 16 << 10;
/// KiB of pages kept in memory, of a file and of temporary tables each.
const CACHE: u32 = 2 << 10;

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

/// When a script has to end. Clones are of the same script.
#[derive(Clone)]
pub(super) struct Limit {
    end: Instant,
    given_up: Arc<AtomicBool>,
    overrun: Arc<Mutex<Option<Overrun>>>,
    /// Of the slow functions in the statement that is compiled.
    weight: Arc<AtomicU32>,
}

impl Limit {
    pub(super) fn new(end: Instant, given_up: Arc<AtomicBool>) -> Self {
        Self { end, given_up, overrun: Arc::default(), weight: Arc::default() }
    }

    pub(super) fn begin_statement(&self) {
        self.weight.store(0, Ordering::Relaxed);
    }

    /// Whether the statement may use this function once more.
    fn has_room_for(&self, function: &str) -> bool {
        let weight = functions::weight(function);
        let before = self.weight.fetch_add(weight, Ordering::Relaxed);
        let fits = weight == 0 || before + weight <= MOST_WEIGHT;
        if !fits {
            *self.overrun.lock() = Some(Overrun::Functions);
        }
        fits
    }

    /// Statements that are each over in no time are not interrupted, so this is also asked between them.
    pub(super) fn is_over(&self) -> bool {
        self.is_over_at(Instant::now())
    }

    fn is_over_at(&self, now: Instant) -> bool {
        self.given_up.load(Ordering::Relaxed) || now >= self.end
    }

    fn stops(&self, meter: &mut Meter) -> bool {
        let now = Instant::now();
        let Some(overrun) = meter.look(now) else { return self.is_over_at(now) };
        *self.overrun.lock() = Some(overrun);
        true
    }

    /// Whatever interrupts a statement, the library calls it an interruption, and a denial what is refused.
    pub(super) fn explain(&self, error: SqlError) -> SqlError {
        match (error, *self.overrun.lock()) {
            (SqlError::Timeout | SqlError::Denied(_), Some(overrun)) => overrun.into(),
            (error, _) => error,
        }
    }
}

/// Steps of a statement between two looks at the limit: few, since one step can make a value of the largest size, or take
/// seconds. The library looks only where a loop begins again.
const STEPS: i32 = 20;

/// On the thread that runs the script.
pub(super) fn open(place: &Place, patience: Duration, limit: Limit) -> Result<Connection, SqlError> {
    let failed = |error| wrong(error, 0);
    // Without URIs, so that a name is a name.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let (connection, pages) = match place {
        Place::Memory => (Connection::open_in_memory_with_flags(flags).map_err(failed)?, MOST_PAGES_IN_MEMORY),
        Place::File(path) => {
            let is_new = !path.exists();
            let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
            if is_new {
                close_to_others(path)?;
            }
            (connection, MOST_PAGES)
        }
    };
    connection.busy_timeout(patience).map_err(failed)?;
    for (bound, most) in BOUNDS {
        connection.set_limit(bound, most).map_err(failed)?;
    }
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true).map_err(failed)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false).map_err(failed)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true).map_err(failed)?;
    let settings = format!(
        "PRAGMA temp_store = FILE;
         PRAGMA main.cache_size = -{CACHE}; PRAGMA temp.cache_size = -{CACHE};
         PRAGMA main.max_page_count = {pages}; PRAGMA temp.max_page_count = {MOST_TEMPORARY_PAGES};"
    );
    connection.execute_batch(&settings).map_err(failed)?;
    functions::replace_slow(&connection).map_err(failed)?;
    let (mut meter, counted) = (Meter::new(), limit.clone());
    connection.progress_handler(STEPS, Some(move || limit.stops(&mut meter))).map_err(failed)?;
    connection.authorizer(Some(move |asked: AuthContext<'_>| authorize(&asked, &counted))).map_err(failed)?;
    Ok(connection)
}

/// A new database is for the server's user alone; the library gives its journal the same rights. By name and never by a
/// file that is opened for it: closing that would release the locks of every other script on the same database.
fn close_to_others(path: &Path) -> Result<(), SqlError> {
    let closed = fs::set_permissions(path, Permissions::from_mode(0o600));
    closed.map_err(|error| SqlError::Connect(format!("the database's file: {error}")))
}

fn authorize(asked: &AuthContext<'_>, limit: &Limit) -> Authorization {
    let allowed = match asked.action {
        // Not even one in memory, which would have no bound. VACUUM attaches one too.
        AuthAction::Attach { .. } => false,
        AuthAction::Pragma { pragma_name, .. } => PRAGMAS.contains(&pragma_name.to_ascii_lowercase().as_str()),
        AuthAction::Function { function_name } => {
            let of_the_process = FUNCTIONS_OF_THE_PROCESS.iter().any(|name| function_name.eq_ignore_ascii_case(name));
            !of_the_process && limit.has_room_for(function_name)
        }
        AuthAction::CreateVtable { module_name, .. } => {
            MODULES.iter().any(|name| module_name.eq_ignore_ascii_case(name))
        }
        AuthAction::Unknown { .. } => false,
        _ => true,
    };
    if allowed { Authorization::Allow } else { Authorization::Deny }
}
