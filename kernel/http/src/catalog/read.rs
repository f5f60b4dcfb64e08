//! What playbooks there are: list, one with its text, all versions of one.

use axum::Json;
use axum::response::{IntoResponse, Response};
use noetl_contract::Tenant;
use noetl_registry::playbooks::{PlaybookError, PlaybookFilter, PlaybookPath};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::EntryView;
use crate::app::Cx;
use crate::input;
use crate::problem::Problem;
use crate::values::Version;

const USUAL_LIMIT: u32 = 100;
const HIGHEST_LIMIT: u32 = 1000;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// Only paths that start with this text.
    prefix: Option<String>,
    kind: Option<String>,
    /// Also paths all of whose versions are archived.
    #[serde(default)]
    archived: bool,
    /// 100 when left out, at most 1000.
    limit: Option<u32>,
    /// `next` of the page before.
    cursor: Option<String>,
    /// The token's own tenant when left out; an administrator names one, or means `main`.
    #[param(value_type = Option<String>)]
    tenant: Option<Tenant>,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ShowQuery {
    /// A number, or `latest`, which is what leaving it out means.
    #[param(value_type = Option<String>)]
    version: Option<Version>,
    #[param(value_type = Option<String>)]
    tenant: Option<Tenant>,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct VersionsQuery {
    #[param(value_type = Option<String>)]
    tenant: Option<Tenant>,
}

#[derive(Serialize, ToSchema)]
pub struct EntryPage {
    /// The newest version of each path, by path.
    entries: Vec<EntryView>,
    /// Give it as `cursor` for the next page; none on the last one.
    next: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct EntryWithContent {
    #[serde(flatten)]
    entry: EntryView,
    /// The text as it was registered.
    content: String,
}

#[derive(Serialize, ToSchema)]
pub struct EntryVersions {
    path: String,
    /// Oldest first, archived ones too.
    versions: Vec<EntryView>,
}

/// List playbooks.
#[utoipa::path(get, path = "/api/catalog", tag = "catalog", params(ListQuery),
    responses((status = 200, body = EntryPage)))]
pub async fn list(cx: Cx) -> Result<Response, Problem> {
    let query: ListQuery = input::query(&cx.query)?;
    let limit = input::limit(query.limit, USUAL_LIMIT, HIGHEST_LIMIT)?;
    let tenant = cx.caller()?.works_for(query.tenant)?;
    let after = query.cursor.map(PlaybookPath::new).transpose().map_err(|_| {
        let detail = "parameter `cursor`: take the `next` of an earlier answer, or none for the first page";
        Problem::invalid_field("invalid_parameter", "cursor", detail)
    })?;
    let filter = PlaybookFilter { prefix: query.prefix, kind: query.kind, include_archived: query.archived };
    let page = cx.engine().playbooks().list(&tenant, &filter, after.as_ref(), limit);
    let entries = page.entries.iter().map(|entry| EntryView::from(entry.as_ref())).collect();
    Ok(Json(EntryPage { entries, next: page.next.map(|path| path.to_string()) }).into_response())
}

/// Read one playbook with its text.
#[utoipa::path(get, path = "/api/catalog/{path}", tag = "catalog",
    params(("path" = String, Path, description = "path of the playbook, with its slashes"), ShowQuery),
    responses((status = 200, body = EntryWithContent)))]
pub async fn show(cx: Cx) -> Result<Response, Problem> {
    let query: ShowQuery = input::query(&cx.query)?;
    let tenant = cx.caller()?.works_for(query.tenant)?;
    let version = query.version.and_then(|version| version.0);
    let (path, playbooks) = (cx.playbook()?, cx.engine().playbooks());
    let Some(entry) = playbooks.resolve(&tenant, path, version) else {
        return Err(missing(playbooks.versions(&tenant, path).last().map(|entry| entry.version), path, version));
    };
    let content = playbooks.content(&entry.digest).await?;
    let content = String::from_utf8_lossy(&content).into_owned();
    Ok(Json(EntryWithContent { entry: EntryView::from(entry.as_ref()), content }).into_response())
}

/// List all versions of a playbook.
#[utoipa::path(get, path = "/api/catalog/{path}:versions", tag = "catalog",
    params(("path" = String, Path), VersionsQuery), responses((status = 200, body = EntryVersions)))]
pub async fn versions(cx: Cx) -> Result<Response, Problem> {
    let query: VersionsQuery = input::query(&cx.query)?;
    let tenant = cx.caller()?.works_for(query.tenant)?;
    let path = cx.playbook()?;
    let versions = cx.engine().playbooks().versions(&tenant, path);
    if versions.is_empty() {
        return Err(missing(None, path, None));
    }
    let versions = versions.iter().map(|entry| EntryView::from(entry.as_ref())).collect();
    Ok(Json(EntryVersions { path: path.to_string(), versions }).into_response())
}

/// Tells a path that is not there from a version that is not.
fn missing(newest: Option<u32>, path: &PlaybookPath, version: Option<u32>) -> Problem {
    let path = path.clone();
    match (newest, version) {
        (Some(newest), Some(version)) => PlaybookError::NoVersion { path, version, newest }.into(),
        _ => PlaybookError::NoPlaybook(path).into(),
    }
}
