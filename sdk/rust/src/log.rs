//! Log lines, for plugins that hold the capability `log`.
//!
//! ```
//! use noetl_sdk::log;
//!
//! let (order, lines) = ("A-17", 3);
//! log::info!("taking an order");
//! log::warn!("order has only {lines} lines"; order = order, lines = lines);
//! ```
//!
//! What follows the `;` are fields: they are shown as `key=value` and can be filtered on. A line never fails: the host
//! cuts what is too long and counts what it drops.

use std::fmt::{Arguments, Display};

pub use crate::bindings::noetl::log::log::Level;
pub use crate::{
    __log_debug as debug, __log_error as error, __log_info as info, __log_trace as trace, __log_warn as warn,
};

/// Write one line. The macros of this module are shorter.
pub fn write(level: Level, message: Arguments<'_>, fields: &[(&str, &dyn Display)]) {
    let fields: Vec<_> = fields.iter().map(|(key, value)| ((*key).to_owned(), value.to_string())).collect();
    match message.as_str() {
        Some(message) => emit(level, message, &fields),
        None => emit(level, &message.to_string(), &fields),
    }
}

#[cfg(target_family = "wasm")]
fn emit(level: Level, message: &str, fields: &[(String, String)]) {
    crate::bindings::noetl::log::log::write(level, message, fields);
}

/// Native tests have no host; there a line goes where the test runner captures it.
#[cfg(not(target_family = "wasm"))]
fn emit(level: Level, message: &str, fields: &[(String, String)]) {
    let fields: String = fields.iter().map(|(key, value)| format!(" {key}={value}")).collect();
    eprintln!("{level:?} {message}{fields}");
}

#[doc(hidden)]
#[macro_export]
macro_rules! __log_line {
    ($level:ident $format:literal $(, $value:expr)* $(,)? $(; $($key:ident = $field:expr),+ $(,)?)?) => {
        $crate::log::write(
            $crate::log::Level::$level,
            ::core::format_args!($format $(, $value)*),
            &[$($((::core::stringify!($key), &$field as &dyn ::core::fmt::Display)),+)?],
        )
    };
}

/// Write a line of the level `trace`.
#[doc(hidden)]
#[macro_export]
macro_rules! __log_trace {
    ($($line:tt)*) => { $crate::__log_line!(Trace $($line)*) };
}

/// Write a line of the level `debug`.
#[doc(hidden)]
#[macro_export]
macro_rules! __log_debug {
    ($($line:tt)*) => { $crate::__log_line!(Debug $($line)*) };
}

/// Write a line of the level `info`.
#[doc(hidden)]
#[macro_export]
macro_rules! __log_info {
    ($($line:tt)*) => { $crate::__log_line!(Info $($line)*) };
}

/// Write a line of the level `warn`.
#[doc(hidden)]
#[macro_export]
macro_rules! __log_warn {
    ($($line:tt)*) => { $crate::__log_line!(Warn $($line)*) };
}

/// Write a line of the level `error`.
#[doc(hidden)]
#[macro_export]
macro_rules! __log_error {
    ($($line:tt)*) => { $crate::__log_line!(Error $($line)*) };
}
