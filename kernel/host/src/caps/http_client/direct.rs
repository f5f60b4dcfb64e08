//! The real way out, on reqwest with rustls.
//!
//! Connections are kept for a short while and used again by the same tenant ([`kept`]): each was made to an address that
//! was checked when it was made. Proxies of the environment are ignored, since a proxy resolves names by itself.
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
use rustls_platform_verifier::ConfigVerifierExt as _;

use super::{Outbound, OutboundError, OutboundRequest, OutboundResponse};
use crate::egress::{Addresses, ResolveError, Resolver};
use crate::error::StartError;
use crate::fair::{Budget, Reservation};

mod kept;

use kept::{KEPT_FOR, Keeping, Kept, OF_ORIGIN, Whose};

/// Requests at once, of all tenants.
const MOST_REQUESTS: usize = 256;

tokio::task_local! {
    /// Whose request is being sent. The connector asks the resolver for a name and nothing else; it does so where the
    /// request is polled.
    static WHOSE: Tenant;
}

/// Sends requests from this machine.
pub struct Direct {
    kept: Kept,
    /// For requests whose connections are not kept.
    once: reqwest::Client,
    /// The same without a look at certificates, where the operator permits that.
    careless: Option<reqwest::Client>,
    making: Making,
    addresses: Addresses,
    requests: Budget,
}

impl Direct {
    /// `insecure_tls`: whether requests may ask not to have the server's certificate verified.
    pub fn new(addresses: Addresses, insecure_tls: bool) -> Result<Self, StartError> {
        // A second host in the same process finds the provider there already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let failed = |reason: String| StartError { doing: "make the HTTP client", reason };
        let mut tls = rustls::ClientConfig::with_platform_verifier().map_err(|error| failed(error.to_string()))?;
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let making = Making { tls, resolver: Arc::new(Guarded(Resolver::new(addresses))) };
        let once = |verified| making.client(verified, 0).map_err(|error| failed(error.to_string()));
        Ok(Self {
            kept: Kept::default(),
            once: once(true)?,
            careless: insecure_tls.then(|| once(false)).transpose()?,
            making,
            addresses,
            requests: Budget::new(0, 0, MOST_REQUESTS),
        })
    }

    /// The client for a request, and what counts its origin as long as the request runs.
    fn client(
        &self,
        tenant: &Tenant,
        url: &reqwest::Url,
        verified: bool,
    ) -> Result<(reqwest::Client, Option<Keeping>), OutboundError> {
        let once = match (verified, &self.careless) {
            (true, _) => &self.once,
            (false, Some(careless)) => careless,
            (false, None) => {
                let denied = "the request wants the server's certificate not to be verified, which an operator can \
                              permit with `policy.insecure_tls`";
                return Err(OutboundError::Denied(denied.to_owned()));
            }
        };
        let whose = Whose { tenant: tenant.clone(), verified };
        let make = || self.making.client(verified, OF_ORIGIN);
        let kept = self.kept.client(&whose, url.origin().ascii_serialization(), make);
        Ok(match kept.map_err(|error| OutboundError::Failed(error.to_string()))? {
            Some((client, keeping)) => (client, Some(keeping)),
            None => (once.clone(), None),
        })
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
            let (client, keeping) = self.client(&request.tenant, &url, request.verified)?;
            let method =
                request.method.parse().map_err(|_| OutboundError::Invalid(format!("method `{}`", request.method)))?;
            let headers = headers(request.headers)?;
            let (slot, time) = self.slot(&request.tenant, request.timeout).await?;
            let mut builder = client.request(method, url).headers(headers).timeout(time);
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
                let _held = (&slot, &keeping);
                let kind = if error.is_timeout() { std::io::ErrorKind::TimedOut } else { std::io::ErrorKind::Other };
                std::io::Error::new(kind, chain(&error))
            });
            Ok(OutboundResponse { status, headers, body: Box::pin(body) })
        })
    }
}

/// What clients are made of. The certificates of the machine are read once for all of them.
struct Making {
    tls: rustls::ClientConfig,
    resolver: Arc<Guarded>,
}

