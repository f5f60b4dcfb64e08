//! Fetch: the bytes of a version, by version or channel.
//!
//! The digest is the ETag, so whoever holds the bytes learns with one small request that they are still the
//! right ones. Bytes never change under a digest, so a match needs no further look.

use std::io;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::{Stream, StreamExt};
use noetl_contract::{Digest, Tenant, Version};
use noetl_registry::{BytesAt, ChannelName, Resolved, Selector};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use utoipa::IntoParams;

use crate::app::Cx;
use crate::input;
use crate::plugins::call::describe;
use crate::problem::Problem;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct FetchQuery {
    #[param(value_type = Option<String>)]
    version: Option<Version>,
    /// `stable` when neither this nor a version is given.
    #[param(value_type = Option<String>)]
    channel: Option<ChannelName>,
    /// What the caller expects; another digest is 409.
    #[param(value_type = Option<String>)]
    digest: Option<Digest>,
}

/// Fetch the bytes of a version.
#[utoipa::path(get, path = "/api/plugins/{path}:fetch", tag = "plugins", params(("path" = String, Path), FetchQuery),
    responses((status = 200, description = "the component", body = Vec<u8>, content_type = "application/wasm"),
        (status = 304, description = "`If-None-Match` named this digest")))]
pub async fn fetch(cx: Cx) -> Result<Response, Problem> {
    let query: FetchQuery = input::query(&cx.query)?;
    let path = cx.plugin()?;
    // What is fetched is this path itself: bindings and pins are about who serves calls.
    let tenant = path.owner().unwrap_or_else(Tenant::main);
    let version = match query.version {
        Some(version) => Some(version),
        None => Some(served(&cx, query.channel.unwrap_or_default())?),
    };
    let resolved = cx.kernel().catalog().resolve(&tenant, path, &Selector { channel: None, version })?;
    let digest = resolved.entry.digest;
    if query.digest.is_some_and(|expected| expected != digest) {
        let detail = format!("{path} {} has the digest {digest}, not the one asked for", resolved.entry.version);
        return Err(Problem::new(StatusCode::CONFLICT, "digest_mismatch", detail).with("digest", digest.to_string()));
    }
    if matches(&cx.headers, &digest) {
        return labelled(&resolved, StatusCode::NOT_MODIFIED, Body::empty());
    }
    let body = match resolved.bytes {
        BytesAt::Embedded(bytes) => Body::from(bytes),
        BytesAt::Payload => {
            let payloads = cx.kernel().payloads();
            let size = payloads.size(&digest).ok_or_else(|| {
                let detail = format!("the bytes {digest} are not in the store: push them again");
                Problem::of(503, "bytes_missing", detail)
            })?;
            Body::from_stream(checked(payloads.stream(&digest, 0..size), digest))
        }
    };
    labelled(&resolved, StatusCode::OK, body)
}

/// Breaks off before the end when the bytes are not those of the digest: a client must not take them for whole.
fn checked<S>(pieces: S, digest: Digest) -> impl Stream<Item = io::Result<Bytes>> + Send
where
    S: Stream<Item = io::Result<Bytes>> + Send + 'static,
{
    let state = (Box::pin(pieces), Sha256::new(), None::<Bytes>);
    futures::stream::try_unfold(state, move |(mut pieces, mut hasher, held)| async move {
        // One piece is held back, so that the last one is not sent before everything has been checked.
        match pieces.next().await.transpose()? {
            Some(piece) => {
                hasher.update(&piece);
                Ok(Some((held.unwrap_or_default(), (pieces, hasher, Some(piece)))))
            }
            None if held.is_none() => Ok(None),
            None if hasher.clone().finalize()[..] == digest.as_bytes()[..] => {
                Ok(Some((held.unwrap_or_default(), (pieces, hasher, None))))
            }
            None => Err(io::Error::other(format!("the stored bytes are not those of {digest}"))),
        }
    })
}

fn served(cx: &Cx, channel: ChannelName) -> Result<Version, Problem> {
    let path = cx.plugin()?;
    let view = cx.kernel().catalog().plugin(path);
    let view = view.ok_or_else(|| noetl_registry::ResolveError::NotFound(path.clone()))?;
    view.channels.get(&channel).cloned().ok_or_else(|| {
        let (path, known) = (path.clone(), view.channels.keys().cloned().collect());
        noetl_registry::ResolveError::NoChannel { path, channel, known }.into()
    })
}

fn labelled(resolved: &Resolved, status: StatusCode, body: Body) -> Result<Response, Problem> {
    let mut response = (status, body).into_response();
    let entry = &resolved.entry;
    let headers = response.headers_mut();
    if status == StatusCode::OK {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/wasm"));
        headers.insert(header::CONTENT_LENGTH, entry.size.into());
    }
    let etag = HeaderValue::from_str(&format!("\"{}\"", entry.digest)).map_err(Problem::internal)?;
    headers.insert(header::ETAG, etag);
    // A channel can move at any moment: keep the bytes, but ask.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    describe(headers, &entry.path, &entry.version, &entry.digest, resolved.source);
    Ok(response)
}

/// Whether `If-None-Match` names the digest: a list of tags, weak or strong, or `*`.
fn matches(headers: &HeaderMap, digest: &Digest) -> bool {
    let wanted = digest.to_string();
    let lists = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    lists
        .flat_map(|list| list.split(','))
        .map(str::trim)
        .any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag).trim_matches('"') == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_matches_in_every_form_the_standard_allows() {
        let digest = Digest::of(b"abc");
        let with = |value: String| {
            let mut headers = HeaderMap::new();
            headers.insert(header::IF_NONE_MATCH, value.parse().expect("valid"));
            matches(&headers, &digest)
        };
        assert!(with(format!("\"{digest}\"")));
        assert!(with(format!("W/\"{digest}\"")));
        assert!(with(format!("\"other\", \"{digest}\"")));
        assert!(with("*".to_owned()));
        assert!(!with(format!("\"{}\"", Digest::of(b"abd"))));
        assert!(!matches(&HeaderMap::new(), &digest));
    }
}
