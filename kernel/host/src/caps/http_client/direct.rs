//! The real way out, on reqwest.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures::TryStreamExt;
use futures::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::address::is_public;
use super::{Outbound, OutboundError, OutboundRequest, OutboundResponse};
use crate::error::StartError;

/// Sends requests from this machine.
pub struct Direct {
    client: reqwest::Client,
    private_addresses: bool,
}

impl Direct {
    /// `private_addresses` lets plugins reach the operator's own network.
    pub fn new(private_addresses: bool) -> Result<Self, StartError> {
        // A second host in the same process finds the provider there already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .dns_resolver(Arc::new(Guarded { private_addresses }))
            .user_agent(concat!("noetl/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| StartError { doing: "make the HTTP client", reason: error.to_string() })?;
        Ok(Self { client, private_addresses })
    }
}

impl Outbound for Direct {
    fn send(&self, request: OutboundRequest) -> BoxFuture<'_, Result<OutboundResponse, OutboundError>> {
        Box::pin(async move {
            let url = reqwest::Url::parse(&request.url).map_err(|error| OutboundError::Invalid(error.to_string()))?;
            self.check_literal(&url)?;
            let method =
                request.method.parse().map_err(|_| OutboundError::Invalid(format!("method `{}`", request.method)))?;
            let mut builder =
                self.client.request(method, url).headers(headers(request.headers)?).timeout(request.timeout);
            if let Some((size, body)) = request.body {
                builder = builder.header("content-length", size).body(reqwest::Body::wrap_stream(body));
            }
            let answer = builder.send().await.map_err(describe)?;
            let status = answer.status().as_u16();
            let headers = answer
                .headers()
                .iter()
                .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
                .collect();
            let body = answer.bytes_stream().map_err(|error| std::io::Error::other(chain(&error)));
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
            Some(address) if !self.private_addresses && !is_public(address) => {
                Err(OutboundError::Denied(not_public(address)))
            }
            _ => Ok(()),
        }
    }
}

fn not_public(address: IpAddr) -> String {
    format!("{address} is not a public address; an operator can allow it with `policy.http_private_addresses`")
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

/// Carried through the connector's errors so that a denial can be told from a failure.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct DeniedAddress(String);

struct Guarded {
    private_addresses: bool,
}

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let private_addresses = self.private_addresses;
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            // One private address among public ones is enough to refuse: which is used is not ours to choose.
            if let Some(inside) = found.iter().find(|address| !private_addresses && !is_public(address.ip())) {
                let text =
                    format!("`{}` resolves to an address out of reach: {}", name.as_str(), not_public(inside.ip()));
                return Err(Box::new(DeniedAddress(text)) as Box<dyn Error + Send + Sync>);
            }
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
        if let Some(denied) = current.downcast_ref::<DeniedAddress>() {
            return OutboundError::Denied(denied.0.clone());
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
