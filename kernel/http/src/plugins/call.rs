//! Call: bytes or JSON in, bytes or JSON out.
//!
//! A transform takes the body as it is and answers bytes; a tool takes a JSON object and answers JSON. Which
//! of the two a plugin is, its manifest says, so that a transform can be given JSON as bytes too.
//!
//! The body of a call can be large. It goes to a file as it arrives and is read when the call has its room, so that
//! slow and waiting callers hold no memory. A tool's JSON is read whole, and is therefore bounded lower: bulk belongs
//! beside it.
//!
//! If the client goes away the call is dropped: what it staged is not applied.

use axum::Json;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use noetl_contract::manifest::World;
use noetl_contract::{Digest, PluginPath, Tenant, Version};
use noetl_dispatch::{Call, CallInput, CallOutput, Payload, Reply, Script, Writer};
use noetl_registry::{ChannelName, Selector, Source};
use serde::Deserialize;
use serde_json::json;
use utoipa::{IntoParams, ToSchema};

use crate::app::Cx;
use crate::body::{self, BodyReader, Bound};
use crate::input;
use crate::problem::Problem;

/// Largest JSON object of a tool's arguments.
const MAX_ARGUMENTS_BYTES: u64 = 64 << 20;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct CallQuery {
    /// Exactly this version, leaving bindings and pins aside.
    #[param(value_type = Option<String>)]
    version: Option<Version>,
    #[param(value_type = Option<String>)]
    channel: Option<ChannelName>,
    /// The tenant to call for. A tenant's token calls for its own; an administrator who names none calls for
    /// the owner of the path, or for `main`.
    #[param(value_type = Option<String>)]
    tenant: Option<Tenant>,
    /// Only these capabilities, joined by commas, or `none`; all of its grant when left out.
    capabilities: Option<String>,
    /// For a tool: its arguments as JSON, when the body of the request is to be the tool's bulk input.
    arguments: Option<String>,
    /// For a tool: what to answer with, its `output` (the default) or the `body` it attached.
    #[param(inline)]
    answer: Option<Part>,
}

/// Which part of a tool's answer is wanted.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    #[default]
    Output,
    Body,
}

/// Call a plugin.
///
/// A transform takes any bytes and answers bytes; a tool takes a JSON object and answers JSON. The headers
/// `noetl-plugin-path`, `noetl-plugin-version`, `noetl-plugin-digest`, `noetl-resolved-by`, `noetl-call` and
/// `noetl-duration-us` say what answered. `idempotency-key` makes staged effects of a repeated call apply once.
#[utoipa::path(post, path = "/api/plugins/{path}:call", tag = "plugins", params(("path" = String, Path), CallQuery),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, description = "the answer", body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 422, description = "the plugin's own failure (`plugin_failure`)"),
        (status = 502, description = "the plugin broke off: trap, memory, output, quota, skew"),
        (status = 503, description = "quarantined, or its bytes are not there"),
        (status = 504, description = "the plugin took too long")))]
pub async fn call(mut cx: Cx) -> Result<Response, Problem> {
    let query: CallQuery = input::query(&cx.query)?;
    let part = query.answer.unwrap_or_default();
    let call = asked(&mut cx, query).await?;
    let reply = cx.kernel().call(call).await?;
    answer(reply, part, &cx)
}

/// Call a plugin and write down what it was given, what it asked of the host and what it answered: a case.
///
/// The case is for `noetl plugin test`; secrets in it are masked. It shows what the plugin reads and sends, so it needs a
/// token that may change the plugin. A failure of the plugin is an outcome like another.
#[utoipa::path(post, path = "/api/plugins/{path}:record", tag = "plugins", params(("path" = String, Path), CallQuery),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, description = "the case", body = Object)))]
pub async fn record(mut cx: Cx) -> Result<Response, Problem> {
    let query: CallQuery = input::query(&cx.query)?;
    let call = asked(&mut cx, query).await?;
    let (reply, case) = cx.kernel().record(call).await?;
    let mut response = Json(case).into_response();
    describe(response.headers_mut(), &reply.path, &reply.version, &reply.digest, reply.source);
    response.headers_mut().insert("noetl-duration-us", reply.duration_us.into());
    Ok(response)
}

