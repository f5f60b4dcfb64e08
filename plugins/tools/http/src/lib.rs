//! The tool `tools/http`: glue between the world `tool`, the pure [`exchange`] and the host's HTTP client.
//!
//! Bodies stay with the host unless they are small and text: a large answer becomes the call's own body by reference.
//! A call that traps or times out has sent at most one request beside the redirects it followed, with the call's
//! idempotency key on it.

mod exchange;

use std::time::Duration;

use noetl_sdk::tool::{Request, Response};
use noetl_sdk::{Failure, http, log};

use exchange::{Arguments, Inline, Output, Sent};

noetl_sdk::tool!(call);

fn call(request: Request) -> Result<Response, Failure> {
    let arguments: Arguments = request.parse()?;
    let plan = arguments.plan(request.body.is_some())?;

    let mut outgoing = http::Request::new(plan.method.as_str(), plan.url.as_str()).follow(plan.redirects);
    for (name, value) in plan.headers {
        outgoing = outgoing.header(name, value);
    }
    if let Some(timeout_ms) = plan.timeout_ms {
        outgoing = outgoing.timeout(Duration::from_millis(timeout_ms));
    }
    outgoing = match (plan.sent, request.body) {
        (Sent::Nothing, _) => outgoing,
        (Sent::Text { media_type, text }, _) => {
            outgoing.body(noetl_sdk::payload::from_bytes(media_type, text.as_bytes())?)
        }
        (Sent::Body, Some(body)) => outgoing.body(body),
        (Sent::Body, None) => return Err(Failure::invalid_input("the call has no body to send")),
    };
    let answer = outgoing.send()?;
    log::debug!("answered"; method = plan.method, status = answer.status);

    let size = answer.body.size();
    let media_type = answer.header("content-type").unwrap_or("application/octet-stream").to_owned();
    let inline = match exchange::may_inline(size) {
        true => exchange::inline(&media_type, answer.bytes()?),
        false => Inline::No,
    };
    let stays_out = matches!(inline, Inline::No);
    let output = Output::new(answer.status, answer.headers, size, media_type, inline);
    let response = Response::json(&output)?;
    Ok(if stays_out { response.with_body(answer.body) } else { response })
}
