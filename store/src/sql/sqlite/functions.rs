//! Functions of SQL that take too long as the library has them.
//!
//! A function is not interrupted while it runs, and between two looks at the time there is at least one pass of a loop, which
//! may be many calls. `trim` with letters of its own compares every letter of one text with every letter of the other: an hour
//! for two texts of the largest size. Here it takes a set. The other slow ones take seconds, and a statement may use
//! them only so many times ([`weight`]).

use std::borrow::Cow;
use std::collections::HashSet;

use rusqlite::Connection;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::ValueRef;

/// What uses of slow functions in one statement may weigh together.
pub(super) const MOST_WEIGHT: u32 = 100;

/// About as many as the seconds that one call may take.
pub(super) fn weight(function: &str) -> u32 {
    let is = |names: &[&str]| names.iter().any(|name| function.eq_ignore_ascii_case(name));
    if is(&["json_patch", "jsonb_patch"]) {
        20
    } else if is(&["instr", "replace", "like", "glob"]) {
        1
    } else {
        0
    }
}

/// Which ends of a text.
const TRIMS: [(&str, bool, bool); 3] = [("trim", true, true), ("ltrim", true, false), ("rtrim", false, true)];

pub(super) fn replace_slow(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    for (name, start, end) in TRIMS {
        connection.create_scalar_function(name, 2, flags, move |arguments: &Context<'_>| {
            let both = (text(arguments.get_raw(0)), text(arguments.get_raw(1)));
            let (Some(whole), Some(letters)) = both else { return Ok(None) };
            Ok(Some(trimmed(&whole, &letters, start, end).to_owned()))
        })?;
    }
    Ok(())
}

fn text(value: ValueRef<'_>) -> Option<Cow<'_, str>> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(whole) => Some(whole.to_string().into()),
        ValueRef::Real(float) => Some(format!("{float:?}").into()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(String::from_utf8_lossy(bytes)),
    }
}

fn trimmed<'t>(whole: &'t str, letters: &str, start: bool, end: bool) -> &'t str {
    let letters: HashSet<char> = letters.chars().collect();
    let is_one = |letter: char| letters.contains(&letter);
    let rest = if start { whole.trim_start_matches(is_one) } else { whole };
    if end { rest.trim_end_matches(is_one) } else { rest }
}
