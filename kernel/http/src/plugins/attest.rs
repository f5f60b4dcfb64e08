//! What is said about a version: signed statements as they came, and more of them.
//!
//! With a push they come as headers, because the body is the component and nothing else. A statement has a few hundred
//! bytes; what does not fit a header is added after the push, in a body.

use axum::Json;
use axum::http::{HeaderMap, HeaderName};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use noetl_contract::Version;
use noetl_registry::ResolveError;
use noetl_registry::signatures::{Envelope, MAX_ENVELOPE_BYTES, MAX_ENVELOPES};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::app::{Cx, to_the_end};
use crate::input;
use crate::problem::Problem;

pub const ATTESTATION: HeaderName = HeaderName::from_static("noetl-attestation");

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct AttestationsQuery {
    #[param(value_type = String)]
    version: Version,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Attest {
    #[schema(value_type = String)]
    version: Version,
    /// DSSE envelopes about the version's bytes.
    #[schema(value_type = Vec<Object>)]
    attestations: Vec<Envelope>,
    /// Why, for the history.
    #[serde(default)]
    reason: String,
}

#[derive(Serialize, ToSchema)]
pub struct Attestations {
    path: String,
    version: String,
    digest: String,
    /// Public keys whose signatures hold.
    signers: Vec<String>,
    /// DSSE envelopes as they came.
    #[schema(value_type = Vec<Object>)]
    attestations: Vec<Envelope>,
}

impl Attestations {
    fn of(entry: &noetl_registry::Entry) -> Self {
        Self {
            path: entry.path.to_string(),
            version: entry.version.to_string(),
            digest: entry.digest.to_string(),
            signers: entry.signers.iter().map(ToString::to_string).collect(),
            attestations: entry.attestations.clone(),
        }
    }
}

/// What is said about a version, to be carried elsewhere.
#[utoipa::path(get, path = "/api/plugins/{path}:attestations", tag = "plugins",
    params(("path" = String, Path), AttestationsQuery), responses((status = 200, body = Attestations)))]
pub async fn read(cx: Cx) -> Result<Response, Problem> {
    let AttestationsQuery { version } = input::query(&cx.query)?;
    let path = cx.plugin()?;
    let view = cx.kernel().catalog().plugin(path).ok_or_else(|| ResolveError::NotFound(path.clone()))?;
    let known = view.versions.iter().map(|listed| listed.entry.version.clone()).collect();
    let listed = view.versions.iter().find(|listed| listed.entry.version == version);
    let listed = listed.ok_or(ResolveError::NoVersion { path: path.clone(), version, known })?;
    Ok(Json(Attestations::of(&listed.entry)).into_response())
}

/// Add signed statements to a version that is there.
#[utoipa::path(post, path = "/api/plugins/{path}:attest", tag = "plugins", params(("path" = String, Path)),
    request_body = Attest, responses((status = 200, body = Attestations)))]
pub async fn add(mut cx: Cx) -> Result<Response, Problem> {
    let most = (MAX_ENVELOPES * MAX_ENVELOPE_BYTES) as u64;
    let Attest { version, attestations, reason } = input::document_within(&mut cx, most).await?;
    let (kernel, actor, path) = (cx.kernel().clone(), cx.caller()?.actor(), cx.plugin()?.clone());
    let added = async move { kernel.catalog().attest(&actor, &path, &version, &attestations, &reason).await };
    let entry = to_the_end(added).await?;
    Ok(Json(Attestations::of(&entry)).into_response())
}

/// The envelopes that came as headers.
pub fn of_headers(headers: &HeaderMap) -> Result<Vec<Envelope>, Problem> {
    let wrong = |detail: String| {
        let detail = format!("header `{ATTESTATION}`: {detail}");
        Problem::invalid_field("invalid_attestation", ATTESTATION.as_str(), detail)
    };
    let given = headers.get_all(ATTESTATION).iter().map(|value| {
        let json = STANDARD.decode(value.as_bytes()).map_err(|error| wrong(format!("it is not base64: {error}")))?;
        Envelope::parse(&json).map_err(|error| wrong(error.to_string()))
    });
    let given: Vec<Envelope> = given.collect::<Result<_, _>>()?;
    if given.len() > MAX_ENVELOPES {
        return Err(wrong(format!("at most {MAX_ENVELOPES} of them")));
    }
    Ok(given)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_hold_no_envelope_are_named() {
        assert!(of_headers(&HeaderMap::new()).expect("none").is_empty());
        for wrong in ["%%%", "e30=", "bm90IGpzb24="] {
            let mut headers = HeaderMap::new();
            headers.insert(ATTESTATION, wrong.parse().expect("visible ASCII"));
            let problem = of_headers(&headers).expect_err(wrong);
            assert_eq!(problem.document("r")["field"], "noetl-attestation");
        }
    }
}
