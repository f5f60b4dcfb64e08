//! The tool `tools/http`: glue between the world `tool`, what a step asks for ([`http_common`]), how an answer is shown
//! ([`answer`]) and the host's HTTP client.
//!
//! Bodies stay with the host unless they are shown: a large or binary answer becomes the call's own body by reference. A
//! call that traps or times out has sent at most one request beside the redirects it followed, with the call's
//! idempotency key on it. A credential is used by its alias; its secrets never come here.

mod answer;
mod charset;

use http_common::Options;
use noetl_sdk::tool::{Request, Response};
use noetl_sdk::{Failure, log};

use answer::{Output, Shown};

noetl_sdk::tool!(call, include_str!("../describe.json"));

fn call(request: Request) -> Result<Response, Failure> {
    let plan = Options::read(&request.arguments)?.plan(request.body.is_some())?;
    let (method, response_type) = (plan.method.clone(), plan.response_type);
    let (repeatable, shows_redirects) = (plan.repeatable, plan.shows_redirects);
    let answer = plan.request(request.body)?.send().map_err(|error| failed(error.into(), repeatable))?;
    log::debug!("answered"; method = method, status = answer.status);

    let size = answer.body.size();
    let media_type = answer.header("content-type").filter(|said| !said.trim().is_empty());
    let shown = match answer::may_show(response_type, size) {
        true => answer::show(response_type, answer.status, media_type, answer.bytes()?)?,
        false => Shown::No,
    };
    let stays_out = shown.is_no();
    let media_type = media_type.unwrap_or("application/octet-stream").to_owned();
    let output = Output::new(answer.status, answer.headers, size, media_type, shown).repeatable(repeatable);
    let response = Response::json(&if shows_redirects { output } else { output.without_redirect() })?;
    Ok(if stays_out { response.with_body(answer.body) } else { response })
}

/// What went wrong. A request that may not be made twice is tried again only if it never left.
fn failed(failure: Failure, repeatable: bool) -> Failure {
    let never_left = matches!(failure.code.as_str(), "connect" | "dns");
    Failure { retryable: failure.retryable && (repeatable || never_left), ..failure }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_have_been_done_is_not_done_twice() {
        for (code, repeatable, expected) in [
            ("timeout", true, true),
            ("timeout", false, false),
            ("http_failed", false, false),
            ("connect", false, true),
            ("dns", false, true),
        ] {
            let failure = failed(Failure::retryable(code, "x"), repeatable);
            assert_eq!(failure.retryable, expected, "{code}, {repeatable}");
        }
        assert!(!failed(Failure::new("tls", "x"), true).retryable);
    }
}
