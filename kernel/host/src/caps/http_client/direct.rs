//! The real way out, on reqwest with rustls.
//!
//! Connections are kept for a short while and used again, for all plugins alike: each was made to an address that was
//! checked when it was made. Proxies of the environment are ignored, since a proxy resolves names by itself.
//!
//! Each open request takes one of a bounded number of slots, shared between tenants, from before its name is looked up
//! until its answer's body has been read or dropped: descriptors are the whole server's.

use std::error::Error;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::TryStreamExt;
use futures::future::BoxFuture;
use noetl_contract::Tenant;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::{Outbound, OutboundError, OutboundRequest, OutboundResponse};
use crate::egress::{Addresses, ResolveError, Resolver};
use crate::error::StartError;
use crate::fair::{Budget, Reservation};

/// Requests at once, of all tenants.
const MOST_REQUESTS: usize = 256;
/// Connections kept to one host, and for how long: enough for a loop over pages, and soon gone.
const KEPT_CONNECTIONS: usize = 4;
const KEPT_FOR: Duration = Duration::from_secs(15);

tokio::task_local! {
    /// Whose request is being sent. The connector asks the resolver for a name and nothing else; it does so where the
    /// request is polled.
    static WHOSE: Tenant;
}

/// Sends requests from this machine.
pub struct Direct {
    client: reqwest::Client,
    addresses: Addresses,
    requests: Budget,
}

impl Direct {
    pub fn new(addresses: Addresses) -> Result<Self, StartError> {
        // A second host in the same process finds the provider there already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .dns_resolver(Arc::new(Guarded(Resolver::new(addresses))))
            .pool_max_idle_per_host(KEPT_CONNECTIONS)
            .pool_idle_timeout(KEPT_FOR)
            .user_agent(concat!("noetl/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| StartError { doing: "make the HTTP client", reason: error.to_string() })?;
        Ok(Self { client, addresses, requests: Budget::new(0, 0, MOST_REQUESTS) })
    }

    /// A slot, and what is left of the time.
    async fn slot(&self, tenant: &Tenant, time: Duration) -> Result<(Reservation, Duration), OutboundError> {
        let began = Instant::now();
        let slot = tokio::time::timeout(time, self.requests.reserve(tenant, 0, 1, false)).await;
        Ok((slot.map_err(|_| OutboundError::Timeout)?, time.saturating_sub(began.elapsed())))
    }
}

impl Outbound for Direct {
    fn send(&self, request: OutboundRequest) -> BoxFuture<'_, Result<OutboundResponse, OutboundError>> {
        Box::pin(async move {
            let url = reqwest::Url::parse(&request.url).map_err(|error| OutboundError::Invalid(error.to_string()))?;
            self.check_literal(&url)?;
            let method =
                request.method.parse().map_err(|_| OutboundError::Invalid(format!("method `{}`", request.method)))?;
            let headers = headers(request.headers)?;
            let (slot, time) = self.slot(&request.tenant, request.timeout).await?;
            let mut builder = self.client.request(method, url).headers(headers).timeout(time);
            if let Some((size, body)) = request.body {
                builder = builder.header("content-length", size).body(reqwest::Body::wrap_stream(body));
            }
            let answer = WHOSE.scope(request.tenant, builder.send()).await.map_err(describe)?;
            let status = answer.status().as_u16();
            let headers = answer
                .headers()
                .iter()
                .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
                .collect();
            // The slot goes with the body.
            let body = answer.bytes_stream().map_err(move |error| {
                let _held = &slot;
                std::io::Error::other(chain(&error))
            });
            Ok(OutboundResponse { status, headers, body: Box::pin(body) })
        })
    }
}

impl Direct {
    /// An address written as digits never meets the resolver.
    fn check_literal(&self, url: &reqwest::Url) -> Result<(), OutboundError> {
        let literal =
            url.host_str().map(|host| host.trim_matches(['[', ']'])).and_then(|host| host.parse::<IpAddr>().ok());
        match literal {
            Some(address) => self.addresses.check(address).map_err(|error| OutboundError::Denied(error.to_string())),
            None => Ok(()),
        }
    }
}

fn headers(list: Vec<(String, String)>) -> Result<HeaderMap, OutboundError> {
    let mut map = HeaderMap::new();
    for (name, value) in list {
        let parsed_name: HeaderName =
            name.parse().map_err(|_| OutboundError::Invalid(format!("`{name}` is not a header name")))?;
        let value = HeaderValue::from_str(&value)
            .map_err(|_| OutboundError::Invalid(format!("the value of header `{name}`")))?;
        map.append(parsed_name, value);
    }
    Ok(map)
}

/// The resolver of the connector itself. A refusal travels through the connector's errors as it is.
struct Guarded(Resolver);

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = self.0.clone();
        // A connection that the client makes ahead of need is nobody's; it waits with the platform's own.
        let whose = WHOSE.try_with(Tenant::clone).unwrap_or_else(|_| Tenant::main());
        Box::pin(async move {
            let found = resolver.resolve(&whose, name.as_str(), 0).await?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

fn describe(error: reqwest::Error) -> OutboundError {
    if error.is_timeout() {
        return OutboundError::Timeout;
    }
    let mut source: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(current) = source {
        if let Some(ResolveError::Unreachable(refused)) = current.downcast_ref::<ResolveError>() {
            return OutboundError::Denied(refused.to_string());
        }
        source = current.source();
    }
    if error.is_builder() {
        return OutboundError::Invalid(chain(&error));
    }
    OutboundError::Failed(chain(&error))
}

fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(current) = source {
        text = format!("{text}: {current}");
        source = current.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::{FutureExt as _, StreamExt as _};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    fn request(url: &str) -> OutboundRequest {
        OutboundRequest {
            tenant: Tenant::main(),
            method: "GET".to_owned(),
            url: url.to_owned(),
            headers: Vec::new(),
            body: None,
            timeout: Duration::from_secs(60),
        }
    }

    #[tokio::test]
    async fn a_request_keeps_its_slot_until_its_body_is_read_or_dropped() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("bound"));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.read(&mut [0; 4096]).await;
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok").await;
            }
        });
        let mut direct = Direct::new(Addresses { private: true }).expect("a client");
        direct.requests = Budget::new(0, 0, 1);
        let free = |direct: &Direct| direct.slot(&Tenant::main(), Duration::from_secs(60)).now_or_never().is_some();
        let mut answer = direct.send(request(&url)).await.expect("answered");
        assert!(!free(&direct), "the body is not read yet");
        while let Some(piece) = answer.body.next().await {
            piece.expect("whole");
        }
        drop(answer);
        assert!(free(&direct));
        drop(direct.send(request(&url)).await.expect("answered"));
        assert!(free(&direct), "a body that nobody wants holds nothing");
    }
}