impl Making {
    fn client(&self, verified: bool, kept: usize) -> reqwest::Result<reqwest::Client> {
        let builder = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .dns_resolver(self.resolver.clone())
            .pool_max_idle_per_host(kept)
            .pool_idle_timeout(KEPT_FOR)
            .user_agent(concat!("noetl/", env!("CARGO_PKG_VERSION")));
        let builder = match verified {
            true => builder.tls_backend_preconfigured(self.tls.clone()),
            false => builder.tls_danger_accept_invalid_certs(true),
        };
        builder.build()
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
    let mut failed = if error.is_connect() { "connect: " } else { "" };
    let mut source: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(current) = source {
        match current.downcast_ref::<ResolveError>() {
            Some(ResolveError::Unreachable(refused)) => return OutboundError::Denied(refused.to_string()),
            Some(ResolveError::Lookup(_)) => failed = "dns: ",
            None if is_tls(current) => failed = "tls: ",
            None => {}
        }
        source = current.source();
    }
    if error.is_builder() {
        return OutboundError::Invalid(chain(&error));
    }
    OutboundError::Failed(format!("{failed}{}", chain(&error)))
}

/// The connector hands on what TLS says inside of I/O errors, one in the other, which are not sources of each other.
fn is_tls(error: &(dyn Error + 'static)) -> bool {
    let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    error.is::<rustls::Error>() || inner.is_some_and(|inner| is_tls(inner))
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
            verified: true,
        }
    }

    #[tokio::test]
    async fn what_failed_is_said_first() {
        let direct = Direct::new(Addresses { private: true }, false).expect("a client");
        let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = taken.local_addr().expect("bound");
        drop(taken);
        let failed = async |url: &str| match direct.send(request(url)).await {
            Err(OutboundError::Failed(text)) => text,
            other => panic!("{:?}", other.err()),
        };
        assert!(failed(&format!("http://{address}/")).await.starts_with("connect: "));
        assert!(failed("http://no-such-name.invalid/").await.starts_with("dns: "));
    }

    #[tokio::test]
    async fn certificates_are_looked_at_unless_the_operator_permits_otherwise() {
        let unverified = || OutboundRequest { verified: false, ..request("https://127.0.0.1:1/") };
        let strict = Direct::new(Addresses { private: true }, false).expect("a client");
        let refused = strict.send(unverified()).await.err().expect("refused");
        assert!(matches!(&refused, OutboundError::Denied(text) if text.contains("policy.insecure_tls")), "{refused:?}");
        let lax = Direct::new(Addresses { private: true }, true).expect("a client");
        let unanswered = lax.send(unverified()).await.err().expect("nobody listens");
        assert!(matches!(unanswered, OutboundError::Failed(_)), "{unanswered:?}");
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
        let mut direct = Direct::new(Addresses { private: true }, false).expect("a client");
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
    #[tokio::test]
    async fn connections_are_used_again_by_their_tenant_and_only_so_many_are_kept() {
        let listener = tokio::net::TcpListener::bind("0.0.0.0:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let (accepted, count) = tokio::sync::watch::channel(0_usize);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                accepted.send_modify(|accepted| *accepted += 1);
                tokio::spawn(async move {
                    while stream.read(&mut [0; 4096]).await.is_ok_and(|read| read > 0) {
                        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
                    }
                });
            }
        });
        let direct = Direct::new(Addresses { private: true }, false).expect("a client");
        let all = kept::MOST_OF_ONE + 8;
        let ask = async |tenant: &str, host: usize| {
            let tenant = Tenant::new(tenant).expect("a name");
            let url = format!("http://127.7.0.{}:{port}/", host + 1);
            let answer = direct.send(OutboundRequest { tenant, ..request(&url) }).await.expect("answered");
            let body: Vec<_> = answer.body.collect().await;
            assert!(body.iter().all(Result::is_ok));
        };
        for host in 0..all {
            ask("one", host).await;
        }
        assert_eq!(*count.borrow(), all);
        for host in 0..all {
            ask("one", host).await;
        }
        assert_eq!(*count.borrow(), all + 8, "the first ones were kept, and the others made anew");
        ask("two", 0).await;
        assert_eq!(*count.borrow(), all + 9, "nobody gets a connection of another tenant's");
    }
}
