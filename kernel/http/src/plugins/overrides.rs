//! What a tenant sets for itself: stay at a version (pin), or put its own component in the place of a service
//! (bind).
//!
//! `version` and `to` must be there, if only as `null`: a body without them is more likely a slip than the
//! wish to remove what is set.

use axum::Json;
use axum::response::{IntoResponse, Response};
use noetl_contract::{PluginPath, Ring, Tenant, Version};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use crate::app::{Cx, to_the_end};
use crate::input;
use crate::problem::Problem;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// The token's own tenant when left out; an administrator names one, or means the owner of the path.
    #[schema(value_type = Option<String>)]
    tenant: Option<Tenant>,
    /// The version to stay at; `null` removes the pin.
    #[serde(deserialize_with = "stated")]
    #[schema(value_type = Option<String>, required = true)]
    version: Option<Version>,
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Bind {
    /// The token's own tenant when left out; an administrator names one, or means the owner of the path.
    #[schema(value_type = Option<String>)]
    tenant: Option<Tenant>,
    /// The tenant's component that serves from now on; `null` removes the binding.
    #[serde(deserialize_with = "stated")]
    #[schema(value_type = Option<String>, required = true)]
    to: Option<PluginPath>,
    #[serde(default)]
    reason: String,
}

#[derive(Serialize, ToSchema)]
pub struct Pinned {
    path: String,
    tenant: String,
    version: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct Bound {
    service: String,
    tenant: String,
    to: Option<String>,
}

/// `null` is a value, an absent field is not; serde's own reading of an option makes no difference.
fn stated<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer)
}

/// Keep a tenant at a version of a plugin, whatever its channels do.
#[utoipa::path(post, path = "/api/plugins/{path}:pin", tag = "plugins", params(("path" = String, Path)),
    request_body = Pin, responses((status = 200, body = Pinned)))]
pub async fn pin(mut cx: Cx) -> Result<Response, Problem> {
    let Pin { tenant, version, reason } = input::document(&mut cx).await?;
    let tenant = tenant_of(&cx, tenant)?;
    let (kernel, actor, path) = (cx.kernel().clone(), cx.caller()?.actor(), cx.plugin()?.clone());
    let pinned = Pinned {
        path: path.to_string(),
        tenant: tenant.to_string(),
        version: version.as_ref().map(Version::to_string),
    };
    to_the_end(async move { kernel.pin(&actor, &tenant, &path, version.as_ref(), &reason).await }).await?;
    Ok(Json(pinned).into_response())
}

/// Let a tenant's own component serve in the place of a service, for that tenant. Needs the privilege `tenant`.
#[utoipa::path(post, path = "/api/plugins/{path}:bind", tag = "plugins", params(("path" = String, Path)),
    request_body = Bind, responses((status = 200, body = Bound)))]
pub async fn bind(mut cx: Cx) -> Result<Response, Problem> {
    let Bind { tenant, to, reason } = input::document(&mut cx).await?;
    cx.caller()?.needs_privilege(Ring::Tenant)?;
    let tenant = tenant_of(&cx, tenant)?;
    let (kernel, actor, service) = (cx.kernel().clone(), cx.caller()?.actor(), cx.plugin()?.clone());
    let bound =
        Bound { service: service.to_string(), tenant: tenant.to_string(), to: to.as_ref().map(PluginPath::to_string) };
    to_the_end(async move { kernel.bind(&actor, &tenant, &service, to.as_ref(), &reason).await }).await?;
    Ok(Json(bound).into_response())
}

/// The tenant the change is for. Nothing says which one an administrator means by a path of the platform.
fn tenant_of(cx: &Cx, asked: Option<Tenant>) -> Result<Tenant, Problem> {
    let tenant = cx.caller()?.acts_for(asked)?;
    tenant
        .or_else(|| cx.plugin().ok()?.owner())
        .ok_or_else(|| Problem::invalid_field("invalid_body", "tenant", "field `tenant`: name the tenant this is for"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_removed_must_be_said() {
        let pin = |text: &str| serde_json::from_str::<Pin>(text).map(|pin| pin.version);
        assert_eq!(pin(r#"{"version": null}"#).expect("stated"), None);
        assert_eq!(pin(r#"{"version": "1.0.0"}"#).expect("stated"), Some(Version::new(1, 0, 0)));
        assert!(pin("{}").expect_err("absent").to_string().contains("version"));
    }
}
