//! A text becomes a version, or is only looked at.
//!
//! The body is the playbook itself (`text/yaml`), or a JSON object with it in `content`. Whoever reads a text with a
//! mistake says all mistakes at once, each with its place.

use axum::Json;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use noetl_contract::Tenant;
use noetl_dispatch::engine::EngineError;
use noetl_registry::playbooks::{MOST_BYTES, PlaybookError, PlaybookPath};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::app::{Cx, to_the_end};
use crate::engine;
use crate::input;
use crate::problem::Problem;

/// Text in JSON has a backslash before every quote and newline, so it can be twice as long.
const MOST_JSON_BYTES: u64 = 2 * MOST_BYTES + (64 << 10);

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RegisterQuery {
    /// Refuse keys that mean nothing, instead of warning about them.
    #[serde(default)]
    strict: bool,
    /// The token's own tenant when left out; an administrator names one, or means `main`.
    #[param(value_type = Option<String>)]
    tenant: Option<Tenant>,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ValidateQuery {
    /// Whether keys that mean nothing are errors.
    #[serde(default)]
    strict: bool,
    /// Whose tools it is held against: the token's own tenant when left out.
    #[param(value_type = Option<String>)]
    tenant: Option<Tenant>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Text {
    /// The playbook, YAML.
    content: String,
    /// `Playbook`, which is the only type there is.
    #[serde(default)]
    resource_type: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct RegisteredView {
    /// `success`.
    status: &'static str,
    message: String,
    path: String,
    version: u32,
    /// `<path>@<version>`.
    catalog_id: String,
    kind: String,
    digest: String,
    /// As in `validate`.
    #[schema(value_type = Vec<Object>)]
    warnings: Value,
}

#[derive(Serialize, ToSchema)]
pub struct Validation {
    /// Whether it could be registered.
    valid: bool,
    /// `{severity, line, column, path, message, suggestion}`, in the order of the text.
    #[schema(value_type = Vec<Object>)]
    problems: Value,
}

/// Register a playbook: the next version of the path its `metadata` names.
#[utoipa::path(post, path = "/api/catalog/register", tag = "catalog", params(RegisterQuery), request_body = Text,
    responses((status = 201, description = "a new version", body = RegisteredView),
        (status = 200, description = "the newest version has this text already", body = RegisteredView),
        (status = 422, description = "the text has mistakes, all of them in `problems`")))]
pub async fn register(mut cx: Cx) -> Result<Response, Problem> {
    let query: RegisterQuery = input::query(&cx.query)?;
    let tenant = cx.caller()?.works_for(query.tenant)?;
    let text = receive(&mut cx).await?;
    let (kernel, actor) = (cx.kernel().clone(), cx.caller()?.actor_for(&tenant));
    let owner = tenant.clone();
    let registered = to_the_end(async move { kernel.engine().register(&actor, &owner, &text, query.strict).await });
    let registered = registered.await.map_err(|error| match error {
        // The only thing a text is refused for beside its mistakes is a path that is not the caller's to change.
        EngineError::Refused(detail) => Problem::forbidden("forbidden", detail),
        other => other.into(),
    })?;
    let (path, version) = (registered.path.to_string(), registered.version);
    let message = match registered.created {
        true => format!("{path} has version {version} now"),
        false => format!("version {version} of {path} has this text already"),
    };
    let view = RegisteredView {
        status: "success",
        message,
        catalog_id: format!("{path}@{version}"),
        kind: kind(&cx, &tenant, &path, version),
        digest: registered.digest.to_string(),
        warnings: engine::list(&registered.warnings),
        path,
        version,
    };
    let status = if registered.created { StatusCode::CREATED } else { StatusCode::OK };
    let location = HeaderValue::from_str(&format!("/api/catalog/{}", view.path)).map_err(Problem::internal)?;
    Ok((status, [(header::LOCATION, location)], Json(view)).into_response())
}

/// The kind the catalog has for a version.
fn kind(cx: &Cx, tenant: &Tenant, path: &str, version: u32) -> String {
    let path = PlaybookPath::new(path).ok();
    let entry = path.and_then(|path| cx.engine().playbooks().resolve(tenant, &path, Some(version)));
    entry.map_or_else(|| "Playbook".to_owned(), |entry| entry.kind.clone())
}

/// Check a playbook without registering it.
#[utoipa::path(post, path = "/api/catalog/validate", tag = "catalog", params(ValidateQuery), request_body = Text,
    responses((status = 200, body = Validation)))]
pub async fn validate(mut cx: Cx) -> Result<Response, Problem> {
    let query: ValidateQuery = input::query(&cx.query)?;
    let tenant = cx.caller()?.works_for(query.tenant)?;
    let text = receive(&mut cx).await?;
    let problems = engine::list(&cx.engine().validate(&tenant, &text, query.strict).await?);
    Ok(Json(Validation { valid: is_valid(&problems), problems }).into_response())
}

/// What is not said to be a warning counts.
fn is_valid(problems: &Value) -> bool {
    problems.as_array().is_none_or(|list| list.iter().all(|problem| problem["severity"] == "warning"))
}

async fn receive(cx: &mut Cx) -> Result<String, Problem> {
    if is_json(&cx.headers) {
        let Text { content, resource_type } = input::document_within(cx, MOST_JSON_BYTES).await?;
        if let Some(other) = resource_type.filter(|given| !given.eq_ignore_ascii_case("playbook")) {
            let detail = format!("field `resource_type`: `{other}` cannot be registered; use `Playbook`");
            return Err(Problem::invalid_field("invalid_body", "resource_type", detail));
        }
        return check_size(content);
    }
    // More than allowed is let in, so that a text that is too large is refused as a playbook.
    let bytes = input::body_within(cx, MOST_JSON_BYTES).await?;
    let text = String::from_utf8(bytes.into())
        .map_err(|error| Problem::bad_request("invalid_body", format!("the playbook is not UTF-8: {error}")))?;
    check_size(text)
}

fn check_size(text: String) -> Result<String, Problem> {
    let size = text.len() as u64;
    if size > MOST_BYTES { Err(PlaybookError::TooLarge(size).into()) } else { Ok(text) }
}

/// Whatever does not say that it is JSON is the text itself.
fn is_json(headers: &HeaderMap) -> bool {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    given.is_some_and(|given| given.trim_start().to_ascii_lowercase().starts_with("application/json"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn warnings_alone_leave_a_playbook_valid() {
        assert!(is_valid(&json!([])));
        assert!(is_valid(&json!([{"severity": "warning"}])));
        assert!(!is_valid(&json!([{"severity": "warning"}, {"severity": "error"}])));
        assert!(!is_valid(&json!(["what is this"])));
    }

    #[test]
    fn a_text_over_the_bound_is_refused_as_a_playbook() {
        let most = usize::try_from(MOST_BYTES).expect("fits");
        assert!(check_size("x".repeat(most)).is_ok());
        assert_eq!(check_size("x".repeat(most + 1)).expect_err("too large").code(), "playbook_too_large");
    }

    #[test]
    fn only_json_is_unwrapped() {
        let with = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(value));
            is_json(&headers)
        };
        assert!(with("application/json; charset=utf-8") && with("Application/JSON"));
        assert!(!with("text/yaml") && !with("application/x-yaml") && !is_json(&HeaderMap::new()));
    }
}
