//! What is in the catalog: list, show, history.

use std::collections::BTreeMap;

use axum::Json;
use axum::response::{IntoResponse, Response};
use noetl_dispatch::Kernel;
use noetl_registry::{EntryFilter, Listed, PluginView, ResolveError};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::app::Cx;
use crate::auth::Caller;
use crate::input;
use crate::problem::Problem;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// Only paths that start with this text.
    prefix: Option<String>,
}

/// The versions the caller can see.
#[derive(Serialize, ToSchema)]
pub struct PluginList {
    /// By path and version: `{entry, channels, embedded}`.
    #[schema(value_type = Vec<Object>)]
    plugins: Vec<Listed>,
}

/// All about one path.
#[derive(Serialize, ToSchema)]
pub struct PluginPage {
    path: String,
    /// In the order of versions: `{entry, channels, embedded}`.
    #[schema(value_type = Vec<Object>)]
    versions: Vec<Listed>,
    /// What each channel serves.
    channels: BTreeMap<String, String>,
    /// Tenants that stay at a version.
    pins: BTreeMap<String, String>,
    /// Tenants for whom another plugin serves in the place of this one.
    bindings: BTreeMap<String, String>,
    /// Services this one serves, by tenant.
    serves: BTreeMap<String, Vec<String>>,
    /// Set while a version faulted too often and is not called.
    quarantine: Option<Quarantine>,
    /// Versions that are not served because a signature is missing, and what would be taken.
    unsigned: BTreeMap<String, String>,
}

#[derive(Serialize, ToSchema)]
pub struct Quarantine {
    /// For people: which versions, and for how long.
    reason: String,
    versions: Vec<String>,
}

#[derive(Serialize, ToSchema)]
pub struct History {
    /// Oldest first.
    history: Vec<ChangeView>,
    /// Why lines are left out, if they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    hidden: Option<&'static str>,
}

#[derive(Serialize, ToSchema)]
pub struct ChangeView {
    /// Place in the log; ids are strings.
    position: String,
    time_ms: u64,
    actor: String,
    what: String,
    reason: String,
}

/// List every version of every plugin the caller can see.
#[utoipa::path(get, path = "/api/plugins", tag = "plugins", params(ListQuery),
    responses((status = 200, body = PluginList)))]
pub async fn list(cx: Cx) -> Result<Response, Problem> {
    let query: ListQuery = input::query(&cx.query)?;
    let filter = EntryFilter { visible_to: cx.caller()?.tenant().cloned(), prefix: query.prefix };
    Ok(Json(PluginList { plugins: cx.kernel().catalog().entries(&filter) }).into_response())
}

/// Show one plugin: versions, channels, pins and bindings.
#[utoipa::path(get, path = "/api/plugins/{path}", tag = "plugins",
    params(("path" = String, Path, description = "plugin path, with its slashes")),
    responses((status = 200, body = PluginPage)))]
pub async fn show(cx: Cx) -> Result<Response, Problem> {
    input::query::<input::Nothing>(&cx.query)?;
    let path = cx.plugin()?;
    let view = cx.kernel().catalog().plugin(path).ok_or_else(|| ResolveError::NotFound(path.clone()))?;
    let (quarantine, unsigned) = (quarantine(cx.kernel(), &view), unsigned(cx.kernel(), &view));
    Ok(Json(PluginPage { quarantine, unsigned, ..page_for(view, cx.caller()?) }).into_response())
}

/// What happened to a plugin, by whom and why.
#[utoipa::path(get, path = "/api/plugins/{path}:history", tag = "plugins", params(("path" = String, Path)),
    responses((status = 200, body = History)))]
pub async fn history(cx: Cx) -> Result<Response, Problem> {
    input::query::<input::Nothing>(&cx.query)?;
    let (path, catalog) = (cx.plugin()?, cx.kernel().catalog());
    let changes = catalog.history(path);
    if changes.is_empty() && catalog.plugin(path).is_none() {
        return Err(ResolveError::NotFound(path.clone()).into());
    }
    if path.is_reserved() && !cx.caller()?.is_admin() {
        let hidden = Some("the history of the platform's own plugins names other tenants; administrators can read it");
        return Ok(Json(History { history: Vec::new(), hidden }).into_response());
    }
    let history = changes.into_iter().map(|change| ChangeView {
        position: change.position.to_string(),
        time_ms: change.time_ms,
        actor: change.actor,
        what: change.what,
        reason: change.reason,
    });
    Ok(Json(History { history: history.collect(), hidden: None }).into_response())
}

fn quarantine(kernel: &Kernel, view: &PluginView) -> Option<Quarantine> {
    let entries = view.versions.iter().map(|listed| &listed.entry);
    let closed: Vec<_> =
        entries.filter_map(|entry| Some((entry.version.to_string(), kernel.quarantined(&entry.digest)?))).collect();
    let longest = closed.iter().map(|(_, pause)| pause.as_secs() + 1).max()?;
    let versions: Vec<String> = closed.into_iter().map(|(version, _)| version).collect();
    let reason = format!("{} faulted too often in a row; called again in {longest} s", versions.join(", "));
    Some(Quarantine { reason, versions })
}

fn unsigned(kernel: &Kernel, view: &PluginView) -> BTreeMap<String, String> {
    let pushed = view.versions.iter().filter(|listed| !listed.embedded);
    pushed
        .filter_map(|listed| {
            Some((listed.entry.version.to_string(), kernel.lacks_signature(&listed.entry)?.to_string()))
        })
        .collect()
}

/// A tenant reads its own pins and bindings, not those of others.
fn page_for(view: PluginView, caller: &Caller) -> PluginPage {
    let visible = |tenant: &noetl_contract::Tenant| caller.tenant().is_none_or(|own| own == tenant);
    let texts = |paths: Vec<_>| paths.iter().map(ToString::to_string).collect();
    PluginPage {
        path: view.path.to_string(),
        versions: view.versions,
        channels: view.channels.iter().map(|(name, version)| (name.to_string(), version.to_string())).collect(),
        pins: (view.pins.iter().filter(|(tenant, _)| visible(tenant)))
            .map(|(tenant, version)| (tenant.to_string(), version.to_string()))
            .collect(),
        bindings: (view.bindings.iter().filter(|(tenant, _)| visible(tenant)))
            .map(|(tenant, to)| (tenant.to_string(), to.to_string()))
            .collect(),
        serves: (view.serves.into_iter().filter(|(tenant, _)| visible(tenant)))
            .map(|(tenant, services): (_, Vec<noetl_contract::ServiceName>)| (tenant.to_string(), texts(services)))
            .collect(),
        quarantine: None,
        unsigned: BTreeMap::new(),
    }
}
