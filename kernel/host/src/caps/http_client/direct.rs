//! The real way out, on reqwest with rustls.
//!
//! Connections are kept and used again, for all plugins alike: each was made to an address that was checked when it
//! was made. Proxies of the environment are ignored, since a proxy resolves names by itself.

use std::error::Error;
use std::net::IpAddr;
use std::sync::Arc;

use futures::TryStreamExt;
use futures::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::{Outbound, OutboundError, OutboundRequest, OutboundResponse};
use crate::egress::{Addresses, ResolveError};
use crate::error::StartError;

/// Sends requests from this machine.
pub struct Direct {
    client: reqwest::Client,
    addresses: Addresses,
}

impl Direct {
    pub fn new(addresses: Addresses) -> Result<Self, StartError> {
        // A second host in the same process finds the provider there already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .dns_resolver(Arc::new(Guarded(addresses)))
            .user_agent(concat!("noetl/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| StartError { doing: "make the HTTP client", reason: error.to_string() })?;
        Ok(Self { client, addresses })
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
struct Guarded(Addresses);

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let addresses = self.0;
        Box::pin(async move {
            let found = addresses.resolve(name.as_str(), 0).await?;
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
