//! What every request shares, and what one request carries to its handler.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::http::HeaderMap;
use noetl_contract::PluginPath;
use noetl_dispatch::engine::{Engine, ExecutionId};
use noetl_dispatch::{Budget, Kernel, Reservation};
use noetl_registry::playbooks::PlaybookPath;
use tokio::sync::watch;

use crate::auth::Caller;
use crate::body::Incoming;
use crate::metrics::HttpMetrics;
use crate::options::HttpOptions;
use crate::problem::Problem;

/// Shared by all requests of a server.
pub struct App {
    pub kernel: Arc<Kernel>,
    pub options: HttpOptions,
    pub metrics: HttpMetrics,
    /// Whether `/metrics` is served without a token.
    pub metrics_open: bool,
    /// Memory for bodies of requests.
    pub room: Budget,
    /// Turns true when the server shuts down, so that endless answers end.
    pub closing: watch::Receiver<bool>,
}

/// One request on its way to a handler.
pub struct Cx {
    pub app: Arc<App>,
    /// Who asks; none only on routes that are open to everybody.
    pub caller: Option<Caller>,
    pub args: Args,
    pub query: String,
    pub headers: HeaderMap,
    /// Under which the server's log knows the request.
    pub request_id: String,
    pub body: Incoming,
    /// What the body takes of the server's memory, given back with the request.
    pub room: Option<Reservation>,
}

/// What the path of the request named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Args {
    pub plugin: Option<PluginPath>,
    pub playbook: Option<PlaybookPath>,
    pub execution: Option<ExecutionId>,
    /// The id of a token, the name of a credential, the kind of a tool or the code of an error.
    pub name: String,
}

impl Cx {
    pub fn kernel(&self) -> &Arc<Kernel> {
        &self.app.kernel
    }

    pub fn engine(&self) -> &Engine {
        self.app.kernel.engine()
    }

    pub fn caller(&self) -> Result<&Caller, Problem> {
        self.caller.as_ref().ok_or_else(Problem::unauthenticated)
    }

    pub fn plugin(&self) -> Result<&PluginPath, Problem> {
        self.args.plugin.as_ref().ok_or_else(|| Problem::internal("the route has no plugin path"))
    }

    pub fn playbook(&self) -> Result<&PlaybookPath, Problem> {
        self.args.playbook.as_ref().ok_or_else(|| Problem::internal("the route has no path of a playbook"))
    }

    pub fn execution(&self) -> Result<ExecutionId, Problem> {
        self.args.execution.ok_or_else(|| Problem::internal("the route has no id of an execution"))
    }
}

/// Wall clock in milliseconds since 1970.
pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// Run a change to its end even when the client goes away: a dropped connection must not leave it half-way
/// through its steps.
pub async fn to_the_end<T: Send + 'static>(change: impl Future<Output = T> + Send + 'static) -> T {
    match tokio::spawn(change).await {
        Ok(outcome) => outcome,
        Err(failed) => match failed.try_into_panic() {
            // The envelope turns it into this request's 500, as if it had happened here.
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => std::future::pending().await,
        },
    }
}
