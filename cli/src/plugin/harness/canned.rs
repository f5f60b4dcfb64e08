//! HTTP answers from a list. A test never reaches the network: a request without an answer is denied.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _};
use noetl_dispatch::http_client::{Outbound, OutboundError, OutboundRequest, OutboundResponse};

use super::protocol::HttpRespond;

#[derive(Debug, Default)]
pub struct Canned(Mutex<Vec<HttpRespond>>);

impl Canned {
    pub fn add(&self, answer: HttpRespond) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(answer);
    }

    /// The answer with the longest matching prefix, the newest of equals.
    fn find(&self, url: &str) -> Option<HttpRespond> {
        let answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // `max_by_key` takes the last of equals, and the newest is last.
        answers
            .iter()
            .filter(|answer| url.starts_with(&answer.url_prefix))
            .max_by_key(|answer| answer.url_prefix.len())
            .cloned()
    }
}

impl Outbound for Canned {
    fn send(&self, request: OutboundRequest) -> BoxFuture<'_, Result<OutboundResponse, OutboundError>> {
        let answer = self.find(&request.url);
        Box::pin(async move {
            let Some(answer) = answer else {
                return Err(OutboundError::Denied(format!("the test has no answer for {}", request.url)));
            };
            Ok(OutboundResponse {
                status: answer.status,
                headers: answer.headers,
                body: stream::once(async move { Ok(Bytes::from(answer.body)) }).boxed(),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(url_prefix: &str, status: u16) -> HttpRespond {
        HttpRespond { url_prefix: url_prefix.to_owned(), status, headers: vec![], body: String::new() }
    }

    #[test]
    fn the_longest_prefix_answers_and_the_newest_of_equals() {
        let canned = Canned::default();
        canned.add(answer("http://a/", 200));
        canned.add(answer("http://a/b", 201));
        canned.add(answer("http://a/", 202));
        let status = |url: &str| canned.find(url).map(|answer| answer.status);
        assert_eq!(status("http://a/x"), Some(202));
        assert_eq!(status("http://a/b/c"), Some(201));
        assert_eq!(status("http://c/"), None);
    }
}
