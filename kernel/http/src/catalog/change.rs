//! Playbooks go and come back.
//!
//! Deleting archives: the path alone does not lead there any more, a version that is named still does, and what runs
//! goes on. `purge=true` removes for good, and only what nothing runs.

use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse, Response};
use noetl_contract::Tenant;
use noetl_dispatch::Kernel;
use noetl_registry::playbooks::{CatalogId, PlaybookPath};
use noetl_store::projections::{ListQuery, MOST, PathFilter};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::app::{Cx, to_the_end};
use crate::engine::{settled, tables};
use crate::input;
use crate::problem::Problem;
use crate::values::Version;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RemoveQuery {
    /// Only this version; all when left out.
    #[param(value_type = Option<u32>)]
    version: Option<Version>,
    /// Remove for good. Refused while an execution runs it.
    #[serde(default)]
    purge: bool,
    /// The token's own tenant when left out; an administrator names one, or means `main`.
    #[param(value_type = Option<String>)]
    tenant: Option<Tenant>,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RestoreQuery {
    /// Only this version; all when left out.
    #[param(value_type = Option<u32>)]
    version: Option<Version>,
    #[param(value_type = Option<String>)]
    tenant: Option<Tenant>,
}

#[derive(Serialize, ToSchema)]
pub struct ChangedEntries {
    /// `archived`, `deleted` or `restored`.
    status: &'static str,
    path: String,
    /// What was changed; a version that was so already is not among it.
    changed: Vec<EntryName>,
    count: usize,
}

#[derive(Serialize, ToSchema)]
pub struct EntryName {
    catalog_id: String,
    version: u32,
}

/// Archive a playbook or one of its versions, or remove it for good.
#[utoipa::path(delete, path = "/api/catalog/{path}", tag = "catalog", params(("path" = String, Path), RemoveQuery),
    responses((status = 200, body = ChangedEntries)))]
pub async fn remove(cx: Cx) -> Result<Response, Problem> {
    let query: RemoveQuery = input::query(&cx.query)?;
    let tenant = cx.caller()?.works_for(query.tenant)?;
    let version = query.version.and_then(|version| version.0);
    let (path, actor) = (cx.playbook()?.clone(), cx.caller()?.actor_for(&tenant));
    // Whoever may not change the platform's own is refused below, and learns nothing about who runs it.
    if query.purge && (actor.tenant.is_none() || !path.is_shared()) {
        check_unused(cx.kernel(), &tenant, &path, version).await?;
    }
    let (kernel, name, purge) = (cx.kernel().clone(), path.clone(), query.purge);
    let changed = to_the_end(async move {
        let playbooks = kernel.engine().playbooks();
        match purge {
            true => playbooks.delete(&actor, &tenant, &name, version).await,
            false => playbooks.archive(&actor, &tenant, &name, version).await,
        }
    });
    Ok(answer(if purge { "deleted" } else { "archived" }, &path, &changed.await?))
}

/// Bring back what was archived.
#[utoipa::path(post, path = "/api/catalog/{path}:restore", tag = "catalog", params(("path" = String, Path), RestoreQuery),
    responses((status = 200, body = ChangedEntries)))]
pub async fn restore(cx: Cx) -> Result<Response, Problem> {
    let query: RestoreQuery = input::query(&cx.query)?;
    let tenant = cx.caller()?.works_for(query.tenant)?;
    let version = query.version.and_then(|version| version.0);
    let (path, actor) = (cx.playbook()?.clone(), cx.caller()?.actor_for(&tenant));
    let (kernel, name) = (cx.kernel().clone(), path.clone());
    let changed =
        to_the_end(async move { kernel.engine().playbooks().restore(&actor, &tenant, &name, version).await }).await?;
    Ok(answer("restored", &path, &changed))
}

fn answer(status: &'static str, path: &PlaybookPath, changed: &[CatalogId]) -> Response {
    let name = |id: &CatalogId| EntryName { catalog_id: id.to_string(), version: id.version };
    let changed: Vec<_> = changed.iter().map(name).collect();
    Json(ChangedEntries { status, path: path.to_string(), count: changed.len(), changed }).into_response()
}

/// Refuses when an execution runs the version. One that starts right after this is not harmed: it has its text by
/// the digest, which stays.
async fn check_unused(
    kernel: &Arc<Kernel>,
    tenant: &Tenant,
    path: &PlaybookPath,
    version: Option<u32>,
) -> Result<(), Problem> {
    settled(kernel).await?;
    let mut query = ListQuery {
        // What is everybody's may be run by anybody.
        tenant: (!path.is_shared()).then(|| tenant.to_string()),
        path: Some(PathFilter::Is(path.to_string())),
        status: Some("RUNNING".to_owned()),
        size: MOST,
        ..ListQuery::default()
    };
    loop {
        let asked = query.clone();
        let page = tables(kernel, move |tables| tables.executions(&asked)).await?;
        let runs = page.rows.iter().find(|row| version.is_none() || row.playbook_version == version);
        if let Some(row) = runs {
            let detail = format!(
                "execution {} runs `{path}`: cancel it or wait for its end, or archive the playbook without `purge`",
                row.execution
            );
            return Err(Problem::of(409, "playbook_in_use", detail));
        }
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => return Ok(()),
        }
    }
}
