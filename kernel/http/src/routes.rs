//! The one table of routes.
//!
//! Paths of plugins and playbooks contain slashes and end in an optional verb (`acme/orders/enrich:call`), which a
//! router of path segments cannot match; half of the routes would have to be split by hand behind a wildcard. So all
//! of them are rows here, and four things read the same row: which handler runs, what access is checked before,
//! the label in metrics and traces, and the test that compares the table with the API description.
//!
//! A path that is a row word by word goes before one that fits a `{...}`, for the methods it has: the playbook
//! `register` can be read although `POST /api/catalog/register` is something else.

use axum::http::Method;
use axum::response::Response;
use futures::future::BoxFuture;
use noetl_contract::PluginPath;
use noetl_dispatch::engine::ExecutionId;
use noetl_registry::playbooks::PlaybookPath;

use crate::app::{Args, Cx};
use crate::auth::Access;
use crate::catalog::{change as playbooks, read as catalog, register};
use crate::credentials::{change as credential, key as wallet, read as credentials};
use crate::executions::{events, read as executions, steer};
use crate::plugins::{attest, call, change, fetch, list, logs, overrides, push};
use crate::problem::Problem;
use crate::{execute, internal, openapi, ops, replay, reports, tokens, tools};

pub struct Route {
    pub method: Method,
    pub template: &'static str,
    pub access: Access,
    pub handler: fn(Cx) -> BoxFuture<'static, Result<Response, Problem>>,
}

macro_rules! routes {
    ($($method:ident $template:literal $access:ident $handler:path;)*) => {
        &[$(Route {
            method: Method::$method,
            template: $template,
            access: Access::$access,
            handler: |cx| Box::pin($handler(cx)),
        }),*]
    };
}

pub static ROUTES: &[Route] = routes! {
    GET    "/health"                        Open      ops::health;
    GET    "/ready"                         Open      ops::ready;
    GET    "/metrics"                       Scrape    ops::metrics;
    GET    "/errors"                        Open      ops::error_index;
    GET    "/errors/{code}"                 Open      ops::error_page;
    GET    "/api/openapi.json"              Open      openapi::serve;
    GET    "/api/whoami"                    Token     tokens::whoami;
    GET    "/api/tokens"                    Token     tokens::list;
    POST   "/api/tokens"                    Token     tokens::create;
    DELETE "/api/tokens/{id}"               Token     tokens::revoke;
    GET    "/api/plugins"                   Token     list::list;
    POST   "/api/plugins"                   Write     push::push;
    GET    "/api/plugins/{path}"            See       list::show;
    DELETE "/api/plugins/{path}"            Change    change::delete;
    GET    "/api/plugins/{path}:fetch"      See       fetch::fetch;
    GET    "/api/plugins/{path}:history"    See       list::history;
    GET    "/api/plugins/{path}:logs"       See       logs::logs;
    POST   "/api/plugins/{path}:call"       See       call::call;
    POST   "/api/plugins/{path}:record"     Change    call::record;
    GET    "/api/plugins/{path}:attestations" See     attest::read;
    POST   "/api/plugins/{path}:attest"     Change    attest::add;
    POST   "/api/plugins/{path}:channel"    Change    change::channel;
    POST   "/api/plugins/{path}:rollback"   Change    change::rollback;
    POST   "/api/plugins/{path}:release"    Change    change::release;
    POST   "/api/plugins/{path}:pin"        OwnTenant overrides::pin;
    POST   "/api/plugins/{path}:bind"       OwnTenant overrides::bind;
    GET    "/api/tools"                     Token     tools::list;
    GET    "/api/tools/{kind}"              Token     tools::show;
    GET    "/api/catalog"                   Token     catalog::list;
    POST   "/api/catalog/register"          Write     register::register;
    POST   "/api/catalog/validate"          Token     register::validate;
    GET    "/api/catalog/{path}"            Token     catalog::show;
    DELETE "/api/catalog/{path}"            Write     playbooks::remove;
    GET    "/api/catalog/{path}:versions"   Token     catalog::versions;
    POST   "/api/catalog/{path}:restore"    Write     playbooks::restore;
    POST   "/api/execute"                   Write     execute::execute;
    POST   "/api/execute/batch"             Write     execute::batch;
    GET    "/api/executions"                Token     executions::list;
    GET    "/api/executions/{id}"           Watch     executions::show;
    DELETE "/api/executions/{id}"           Steer     steer::delete;
    GET    "/api/executions/{id}/status"    Watch     executions::status;
    GET    "/api/executions/{id}/commands"  Watch     executions::commands;
    GET    "/api/executions/{id}/events"    Watch     events::events;
    GET    "/api/executions/{id}/why"       Watch     executions::why;
    POST   "/api/executions/{id}/cancel"    Steer     steer::cancel;
    POST   "/api/executions/{id}/resume"    Steer     steer::resume;
    POST   "/api/executions/{id}/retry"     Steer     steer::retry;
    GET    "/api/replay/state"              Token     replay::state;
    POST   "/api/events"                    Write     reports::report;
    POST   "/api/events/batch"              Write     reports::batch;
    GET    "/api/credentials"               Token     credentials::list;
    POST   "/api/credentials"               Write     credential::put;
    GET    "/api/credentials/{name}"        Token     credentials::show;
    PATCH  "/api/credentials/{name}"        Write     credential::merge;
    DELETE "/api/credentials/{name}"        Write     credential::delete;
    GET    "/api/credentials/{name}/audit"  Token     credentials::audit;
    GET    "/api/wallet/status"             Token     wallet::status;
    POST   "/api/wallet/rotate"             Write     wallet::rotate;
    POST   "/api/internal/outbox/claim"          Service internal::claim;
    POST   "/api/internal/outbox/mark-published" Service internal::mark_published;
    POST   "/api/internal/outbox/mark-failed"    Service internal::mark_failed;
    GET    "/api/internal/outbox/pending-count"  Service internal::pending_count;
    POST   "/api/internal/events/project"        Service internal::project;
};

