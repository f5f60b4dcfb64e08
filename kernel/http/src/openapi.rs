//! The description of the API, made from the handlers' own annotations.
//!
//! What every operation has in common is added here from the route table: the token it needs, and the
//! problems any request can meet. A test holds the two lists of routes against each other.

use std::sync::LazyLock;

use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use utoipa::openapi::path::Operation;
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Content, Ref, RefOr};
use utoipa::{Modify, OpenApi, ToSchema};

use crate::app::Cx;
use crate::auth::Access;
use crate::catalog::{change as playbooks, read as catalog, register};
use crate::credentials::{change as credential, key as wallet, read as credentials};
use crate::executions::{events, read as executions, steer};
use crate::plugins::{attest, call, change, fetch, list, logs, overrides, push};
use crate::problem::{self, Problem};
use crate::routes::{ROUTES, Route};
use crate::{execute, internal, ops, replay, reports, tokens, tools};

/// An error (RFC 9457). Some codes have more members than these.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its schema is used; the document itself is built in `problem`")]
struct ProblemDocument {
    /// `/errors/<code>`: the help page, served by this server.
    r#type: String,
    title: String,
    status: u16,
    /// What was wrong in this request.
    detail: String,
    /// Stable name of the problem.
    code: String,
    request_id: String,
}

#[derive(OpenApi)]
#[openapi(
    info(title = "noetl", description = "Plugins and playbooks of a noetl server: push, call, execute, watch. See `/errors` for the codes of problems."),
    paths(
        ops::health, ops::ready, ops::metrics, ops::error_index, ops::error_page, serve,
        tokens::whoami, tokens::list, tokens::create, tokens::revoke,
        list::list, push::push, list::show, change::delete, fetch::fetch, list::history, logs::logs, call::call, call::record,
        attest::read, attest::add,
        change::channel, change::rollback, change::release, overrides::pin, overrides::bind,
        tools::list, tools::show,
        catalog::list, register::register, register::validate, catalog::show, playbooks::remove, catalog::versions,
        playbooks::restore, execute::execute, execute::batch, executions::list, executions::show, steer::delete,
        executions::status, executions::commands, events::events, executions::why, steer::cancel, steer::resume,
        credentials::list, credential::put, credentials::show, credential::merge, credential::delete,
        credentials::audit, wallet::status,
        wallet::rotate, steer::retry, replay::state, reports::report, reports::batch, internal::claim, internal::mark_published,
        internal::mark_failed, internal::pending_count, internal::project,
    ),
    components(schemas(ProblemDocument)),
    modifiers(&Common),
)]
struct Api;

static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
    document().to_pretty_json().unwrap_or_else(|error| {
        tracing::error!(%error, "the API description could not be written");
        "{}".to_owned()
    })
});

/// The whole description.
pub fn document() -> utoipa::openapi::OpenApi {
    Api::openapi()
}

/// This description.
#[utoipa::path(get, path = "/api/openapi.json", tag = "operations", responses((status = 200, body = Object)))]
pub async fn serve(_cx: Cx) -> Result<Response, Problem> {
    Ok(([(header::CONTENT_TYPE, "application/json")], Body::from(DOCUMENT.as_str())).into_response())
}

struct Common;

impl Modify for Common {
    fn modify(&self, api: &mut utoipa::openapi::OpenApi) {
        let components = api.components.get_or_insert_default();
        for name in ["token", "service"] {
            let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
            components.add_security_scheme(name, scheme);
        }
        for route in ROUTES {
            if let Some(operation) = operation(api, route) {
                secure(operation, route.access);
                add_problems(operation, route);
            }
        }
    }
}

fn operation<'a>(api: &'a mut utoipa::openapi::OpenApi, route: &Route) -> Option<&'a mut Operation> {
    let item = api.paths.paths.get_mut(route.template)?;
    match route.method.as_str() {
        "GET" => item.get.as_mut(),
        "POST" => item.post.as_mut(),
        "PATCH" => item.patch.as_mut(),
        "DELETE" => item.delete.as_mut(),
        _ => None,
    }
}

