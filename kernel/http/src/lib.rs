//! The HTTP API: the only way into a running server, and the only crate that knows HTTP.
//!
//! A request goes through five steps, each in a file of its own: [`server`] accepts it, [`envelope`] gives it
//! an id, a span and a place in the metrics, [`routes`] finds its row in the one table of routes, [`auth`]
//! decides whether the caller may do what the row says, and a handler talks to the kernel. Handlers only
//! translate; what a plugin, a playbook, an execution or a token is, is decided below this crate.
//!
//! Invariants:
//! 1. Every route is a row of [`routes::ROUTES`], and a row names the access it needs. A handler is never
//!    reached without that check, so a new route cannot forget it.
//! 2. Every error is a problem document (RFC 9457) with a stable code that has a help page.
//! 3. A component is never held in memory whole: it streams to the payload store and from it.
//! 4. A token's secret is never logged and leaves the server once, in the answer that created it.
//!
//! On overload connections wait to be accepted; on bad input the request alone fails; a panic in a handler
//! is that request's 500; on shutdown open requests get a limited time to finish.

mod app;
mod auth;
mod body;
mod catalog;
mod credentials;
mod engine;
mod envelope;
mod execute;
mod executions;
mod help;
mod input;
mod internal;
mod metrics;
mod openapi;
mod ops;
mod options;
mod outcome;
mod plugins;
mod problem;
mod replay;
mod reports;
mod routes;
mod server;
mod tokens;
mod tools;
mod values;

pub use openapi::document as openapi_document;
pub use options::HttpOptions;
pub use server::serve;
