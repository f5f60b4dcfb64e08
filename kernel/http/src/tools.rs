//! The tools a tenant's playbooks can call, each in its own words.

use axum::Json;
use axum::response::{IntoResponse, Response};
use noetl_contract::Tenant;
use noetl_dispatch::{Tool, ToolError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::app::Cx;
use crate::input;
use crate::problem::Problem;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ToolQuery {
    /// For whom: the token's own tenant when left out; an administrator names one, or means `main`.
    #[param(value_type = Option<String>)]
    tenant: Option<Tenant>,
}

#[derive(Serialize, ToSchema)]
pub struct ToolList {
    /// By kind.
    tools: Vec<ToolView>,
}

/// A kind of tool and what serves it.
#[derive(Serialize, ToSchema)]
pub struct ToolView {
    kind: String,
    /// `engine`, `embedded`, `channel`, `pin` or `binding`: why this version serves.
    source: &'static str,
    /// The plugin that serves; none for a kind that the engine runs itself.
    plugin: Option<String>,
    version: Option<String>,
    digest: Option<String>,
    /// `{summary, fields, open, result, errors, examples, notes}`; none when the tool says nothing.
    #[schema(value_type = Option<Object>)]
    description: Value,
    /// Why there is no description, if the tool has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

impl From<Tool> for ToolView {
    fn from(tool: Tool) -> Self {
        let entry = tool.served_by.as_ref().map(|resolved| &resolved.entry);
        Self {
            source: tool.served_by.as_ref().map_or("engine", |resolved| resolved.source.name()),
            plugin: entry.map(|entry| entry.path.to_string()),
            version: entry.map(|entry| entry.version.to_string()),
            digest: entry.map(|entry| entry.digest.to_string()),
            description: serde_json::to_value(tool.description.as_deref()).unwrap_or_default(),
            kind: tool.kind,
            problem: tool.problem,
        }
    }
}

impl From<ToolError> for Problem {
    fn from(error: ToolError) -> Self {
        match error {
            ToolError::NotAKind(_) => Problem::invalid_field("invalid_parameter", "kind", error.to_string()),
            ToolError::Resolve(error) => error.into(),
        }
    }
}

/// List the kinds of tools that the tenant's playbooks can call.
#[utoipa::path(get, path = "/api/tools", tag = "tools", params(ToolQuery),
    responses((status = 200, body = ToolList)))]
pub async fn list(cx: Cx) -> Result<Response, Problem> {
    let query: ToolQuery = input::query(&cx.query)?;
    let tenant = cx.caller()?.works_for(query.tenant)?;
    let tools = cx.kernel().tools(&tenant).await;
    Ok(Json(ToolList { tools: tools.into_iter().map(ToolView::from).collect() }).into_response())
}

/// What one kind of tool takes, answers with and fails with.
#[utoipa::path(get, path = "/api/tools/{kind}", tag = "tools", params(("kind" = String, Path), ToolQuery),
    responses((status = 200, body = ToolView)))]
pub async fn show(cx: Cx) -> Result<Response, Problem> {
    let query: ToolQuery = input::query(&cx.query)?;
    let tenant = cx.caller()?.works_for(query.tenant)?;
    let tool = cx.kernel().tool(&tenant, &cx.args.name).await?;
    Ok(Json(ToolView::from(tool)).into_response())
}
