//! Push: a component's bytes become a version.
//!
//! The bytes go to the payload store piece by piece. If the client goes away before the end, the store drops
//! what it has; once all bytes are there, the rest runs to its end whether the client waits or not.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use noetl_contract::{CapabilitySet, Ring};
use noetl_dispatch::{Push, PushError};
use noetl_registry::ChannelName;
use noetl_store::payloads::SealedPayload;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::app::{Cx, to_the_end};
use crate::body::{BodyReader, Bound};
use crate::input;
use crate::plugins::attest;
use crate::problem::Problem;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PushQuery {
    /// The channel to move to the version; `stable` when left out.
    #[param(value_type = Option<String>)]
    channel: Option<ChannelName>,
    /// A less trusted ring than path and privilege would give: `pure`, `user` or `tenant`.
    #[param(value_type = Option<String>)]
    ring: Option<Ring>,
    /// Capabilities the pusher agrees to although the running version does not have them: names joined by
    /// commas, or `all`.
    grant: Option<String>,
    /// Check everything and keep nothing.
    #[serde(default)]
    dry_run: bool,
    /// Why, for the history.
    #[serde(default)]
    reason: String,
}

/// What became of a push.
#[derive(ToSchema)]
#[schema(as = Pushed)]
#[expect(dead_code, reason = "only its schema is used; the kernel's own type is written")]
pub struct PushedView {
    path: String,
    version: String,
    digest: String,
    size: u64,
    ring: String,
    channel: String,
    capabilities: Vec<String>,
    /// Capabilities the version served before does not have.
    added: Vec<String>,
    /// Capabilities only the version served before has.
    removed: Vec<String>,
    /// Hosts (`http.allow`) that the version served before could not reach.
    added_hosts: Vec<String>,
    /// What the channel served before.
    previous: Option<String>,
    /// False when these bytes were this version already.
    created: bool,
    /// Public keys whose signatures of these bytes are known.
    signers: Vec<String>,
    /// True when nothing was kept.
    dry_run: bool,
    compile_ms: u64,
}

impl From<PushError> for Problem {
    fn from(error: PushError) -> Self {
        let problem = Problem::of(error.status(), error.code(), error.to_string());
        match error {
            PushError::NeedsGrant { added, hosts, .. } => {
                let hosts: Vec<_> = hosts.iter().map(|host| host.as_str()).collect();
                problem
                    .with("added", added.iter().map(|capability| capability.name()).collect::<Vec<_>>())
                    .with("added_hosts", hosts)
            }
            PushError::Unsigned(unsigned) => {
                problem.with("accepted", unsigned.accepted.iter().map(ToString::to_string).collect::<Vec<_>>())
            }
            _ => problem,
        }
    }
}

/// Push a component: the body is its bytes, with `plugin.toml` embedded. Each header `noetl-attestation` is a DSSE
/// envelope about these bytes, in base64.
#[utoipa::path(post, path = "/api/plugins", tag = "plugins", params(PushQuery),
    request_body(content = Vec<u8>, content_type = "application/wasm"),
    responses((status = 201, description = "a new version", body = PushedView),
        (status = 200, description = "these bytes were this version already, or nothing was to be kept", body = PushedView)))]
pub async fn push(mut cx: Cx) -> Result<Response, Problem> {
    let query: PushQuery = input::query(&cx.query)?;
    let grant = match query.grant.as_deref() {
        None => CapabilitySet::EMPTY,
        Some("all") => CapabilitySet::all(),
        Some(list) => input::capabilities("grant", list)?,
    };
    let attestations = attest::of_headers(&cx.headers)?;
    let component = receive(&mut cx).await?;
    let caller = cx.caller()?;
    let push = Push {
        component,
        channel: query.channel,
        privilege: caller.token.privilege,
        ring: query.ring,
        grant,
        attestations,
        dry_run: query.dry_run,
        reason: query.reason,
    };
    let (kernel, actor) = (cx.kernel().clone(), caller.actor());
    let pushed = to_the_end(async move { kernel.push(&actor, push).await }).await?;
    let status = if pushed.created && !pushed.dry_run { StatusCode::CREATED } else { StatusCode::OK };
    let mut response = (status, Json(&pushed)).into_response();
    if let Ok(location) = HeaderValue::from_str(&format!("/api/plugins/{}", pushed.path)) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

async fn receive(cx: &mut Cx) -> Result<SealedPayload, Problem> {
    let bound = Bound {
        bytes: cx.app.options.max_component_bytes,
        code: "component_too_large",
        key: Some("server.max_component_mb"),
    };
    let mut body = BodyReader::new(&cx.headers, cx.body.take(), bound, &cx.app.options)?;
    let mut writer = cx.kernel().payloads().writer().await.map_err(store_failed)?;
    while let Some(bytes) = body.next().await? {
        writer.write(&bytes).await.map_err(store_failed)?;
    }
    writer.seal().await.map_err(store_failed)
}

fn store_failed(error: std::io::Error) -> Problem {
    tracing::error!(%error, "the payload store refused a component");
    Problem::of(503, "store_unavailable", "the component could not be stored; the server's log says why")
}
