//! The tool `tools/http`: glue between the world `tool`, what a step asks for ([`options`], [`sent`], [`text`]), how an
//! answer is shown ([`answer`]) and the host's HTTP client.
//!
//! Bodies stay with the host unless they are shown: a large or binary answer becomes the call's own body by reference. A
//! call that traps or times out has sent at most one request beside the redirects it followed, with the call's
//! idempotency key on it. A credential is used by its alias; its secrets never come here.

mod answer;
mod options;
mod sent;
mod text;

use noetl_sdk::tool::{Request, Response};
use noetl_sdk::{Failure, http, log, secrets};

use answer::{Output, Shown};
use options::Options;
use sent::Sent;

noetl_sdk::tool!(call, include_str!("../describe.json"));

fn call(request: Request) -> Result<Response, Failure> {
    let plan = Options::read(&request.arguments)?.plan(request.body.is_some())?;

    let mut outgoing = http::Request::new(plan.method.as_str(), plan.url.as_str()).follow(plan.redirects);
    if let Some(alias) = &plan.credential {
        let login = secrets::headers(alias)?;
        let own = |name: &str| plan.headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        for (name, value) in login.into_iter().filter(|(name, _)| !own(name)) {
            outgoing = outgoing.header(name, value);
        }
    }
    for (name, value) in plan.headers {
        outgoing = outgoing.header(name, value);
    }
    if let Some(timeout) = plan.timeout {
        outgoing = outgoing.timeout(timeout);
    }
    if !plan.verified {
        outgoing = outgoing.unverified();
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
    let shown = match answer::may_show(plan.response_type, size) {
        true => answer::show(plan.response_type, answer.status, &media_type, answer.bytes()?)?,
        false => Shown::No,
    };
    let stays_out = shown.is_no();
    let output = Output::new(answer.status, answer.headers, size, media_type, shown);
    let response = Response::json(&output)?;
    Ok(if stays_out { response.with_body(answer.body) } else { response })
}
