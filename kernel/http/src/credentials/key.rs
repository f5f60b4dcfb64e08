//! The key that seals credentials: which it is, and the next one. It is one for all tenants, so it is the operator's.

use axum::Json;
use axum::response::{IntoResponse, Response};
use noetl_contract::Ring;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::{Cx, to_the_end};
use crate::input;
use crate::problem::Problem;

#[derive(Serialize, ToSchema)]
pub struct WalletStatus {
    /// Where the key comes from: `file`, `environment` or `command`.
    source: &'static str,
    /// The key that seals; made of a hash of it.
    kid: String,
    /// The keys that are held. More than one: a rotation has not ended.
    keys: Vec<WalletKey>,
    /// Credentials of all tenants.
    records: u64,
}

#[derive(Serialize, ToSchema)]
pub struct WalletKey {
    kid: String,
    records: u64,
}

#[derive(Serialize, ToSchema)]
pub struct WalletRotated {
    /// The key that everything is under now.
    kid: String,
    rewrapped: u64,
    /// Keys that nothing needs any more.
    retired: Vec<String>,
    /// Whether this was the rest of a rotation that had broken off, under the key that one had begun with.
    resumed: bool,
}

fn check(cx: &Cx) -> Result<(), Problem> {
    let _: input::Nothing = input::query(&cx.query)?;
    let caller = cx.caller()?;
    caller.needs_admin("the key of the wallet is one for all tenants: this")?;
    caller.needs_privilege(Ring::System)
}

/// Which keys the credentials are under.
#[utoipa::path(get, path = "/api/wallet/status", tag = "credentials", responses((status = 200, body = WalletStatus)))]
pub async fn status(cx: Cx) -> Result<Response, Problem> {
    check(&cx)?;
    let status = cx.kernel().wallet().status().await?;
    let keys = status.keys.into_iter().map(|key| WalletKey { kid: key.kid, records: key.records }).collect();
    Ok(Json(WalletStatus { source: status.source, kid: status.kid, keys, records: status.records }).into_response())
}

/// Bring all credentials under the next key. A key that is a file of the server's is made; one that comes from the
/// environment or from a command is the first of those that are given.
#[utoipa::path(post, path = "/api/wallet/rotate", tag = "credentials", responses((status = 200, body = WalletRotated)))]
pub async fn rotate(cx: Cx) -> Result<Response, Problem> {
    check(&cx)?;
    let kernel = cx.kernel().clone();
    let rotated = to_the_end(async move { kernel.wallet().rotate().await }).await?;
    let name = cx.caller()?.actor().name;
    tracing::info!(by = name, kid = rotated.kid, rewrapped = rotated.rewrapped, "the key of the wallet was changed");
    let answer = WalletRotated {
        kid: rotated.kid,
        rewrapped: rotated.rewrapped,
        retired: rotated.retired,
        resumed: rotated.resumed,
    };
    Ok(Json(answer).into_response())
}
