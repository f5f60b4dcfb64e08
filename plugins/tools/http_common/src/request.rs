//! A plan as a request of the host's client.
//!
//! A credential is used by its alias: its headers are placeholders, which the host replaces when the request leaves. A
//! header that the step gives wins over the credential's.

use noetl_sdk::payload::{self, Payload};
use noetl_sdk::{Failure, http, secrets};

use crate::options::Plan;
use crate::sent::Sent;

impl Plan {
    /// The request, ready to be sent; `body` is the call's own, for a plan that sends it.
    pub fn request(self, body: Option<Payload>) -> Result<http::Request, Failure> {
        let mut outgoing = http::Request::new(self.method, self.url).follow(self.redirects);
        if let Some(alias) = &self.credential {
            let login = secrets::headers(alias)?;
            let own = |name: &str| self.headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
            for (name, value) in login.into_iter().filter(|(name, _)| !own(name)) {
                outgoing = outgoing.header(name, value);
            }
        }
        outgoing = outgoing.headers(self.headers);
        if let Some(timeout) = self.timeout {
            outgoing = outgoing.timeout(timeout);
        }
        if !self.verified {
            outgoing = outgoing.unverified();
        }
        Ok(match (self.sent, body) {
            (Sent::Nothing, _) => outgoing,
            (Sent::Text { media_type, text }, _) => outgoing.body(payload::from_bytes(media_type, text.as_bytes())?),
            (Sent::Body, Some(body)) => outgoing.body(body),
            (Sent::Body, None) => return Err(Failure::invalid_input("the call has no body to send")),
        })
    }
}