/// Names that clients and playbooks of before know, and the rows that answer.
const OTHER_NAMES: &[(&str, &str)] =
    &[("/api/health", "/health"), ("/api/ready", "/ready"), ("/api/metrics", "/metrics")];

/// The label of requests that have no row.
pub const UNMATCHED: &str = "unmatched";

pub enum Found {
    /// The row, and what stood in the place of its `{...}`.
    Row(&'static Route, RawArgs),
    /// The path exists with these methods.
    OtherMethods(Vec<&'static Method>),
    Nothing,
}

/// What stood in the path, not yet checked: a caller without a token learns nothing about it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RawArgs {
    plugin: Option<String>,
    playbook: Option<String>,
    execution: Option<String>,
    name: String,
}

impl RawArgs {
    pub fn check(self) -> Result<Args, Problem> {
        let plugin = self.plugin.map(PluginPath::new).transpose();
        let plugin = plugin.map_err(|error| Problem::invalid_field("invalid_path", "path", error.to_string()))?;
        let playbook = self.playbook.map(PlaybookPath::new).transpose();
        let playbook = playbook.map_err(|error| Problem::invalid_field("invalid_path", "path", error.to_string()))?;
        let execution = self.execution.map(|id| id.parse::<ExecutionId>()).transpose();
        let execution =
            execution.map_err(|error| Problem::invalid_field("invalid_parameter", "id", error.to_string()))?;
        Ok(Args { plugin, playbook, execution, name: self.name })
    }
}

/// The row of a request. `HEAD` is `GET` without its body, which the connection leaves out.
pub fn find(method: &Method, path: &str) -> Found {
    let path = decode(path);
    let path = OTHER_NAMES.iter().find(|(other, _)| *other == path).map_or(path, |(_, own)| (*own).to_owned());
    let method = if method == Method::HEAD { &Method::GET } else { method };
    let mut others = Vec::new();
    // A client that sends a brace means no placeholder of ours.
    let literal = (!path.contains('{')).then(|| (path.clone(), RawArgs::default()));
    for (template, args) in [literal, template_of(&path)].into_iter().flatten() {
        for route in ROUTES.iter().filter(|route| route.template == template) {
            if route.method == method {
                return Found::Row(route, args);
            }
            others.push(&route.method);
        }
    }
    if others.is_empty() { Found::Nothing } else { Found::OtherMethods(others) }
}

/// The template with a `{...}` that a path fits, and what stands there.
fn template_of(path: &str) -> Option<(String, RawArgs)> {
    if let Some(rest) = path.strip_prefix("/api/plugins/") {
        let (plugin, verb) = verb(rest);
        let args = RawArgs { plugin: Some(plugin.to_owned()), ..RawArgs::default() };
        return Some((format!("/api/plugins/{{path}}{verb}"), args));
    }
    if let Some(rest) = path.strip_prefix("/api/catalog/") {
        let (playbook, verb) = verb(rest);
        let args = RawArgs { playbook: Some(playbook.to_owned()), ..RawArgs::default() };
        return Some((format!("/api/catalog/{{path}}{verb}"), args));
    }
    if let Some(rest) = path.strip_prefix("/api/executions/") {
        let (id, part) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let args = RawArgs { execution: Some(id.to_owned()), ..RawArgs::default() };
        return Some((format!("/api/executions/{{id}}{part}"), args));
    }
    if let Some(rest) = path.strip_prefix("/api/credentials/") {
        let (name, part) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let args = RawArgs { name: name.to_owned(), ..RawArgs::default() };
        return Some((format!("/api/credentials/{{name}}{part}"), args));
    }
    let named =
        [("/api/tokens/", "/api/tokens/{id}"), ("/api/tools/", "/api/tools/{kind}"), ("/errors/", "/errors/{code}")];
    named.into_iter().find_map(|(prefix, template)| {
        let name = path.strip_prefix(prefix)?.to_owned();
        Some((template.to_owned(), RawArgs { name, ..RawArgs::default() }))
    })
}

/// A path and its verb, with the colon.
fn verb(rest: &str) -> (&str, &str) {
    rest.find(':').map_or((rest, ""), |at| rest.split_at(at))
}

/// Some clients write the colon as `%3A` and the slash as `%2F`.
fn decode(path: &str) -> String {
    let mut decoded = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let escape = (byte == b'%').then(|| tail.get(..2)).flatten();
        match escape.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()) {
            Some(value) => {
                decoded.push(value);
                rest = &tail[2..];
            }
            None => {
                decoded.push(byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(method: Method, path: &str) -> Option<(&'static str, Args)> {
        match find(&method, path) {
            Found::Row(route, args) => Some((route.template, args.check().expect("valid"))),
            _ => None,
        }
    }

    #[test]
    fn a_verb_is_split_from_a_path_of_any_depth() {
        let (template, args) = row(Method::POST, "/api/plugins/acme/orders/enrich:call").expect("a route");
        assert_eq!(template, "/api/plugins/{path}:call");
        assert_eq!(args.plugin, Some(PluginPath::new("acme/orders/enrich").expect("valid")));
        let (template, _) = row(Method::GET, "/api/plugins/acme/a").expect("a route");
        assert_eq!(template, "/api/plugins/{path}");
        assert!(row(Method::POST, "/api/plugins/acme%2Fa%3Acall").is_some());
        assert!(row(Method::HEAD, "/api/plugins/acme/a:fetch").is_some());
    }

    #[test]
    fn playbooks_and_executions_are_found_by_what_their_paths_name() {
        let (template, args) = row(Method::GET, "/api/catalog/tests/Hello_world.v2:versions").expect("a route");
        assert_eq!(template, "/api/catalog/{path}:versions");
        assert_eq!(args.playbook, PlaybookPath::new("tests/Hello_world.v2").ok());
        let (template, args) = row(Method::POST, "/api/executions/17/cancel").expect("a route");
        assert_eq!((template, args.execution), ("/api/executions/{id}/cancel", Some(ExecutionId(17))));
        assert_eq!(row(Method::GET, "/api/executions/17").expect("a route").0, "/api/executions/{id}");
        assert!(matches!(find(&Method::GET, "/api/executions/17/cancel/x"), Found::Nothing));
    }

    #[test]
    fn a_credential_is_found_by_its_name() {
        let (template, args) = row(Method::GET, "/api/credentials/pg_k8s/audit").expect("a route");
        assert_eq!((template, args.name.as_str()), ("/api/credentials/{name}/audit", "pg_k8s"));
        assert_eq!(row(Method::DELETE, "/api/credentials/pg").expect("a route").0, "/api/credentials/{name}");
    }

    #[test]
    fn a_row_answers_under_the_names_it_had_before() {
        for (other, own) in OTHER_NAMES {
            assert_eq!(row(Method::GET, other).expect("a route").0, *own);
        }
    }

    #[test]
    fn a_playbook_may_be_named_like_a_route() {
        assert_eq!(row(Method::POST, "/api/catalog/register").expect("a route").0, "/api/catalog/register");
        let (template, args) = row(Method::GET, "/api/catalog/register").expect("a route");
        assert_eq!(template, "/api/catalog/{path}");
        assert_eq!(args.playbook, PlaybookPath::new("register").ok());
        let put = find(&Method::PUT, "/api/catalog/register");
        assert!(
            matches!(put, Found::OtherMethods(methods) if methods == [&Method::POST, &Method::GET, &Method::DELETE])
        );
    }

    #[test]
    fn a_wrong_method_is_told_from_an_unknown_path() {
        assert!(matches!(find(&Method::PUT, "/health"), Found::OtherMethods(methods) if methods == [&Method::GET]));
        assert!(matches!(find(&Method::GET, "/api/plugins/acme/a:call"), Found::OtherMethods(_)));
        for unknown in ["/", "/api", "/health/", "/api/plugins/acme/a:eat", "/api/plugins/acme/a:call:call", "/%zz"] {
            assert!(matches!(find(&Method::GET, unknown), Found::Nothing), "{unknown}");
        }
    }

    #[test]
    fn a_wrong_plugin_path_is_refused_by_name() {
        for wrong in ["/api/plugins/", "/api/plugins/acme", "/api/plugins/Acme/x", "/api/plugins/{path}"] {
            let Found::Row(_, args) = find(&Method::GET, wrong) else { panic!("{wrong} has a row") };
            assert_eq!(args.check().expect_err("must be refused").code(), "invalid_path", "{wrong}");
        }
    }

    #[test]
    fn a_wrong_id_or_path_of_a_playbook_is_refused_by_name() {
        for (wrong, code) in [
            ("/api/executions/", "invalid_parameter"),
            ("/api/executions/x", "invalid_parameter"),
            ("/api/executions/-1", "invalid_parameter"),
            ("/api/catalog/", "invalid_path"),
            ("/api/catalog/a//b", "invalid_path"),
        ] {
            let Found::Row(_, args) = find(&Method::GET, wrong) else { panic!("{wrong} has a row") };
            assert_eq!(args.check().expect_err("must be refused").code(), code, "{wrong}");
        }
    }

    #[test]
    fn every_row_is_there_once() {
        let mut rows: Vec<_> = ROUTES.iter().map(|route| (route.method.as_str(), route.template)).collect();
        rows.sort_unstable();
        let before = rows.len();
        rows.dedup();
        assert_eq!(rows.len(), before);
    }

    #[test]
    fn nothing_that_changes_is_open() {
        for route in ROUTES.iter().filter(|route| route.method != Method::GET) {
            assert_ne!(route.access, Access::Open, "{} {}", route.method, route.template);
        }
    }
}