fn secure(operation: &mut Operation, access: Access) {
    let needs = |scheme: &str| SecurityRequirement::new(scheme, Vec::<String>::new());
    operation.security = Some(match access {
        Access::Open => Vec::new(),
        Access::Service => vec![needs("service"), needs("token")],
        _ => vec![needs("token")],
    });
    operation.extensions =
        Some([("x-noetl-access", json!(format!("{access:?}").to_lowercase()))].into_iter().collect());
}

fn add_problems(operation: &mut Operation, route: &Route) {
    let mut statuses = vec![("500", "our own mistake")];
    if route.access == Access::Service {
        statuses.push(("503", "no service token is set on this server, or the service cannot be used"));
    } else if route.access != Access::Open {
        statuses.push(("401", "the token is missing, unknown or expired"));
    }
    if route.access != Access::Open {
        statuses.push(("403", "the token does not reach this far"));
        statuses.push(("400", "a parameter or field is wrong; `field` names it"));
    }
    if route.template.contains('{') {
        statuses.push(("404", "there is no such thing"));
    }
    if route.method != "GET" {
        statuses.push(("408", "the body took too long to arrive"));
        statuses.push(("409", "what is there does not allow it"));
        statuses.push(("413", "the body is too large"));
        statuses.push(("503", "the store cannot take it now"));
    }
    for (status, description) in statuses {
        let content = Content::new(Some(RefOr::Ref(Ref::from_schema_name("ProblemDocument"))));
        let response = ResponseBuilder::new().description(description).content(problem::MEDIA_TYPE, content).build();
        operation.responses.responses.entry(status.to_owned()).or_insert_with(|| response.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Methods and paths the description has.
    fn described() -> Vec<(String, String)> {
        let api = document();
        let mut rows = Vec::new();
        for (path, item) in &api.paths.paths {
            let read = [("GET", &item.get), ("POST", &item.post)];
            let changed = [("PATCH", &item.patch), ("DELETE", &item.delete), ("PUT", &item.put)];
            let there = read.into_iter().chain(changed).filter(|(_, operation)| operation.is_some());
            rows.extend(there.map(|(method, _)| (method.to_owned(), path.clone())));
        }
        rows.sort();
        rows
    }

    #[test]
    fn the_description_and_the_table_have_the_same_routes() {
        let mut table: Vec<_> =
            ROUTES.iter().map(|route| (route.method.to_string(), route.template.to_owned())).collect();
        table.sort();
        assert_eq!(described(), table);
    }

    #[test]
    fn every_operation_says_which_token_it_needs_and_which_problems_it_has() {
        let text = serde_json::to_value(document()).expect("plain data");
        for route in ROUTES {
            let operation = &text["paths"][route.template][route.method.as_str().to_lowercase()];
            let secured = operation["security"].as_array().is_some_and(|list| !list.is_empty());
            assert_eq!(secured, route.access != Access::Open, "{} {}", route.method, route.template);
            let problem = &operation["responses"]["500"]["content"][problem::MEDIA_TYPE]["schema"]["$ref"];
            assert_eq!(*problem, "#/components/schemas/ProblemDocument", "{} {}", route.method, route.template);
        }
    }

    #[test]
    fn every_placeholder_is_a_described_parameter() {
        let text = serde_json::to_value(document()).expect("plain data");
        for route in ROUTES.iter().filter(|route| route.template.contains('{')) {
            let name = route.template.split(['{', '}']).nth(1).expect("a placeholder");
            let operation = &text["paths"][route.template][route.method.as_str().to_lowercase()];
            let parameters = operation["parameters"].as_array().expect("parameters");
            assert!(parameters.iter().any(|it| it["name"] == name && it["in"] == "path"), "{}", route.template);
        }
    }
}