/// The call a request is for.
async fn asked(cx: &mut Cx, query: CallQuery) -> Result<Call, Problem> {
    let service = cx.plugin()?.clone();
    let tenant = cx.caller()?.acts_for(query.tenant)?;
    let tenant = tenant.or_else(|| service.owner()).unwrap_or_else(Tenant::main);
    let capabilities = query.capabilities.map(|list| input::capabilities("capabilities", &list)).transpose()?;
    let selector = Selector { channel: query.channel, version: query.version };
    // Refuses an unknown plugin before its input is read, and tells what the input is.
    let world = cx.kernel().catalog().resolve(&tenant, &service, &selector)?.entry.manifest.world;

    let input = match world {
        World::Transform => CallInput::Bulk(receive(cx).await?),
        World::Tool => match query.arguments {
            Some(given) => {
                let arguments = arguments(given.into())?;
                CallInput::Json { arguments, body: Some(receive(cx).await?) }
            }
            None => {
                let bytes = cx.app.options.max_call_bytes.min(MAX_ARGUMENTS_BYTES);
                let bound = Bound { bytes, code: "call_too_large", key: None };
                CallInput::Json { arguments: arguments(body::whole(cx, bound).await?)?, body: None }
            }
        },
        _ => {
            let detail = format!("`{service}` is a service of the engine: only the engine itself calls it");
            return Err(Problem::of(422, "other_world", detail));
        }
    };
    let idempotency_key = idempotency_key(&cx.headers)?;
    let script = Script::Live;
    Ok(Call { tenant, service, selector, capabilities, input, idempotency_key, attempt: 1, script })
}

async fn receive(cx: &mut Cx) -> Result<Payload, Problem> {
    let bound = Bound { bytes: cx.app.options.max_call_bytes, code: "call_too_large", key: Some("server.max_call_mb") };
    let mut body = BodyReader::new(&cx.headers, cx.body.take(), bound, &cx.app.options)?;
    let payloads = cx.kernel().payloads();
    let mut writer = Writer::new(media_type(&cx.headers).to_str().unwrap_or_default(), bound.bytes);
    while let Some(bytes) = body.next().await? {
        writer.write(payloads, &bytes).await.map_err(store_failed)?;
    }
    writer.finish().await.map_err(store_failed)
}

fn store_failed(error: impl std::fmt::Debug) -> Problem {
    tracing::error!(?error, "the payload store refused the body of a call");
    Problem::of(503, "store_unavailable", "the body of the call could not be stored; the server's log says why")
}

/// A tool's arguments: one JSON object. No body is an empty one.
fn arguments(bytes: Bytes) -> Result<String, Problem> {
    if bytes.is_empty() {
        return Ok("{}".to_owned());
    }
    let wrong = |detail: String| Problem::invalid_field("invalid_body", "body", detail);
    let text = String::from_utf8(bytes.into()).map_err(|_| wrong("the arguments are not UTF-8".to_owned()))?;
    let object: Result<std::collections::BTreeMap<String, serde::de::IgnoredAny>, _> = serde_json::from_str(&text);
    object.map_err(|error| wrong(format!("a tool takes one JSON object: {error}")))?;
    Ok(text)
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let key = value.to_str().ok().filter(|key| (1..=128).contains(&key.len()));
    key.map(|key| Some(key.to_owned())).ok_or_else(|| {
        let detail = "header `idempotency-key`: use 1 to 128 visible ASCII characters";
        Problem::invalid_field("invalid_parameter", "idempotency-key", detail)
    })
}

