//! Which credentials there are, one of them, and who has used it.

use std::collections::BTreeMap;

use axum::Json;
use axum::response::{IntoResponse, Response};
use noetl_contract::Tenant;
use noetl_registry::tokens::Right;
use noetl_store::wallet::{Audited, Use};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::CredentialView;
use crate::app::Cx;
use crate::input;
use crate::problem::Problem;

const HIGHEST_LIMIT: u32 = 1000;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// Only of this type.
    r#type: Option<String>,
    /// Only with this tag.
    tag: Option<String>,
    /// The token's own tenant when left out; an administrator who names none gets those of all.
    #[param(value_type = Option<String>)]
    tenant: Option<Tenant>,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ShowQuery {
    /// Answer with the values. Needs a token with the right `credential:reveal`, and is written into the audit.
    #[serde(default)]
    include_data: bool,
    /// What for, as the audit names it.
    execution_id: Option<String>,
    /// The token's own tenant when left out; an administrator names one, or means `main`.
    #[param(value_type = Option<String>)]
    tenant: Option<Tenant>,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct AuditQuery {
    /// 50 when left out, at most 1000.
    limit: Option<u32>,
    /// `next` of the page before.
    cursor: Option<u64>,
    #[param(value_type = Option<String>)]
    tenant: Option<Tenant>,
}

#[derive(Serialize, ToSchema)]
pub struct CredentialList {
    credentials: Vec<CredentialView>,
}

#[derive(Serialize, ToSchema)]
pub struct AuditPage {
    /// Newest first.
    uses: Vec<AuditLine>,
    /// Give it as `cursor` for the next page; none on the last one.
    next: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct AuditLine {
    id: String,
    at_ms: u64,
    /// `opened`, `revealed`, `refused` (for a host it is not for), `unknown`, `closed`, `added`, `changed` or `deleted`.
    event: String,
    /// The plugin that asked, or the name of the token.
    by: String,
    /// The call or request it asked in.
    call: String,
    /// Where the value was to go.
    target: String,
    revision: Option<u64>,
}

impl From<Audited> for AuditLine {
    fn from(line: Audited) -> Self {
        let Audited { id, time_ms, by, call, target, event, revision, .. } = line;
        Self { id: id.to_string(), at_ms: time_ms, event, by, call, target, revision }
    }
}

/// List credentials, without their values.
#[utoipa::path(get, path = "/api/credentials", tag = "credentials", params(ListQuery),
    responses((status = 200, body = CredentialList)))]
pub async fn list(cx: Cx) -> Result<Response, Problem> {
    let query: ListQuery = input::query(&cx.query)?;
    let tenant = cx.caller()?.acts_for(query.tenant)?;
    let mut records = cx.kernel().wallet().list(tenant).await?;
    records.retain(|record| query.r#type.as_ref().is_none_or(|wanted| record.kind == *wanted));
    records.retain(|record| query.tag.as_ref().is_none_or(|wanted| record.tags.contains(wanted)));
    let credentials = records.into_iter().map(CredentialView::from).collect();
    Ok(Json(CredentialList { credentials }).into_response())
}

/// One credential; its values only for who may see them.
#[utoipa::path(get, path = "/api/credentials/{name}", tag = "credentials", params(("name" = String, Path), ShowQuery),
    responses((status = 200, body = CredentialView)))]
pub async fn show(cx: Cx) -> Result<Response, Problem> {
    let query: ShowQuery = input::query(&cx.query)?;
    let caller = cx.caller()?;
    let tenant = caller.works_for(query.tenant)?;
    let alias = cx.args.name.clone();
    if !query.include_data {
        let record = cx.kernel().wallet().get(tenant, alias).await?;
        return Ok(Json(CredentialView::from(record)).into_response());
    }
    caller.needs_right(Right::CredentialReveal)?;
    let using = Use {
        tenant,
        alias,
        by: format!("token {}", caller.actor().name),
        call: query.execution_id.unwrap_or_else(|| cx.request_id.clone()),
        target: "this API".to_owned(),
    };
    let (record, credential) = cx.kernel().wallet().reveal(using).await?;
    let data: BTreeMap<String, String> = credential.fields.clone();
    Ok(Json(CredentialView { data, ..CredentialView::from(record) }).into_response())
}

/// Who used a credential, or tried to, and who changed it. Also of one that has been deleted.
#[utoipa::path(get, path = "/api/credentials/{name}/audit", tag = "credentials",
    params(("name" = String, Path), AuditQuery), responses((status = 200, body = AuditPage)))]
pub async fn audit(cx: Cx) -> Result<Response, Problem> {
    let query: AuditQuery = input::query(&cx.query)?;
    let tenant = cx.caller()?.works_for(query.tenant)?;
    let limit = input::limit(query.limit, 50, HIGHEST_LIMIT)?;
    let lines = cx.kernel().wallet().audit(tenant, cx.args.name.clone(), query.cursor, limit).await?;
    let next = if lines.len() == limit { lines.last().map(|line| line.id.to_string()) } else { None };
    let uses = lines.into_iter().map(AuditLine::from).collect();
    Ok(Json(AuditPage { uses, next }).into_response())
}
