//! Tokens over the API: who am I, create, list, revoke.
//!
//! A tenant's token manages the tokens of its own tenant, up to its own privilege; an administrator's manages
//! all. A token of another tenant is "not found" for a tenant, whether it exists or not.

use std::collections::BTreeSet;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use noetl_contract::{Ring, Tenant};
use noetl_registry::tokens::{NewToken, Right, TokenInfo};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::{Cx, now_ms, to_the_end};
use crate::input;
use crate::problem::Problem;

#[derive(Serialize, ToSchema)]
pub struct TokenView {
    id: String,
    name: String,
    /// The tenant it belongs to; `null` is an administrator's.
    tenant: Option<String>,
    /// `pure`, `user`, `tenant` or `system`: the highest ring a component pushed with it can get.
    privilege: &'static str,
    /// What it may do beyond its privilege, such as `credential:reveal`.
    rights: Vec<&'static str>,
    admin: bool,
    created_at_ms: u64,
    created_by: String,
    expires_at_ms: Option<u64>,
}

#[derive(Serialize, ToSchema)]
pub struct TokenList {
    tokens: Vec<TokenView>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateToken {
    /// What it is for; shown in the history of everything it changes.
    name: String,
    /// Whose it is. A tenant's token creates its own tenant's; an administrator who leaves it out creates an
    /// administrator's.
    #[schema(value_type = Option<String>)]
    tenant: Option<Tenant>,
    /// `pure`, `user`, `tenant` or `system`. Default: `user` for a tenant's, `system` for an administrator's.
    #[schema(value_type = Option<String>)]
    privilege: Option<Ring>,
    /// `credential:reveal`: what no privilege includes. Given by administrators of the privilege `system`, and by
    /// tokens that have it.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    rights: BTreeSet<Right>,
    /// Milliseconds since 1970; never when left out.
    expires_at_ms: Option<u64>,
}

#[derive(Serialize, ToSchema)]
pub struct CreatedToken {
    #[serde(flatten)]
    token: TokenView,
    /// The token itself. This is the only time it is shown.
    secret: String,
}

#[derive(Serialize, ToSchema)]
pub struct RevokedToken {
    id: String,
    revoked: bool,
    /// Whether it was the token of this very request, which is the last one it could make.
    own: bool,
    note: String,
}

impl From<&TokenInfo> for TokenView {
    fn from(info: &TokenInfo) -> Self {
        Self {
            id: info.id.clone(),
            name: info.name.clone(),
            tenant: info.tenant.as_ref().map(Tenant::to_string),
            privilege: info.privilege.name(),
            rights: info.rights.iter().map(|right| right.name()).collect(),
            admin: info.tenant.is_none(),
            created_at_ms: info.created_at_ms,
            created_by: info.created_by.clone(),
            expires_at_ms: info.expires_at_ms,
        }
    }
}

/// The token of this request.
#[utoipa::path(get, path = "/api/whoami", tag = "tokens", responses((status = 200, body = TokenView)))]
pub async fn whoami(cx: Cx) -> Result<Response, Problem> {
    Ok(Json(TokenView::from(&cx.caller()?.token)).into_response())
}

/// The tokens the caller may manage, without their secrets.
#[utoipa::path(get, path = "/api/tokens", tag = "tokens", responses((status = 200, body = TokenList)))]
pub async fn list(cx: Cx) -> Result<Response, Problem> {
    let caller = cx.caller()?;
    let visible = |info: &&TokenInfo| caller.is_admin() || info.tenant == caller.token.tenant;
    let tokens = cx.kernel().tokens().list().iter().filter(visible).map(TokenView::from).collect();
    Ok(Json(TokenList { tokens }).into_response())
}

/// Create a token.
#[utoipa::path(post, path = "/api/tokens", tag = "tokens", request_body = CreateToken,
    responses((status = 201, body = CreatedToken)))]
pub async fn create(mut cx: Cx) -> Result<Response, Problem> {
    let wanted: CreateToken = input::document(&mut cx).await?;
    let caller = cx.caller()?;
    let tenant = caller.acts_for(wanted.tenant)?;
    let usual = if tenant.is_some() { Ring::User } else { Ring::System };
    let privilege = wanted.privilege.unwrap_or(usual.min(caller.token.privilege));
    // A token that can only look cannot make others, and none makes one that outlives itself.
    caller.needs_privilege(Ring::User.max(privilege))?;
    wanted.rights.iter().try_for_each(|right| caller.may_give(*right))?;
    let expires_at_ms = match (wanted.expires_at_ms, caller.token.expires_at_ms) {
        (Some(wanted), Some(own)) => Some(wanted.min(own)),
        (wanted, own) => wanted.or(own),
    };
    if wanted.expires_at_ms.is_some_and(|at| at <= now_ms()) {
        let detail = "field `expires_at_ms`: this time has passed; use milliseconds since 1970";
        return Err(Problem::invalid_field("invalid_body", "expires_at_ms", detail));
    }
    let token = NewToken { name: wanted.name, tenant, privilege, rights: wanted.rights, expires_at_ms };

    let (kernel, actor) = (cx.kernel().clone(), caller.actor());
    let (info, secret) = to_the_end(async move { kernel.tokens().create(&actor, token).await }).await?;
    let created = CreatedToken { token: TokenView::from(&info), secret };
    Ok((StatusCode::CREATED, Json(created)).into_response())
}

/// Revoke a token; it is refused from this moment on.
#[utoipa::path(delete, path = "/api/tokens/{id}", tag = "tokens", params(("id" = String, Path)),
    responses((status = 200, body = RevokedToken)))]
pub async fn revoke(cx: Cx) -> Result<Response, Problem> {
    let caller = cx.caller()?;
    let id = cx.args.name.clone();
    let manageable = |info: &TokenInfo| caller.is_admin() || info.tenant == caller.token.tenant;
    let tokens = cx.kernel().tokens().list();
    let Some(info) = tokens.iter().find(|info| info.id == id && manageable(info)) else {
        let detail = "there is no token with this id among those you may manage; `GET /api/tokens` lists them";
        return Err(Problem::new(StatusCode::NOT_FOUND, "token_not_found", detail));
    };
    caller.needs_privilege(Ring::User.max(info.privilege))?;
    let own = info.id == caller.token.id;

    let (kernel, actor, info) = (cx.kernel().clone(), caller.actor(), info.clone());
    to_the_end(async move { kernel.tokens().revoke(&actor, &info.id).await }).await?;
    let note = if own {
        "this was the token of this request: it cannot be used again"
    } else {
        "the token is refused from now on"
    };
    Ok(Json(RevokedToken { id, revoked: true, own, note: note.to_owned() }).into_response())
}
