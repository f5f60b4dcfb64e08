//! What happens around every handler: request id, span, access check, panic, metrics, common headers.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use axum::response::Response;
use futures::FutureExt;
use tracing::{Instrument, Span, field};

use crate::app::{App, Cx};
use crate::auth::{self, Access, Caller};
use crate::body::Incoming;
use crate::executions;
use crate::problem::{Problem, Reader};
use crate::routes::{self, Found, UNMATCHED};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longer ids, or ones with other characters, are replaced: they end up in logs.
const LONGEST_ID: usize = 128;

/// Answer one request. Never fails and never panics.
pub async fn handle(app: Arc<App>, request: Request<Body>) -> Response {
    let started = Instant::now();
    let id = request_id(request.headers());
    let method = request.method().clone();
    let found = routes::find(&method, request.uri().path());
    let route = if let Found::Row(route, _) = &found { route.template } else { UNMATCHED };
    let span = tracing::info_span!("request", %method, route, request_id = %id, tenant = field::Empty);

    let answer =
        AssertUnwindSafe(answer(app.clone(), request, found, &id, &span)).catch_unwind().instrument(span.clone());
    let outcome = answer.await.unwrap_or_else(|panic| Err(Problem::internal(panic_message(&*panic))));
    let problem = outcome.as_ref().err().map(Problem::code);
    let mut response = outcome.unwrap_or_else(|problem| problem.respond(&id));
    complete(&mut response, &id);

    let elapsed = started.elapsed();
    app.metrics.observe(route, &method, response.status(), elapsed);
    let (status, duration_us) = (response.status().as_u16(), elapsed.as_micros() as u64);
    // Probes and scrapes come every few seconds and say nothing new.
    if matches!(route, "/health" | "/ready" | "/metrics") {
        tracing::debug!(parent: &span, status, problem, duration_us, "answered");
    } else {
        tracing::info!(parent: &span, status, problem, duration_us, "answered");
    }
    response
}

async fn answer(
    app: Arc<App>,
    request: Request<Body>,
    found: Found,
    id: &str,
    span: &Span,
) -> Result<Response, Problem> {
    let (route, args) = match found {
        Found::Row(route, args) => (route, args),
        Found::OtherMethods(allowed) => return Err(method_not_allowed(request.method(), &allowed)),
        Found::Nothing => return Err(unknown_route()),
    };
    let (parts, body) = request.into_parts();
    // From here on a refusal throws away what the client still sends.
    let body = Incoming::new(body);
    let caller = authenticate(&app, route.access, &parts.headers)?;
    if let Some(tenant) = caller.as_ref().and_then(Caller::tenant) {
        span.record("tenant", tenant.as_str());
    }
    let args = args.check()?;
    if let Some(caller) = &caller {
        caller.check(route.access, args.plugin.as_ref())?;
        if let (Access::Watch | Access::Steer, Some(execution)) = (route.access, args.execution) {
            executions::check_owner(&app.kernel, caller, execution).await?;
        }
    }
    let query = parts.uri.query().unwrap_or_default().to_owned();
    let (request_id, reader) = (id.to_owned(), Reader::of(caller.as_ref()));
    let cx = Cx { app, caller, args, query, headers: parts.headers, request_id, body, room: None };
    (route.handler)(cx).await.map_err(|problem| problem.read_by(reader))
}

/// Who asks; none where nobody has to say, and for a service, which is nobody in particular.
fn authenticate(app: &App, access: Access, headers: &HeaderMap) -> Result<Option<Caller>, Problem> {
    let caller = || Caller::authenticate(headers, app.kernel.tokens());
    match access {
        Access::Open => Ok(None),
        Access::Scrape if app.metrics_open => Ok(None),
        Access::Service => {
            let expected = app.options.internal_token.as_deref();
            if expected.is_some_and(|expected| auth::is_service(headers, expected)) {
                return Ok(None);
            }
            caller().map(Some).map_err(|_| auth::refused_service(expected.is_some()))
        }
        _ => caller().map(Some),
    }
}

fn method_not_allowed(method: &Method, allowed: &[&Method]) -> Problem {
    let allowed = allowed.iter().map(|method| method.as_str()).collect::<Vec<_>>().join(", ");
    let detail = format!("`{method}` is not possible here; use {allowed}");
    let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail);
    match HeaderValue::from_str(&allowed) {
        Ok(value) => problem.header(header::ALLOW, value),
        Err(_) => problem,
    }
}

fn unknown_route() -> Problem {
    let detail = "there is nothing at this address; `/api/openapi.json` describes what there is";
    Problem::new(StatusCode::NOT_FOUND, "unknown_route", detail)
}

/// The caller's own id where it is fit for a log, else a random one.
fn request_id(headers: &HeaderMap) -> String {
    let given = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok());
    let fits = |id: &&str| {
        (1..=LONGEST_ID).contains(&id.len())
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
    };
    given.filter(fits).map_or_else(random_id, str::to_owned)
}

fn random_id() -> String {
    let mut raw = [0; 16];
    // Without randomness the id is all zero, which is no reason to refuse a request.
    let _ = getrandom::fill(&mut raw);
    hex::encode(raw)
}

fn complete(response: &mut Response, id: &str) {
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(id) {
        headers.insert(REQUEST_ID, id);
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("a handler panicked: {}", text.unwrap_or_else(|| "without a message".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id_for(given: &'static str) -> String {
        let mut headers = HeaderMap::new();
        headers.insert(REQUEST_ID, HeaderValue::from_static(given));
        request_id(&headers)
    }

    #[test]
    fn a_fit_request_id_is_kept_and_any_other_is_replaced() {
        assert_eq!(id_for("abc-1.2_3"), "abc-1.2_3");
        assert_eq!(id_for("a b\tc").len(), 32);
        assert_eq!(id_for("").len(), 32);
        assert_ne!(request_id(&HeaderMap::new()), request_id(&HeaderMap::new()));
    }

    #[tokio::test]
    async fn the_answer_carries_the_id_and_is_not_cached() {
        let mut response = unknown_route().respond("r1");
        complete(&mut response, "r1");
        assert_eq!(response.headers()[REQUEST_ID], "r1");
        assert_eq!(response.headers()[header::CACHE_CONTROL], "no-store");
        let bytes = axum::body::to_bytes(response.into_body(), 1 << 16).await.expect("short");
        assert!(String::from_utf8_lossy(&bytes).contains("/api/openapi.json"));
    }

    #[test]
    fn a_wrong_method_names_the_right_ones() {
        let response = method_not_allowed(&Method::PUT, &[&Method::GET, &Method::POST]).respond("r1");
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(response.headers()[header::ALLOW], "GET, POST");
    }
}
