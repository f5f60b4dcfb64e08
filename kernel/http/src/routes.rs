//! The one table of routes.
//!
//! Plugin paths contain slashes and end in an optional verb (`acme/orders/enrich:call`), which a router of
//! path segments cannot match; half of the routes would have to be split by hand behind a wildcard. So all
//! of them are rows here, and four things read the same row: which handler runs, what access is checked before,
//! the label in metrics and traces, and the test that compares the table with the API description.

use axum::http::Method;
use axum::response::Response;
use futures::future::BoxFuture;
use noetl_contract::PluginPath;

use crate::app::{Args, Cx};
use crate::auth::Access;
use crate::plugins::{call, change, fetch, list, logs, overrides, push};
use crate::problem::Problem;
use crate::{openapi, ops, tokens};

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
    POST   "/api/plugins"                   Push      push::push;
    GET    "/api/plugins/{path}"            See       list::show;
    DELETE "/api/plugins/{path}"            Change    change::delete;
    GET    "/api/plugins/{path}:fetch"      See       fetch::fetch;
    GET    "/api/plugins/{path}:history"    See       list::history;
    GET    "/api/plugins/{path}:logs"       See       logs::logs;
    POST   "/api/plugins/{path}:call"       See       call::call;
    POST   "/api/plugins/{path}:channel"    Change    change::channel;
    POST   "/api/plugins/{path}:rollback"   Change    change::rollback;
    POST   "/api/plugins/{path}:release"    Change    change::release;
    POST   "/api/plugins/{path}:pin"        OwnTenant overrides::pin;
    POST   "/api/plugins/{path}:bind"       OwnTenant overrides::bind;
};

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
    name: String,
}

impl RawArgs {
    pub fn check(self) -> Result<Args, Problem> {
        let plugin = self.plugin.map(PluginPath::new).transpose();
        let plugin = plugin.map_err(|error| Problem::invalid_field("invalid_path", "path", error.to_string()))?;
        Ok(Args { plugin, name: self.name })
    }
}

/// The row of a request. `HEAD` is `GET` without its body, which the connection leaves out.
pub fn find(method: &Method, path: &str) -> Found {
    let (template, args) = template_of(&decode(path));
    let rows = || ROUTES.iter().filter(|route| route.template == template);
    let method = if method == Method::HEAD { &Method::GET } else { method };
    if let Some(route) = rows().find(|route| route.method == method) {
        return Found::Row(route, args);
    }
    let others: Vec<_> = rows().map(|route| &route.method).collect();
    if others.is_empty() { Found::Nothing } else { Found::OtherMethods(others) }
}

fn template_of(path: &str) -> (String, RawArgs) {
    let named = |name: &str| RawArgs { plugin: None, name: name.to_owned() };
    if let Some(rest) = path.strip_prefix("/api/plugins/") {
        let (plugin, verb) = rest.split_once(':').map_or((rest, None), |(plugin, verb)| (plugin, Some(verb)));
        let verb = verb.map(|verb| format!(":{verb}")).unwrap_or_default();
        return (
            format!("/api/plugins/{{path}}{verb}"),
            RawArgs { plugin: Some(plugin.to_owned()), name: String::new() },
        );
    }
    for (prefix, template) in [("/api/tokens/", "/api/tokens/{id}"), ("/errors/", "/errors/{code}")] {
        if let Some(name) = path.strip_prefix(prefix) {
            return (template.to_owned(), named(name));
        }
    }
    (path.to_owned(), RawArgs::default())
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
    fn a_wrong_method_is_told_from_an_unknown_path() {
        assert!(matches!(find(&Method::PUT, "/health"), Found::OtherMethods(methods) if methods == [&Method::GET]));
        assert!(matches!(find(&Method::GET, "/api/plugins/acme/a:call"), Found::OtherMethods(_)));
        for unknown in ["/", "/api", "/health/", "/api/plugins/acme/a:eat", "/api/plugins/acme/a:call:call", "/%zz"] {
            assert!(matches!(find(&Method::GET, unknown), Found::Nothing), "{unknown}");
        }
    }

    #[test]
    fn a_wrong_plugin_path_is_refused_by_name() {
        for wrong in ["/api/plugins/", "/api/plugins/acme", "/api/plugins/Acme/x", "/api/plugins/acme/../x"] {
            let Found::Row(_, args) = find(&Method::GET, wrong) else { panic!("{wrong} has a row") };
            assert_eq!(args.check().expect_err("must be refused").code(), "invalid_path", "{wrong}");
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