fn answer(reply: Reply, part: Part, cx: &Cx) -> Result<Response, Problem> {
    let Reply { path, version, digest, source, call, duration_us, outcome, .. } = reply;
    let about = |headers: &mut HeaderMap| {
        describe(headers, &path, &version, &digest, source);
        headers.insert("noetl-duration-us", duration_us.into());
        if let Ok(call) = HeaderValue::from_str(&call) {
            headers.insert("noetl-call", call);
        }
    };
    let mut response = match outcome {
        Ok(CallOutput::Bytes(bytes)) => {
            ([(header::CONTENT_TYPE, media_type(&cx.headers))], Body::from(bytes)).into_response()
        }
        Ok(CallOutput::Json { output, body }) => {
            let attached = body.as_ref().map(|body| (body.digest(), body.size()));
            let mut response = match (part, body) {
                (Part::Output, _) => ([(header::CONTENT_TYPE, "application/json")], output).into_response(),
                (Part::Body, Some(body)) => {
                    let media_type = HeaderValue::from_str(body.media_type()).map_err(Problem::internal)?;
                    let bytes = Body::from_stream(body.stream(cx.kernel().payloads().clone()));
                    ([(header::CONTENT_TYPE, media_type)], bytes).into_response()
                }
                (Part::Body, None) => {
                    ([(header::CONTENT_TYPE, "application/octet-stream")], Body::empty()).into_response()
                }
            };
            if let Some((digest, size)) = attached {
                let digest = HeaderValue::from_str(&digest.to_string()).map_err(Problem::internal)?;
                response.headers_mut().insert("noetl-body-digest", digest);
                response.headers_mut().insert("noetl-body-size", size.into());
            }
            response
        }
        Err(failure) => {
            let mut headers = HeaderMap::new();
            about(&mut headers);
            let detail = format!("`{path}` {version} answered with a failure: {}", failure.message);
            let failure = json!({"code": failure.code, "message": failure.message, "retryable": failure.retryable});
            let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "plugin_failure", detail);
            let problem = problem.with("failure", failure);
            return Err(headers.into_iter().fold(problem, |problem, (name, value)| match name {
                Some(name) => problem.header(name, value),
                None => problem,
            }));
        }
    };
    about(response.headers_mut());
    Ok(response)
}

/// What the bytes are, nobody here knows: the type the caller asks for if it is one, else the type it sent.
fn media_type(request: &HeaderMap) -> HeaderValue {
    let accepted = request
        .get(header::ACCEPT)
        .filter(|value| value.to_str().is_ok_and(|text| text.contains('/') && !text.contains(['*', ','])));
    let given = accepted.or_else(|| request.get(header::CONTENT_TYPE));
    given.cloned().unwrap_or(HeaderValue::from_static("application/octet-stream"))
}

/// Which version of which plugin an answer comes from.
pub fn describe(headers: &mut HeaderMap, path: &PluginPath, version: &Version, digest: &Digest, source: Source) {
    let texts = [
        ("noetl-plugin-path", path.to_string()),
        ("noetl-plugin-version", version.to_string()),
        ("noetl-plugin-digest", digest.to_string()),
        ("noetl-resolved-by", source.name().to_owned()),
    ];
    for (name, text) in texts {
        // All of them are checked names of visible ASCII.
        if let Ok(value) = HeaderValue::from_str(&text) {
            headers.insert(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_takes_one_json_object_and_nothing_else() {
        assert_eq!(arguments(Bytes::new()).expect("empty"), "{}");
        assert_eq!(arguments(Bytes::from_static(b"{\"a\": [1]}")).expect("object"), "{\"a\": [1]}");
        for wrong in [&b"[]"[..], b"1", b"{", b"{} {}", b"\xff"] {
            assert_eq!(arguments(Bytes::copy_from_slice(wrong)).expect_err("refused").code(), "invalid_body");
        }
    }

    #[test]
    fn the_answer_has_the_type_asked_for_or_the_type_sent() {
        let with = |pairs: &[(HeaderName, &'static str)]| {
            let headers = pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
            media_type(&headers.collect())
        };
        assert_eq!(with(&[]), "application/octet-stream");
        assert_eq!(with(&[(header::CONTENT_TYPE, "text/csv")]), "text/csv");
        assert_eq!(with(&[(header::CONTENT_TYPE, "text/csv"), (header::ACCEPT, "*/*")]), "text/csv");
        assert_eq!(with(&[(header::CONTENT_TYPE, "text/csv"), (header::ACCEPT, "image/png")]), "image/png");
        assert_eq!(with(&[(header::ACCEPT, "text/html, image/png")]), "application/octet-stream");
    }

    #[test]
    fn an_idempotency_key_has_a_bound() {
        let with = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(IDEMPOTENCY_KEY, value.parse().expect("valid"));
            idempotency_key(&headers)
        };
        assert_eq!(with("k1").expect("fits"), Some("k1".to_owned()));
        assert!(with(&"k".repeat(129)).is_err() && with("").is_err());
        assert_eq!(idempotency_key(&HeaderMap::new()).expect("absent"), None);
    }
}
