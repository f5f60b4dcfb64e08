//! A credential for one request: opened for the very host and port it is sent to, encrypted or not, or refused.

use std::fmt;
use std::sync::Arc;

use noetl_store::wallet::{Credential, Use, Wallet, WalletError, Way};

use super::OutboundError;

/// Where a request goes. In the audit and in refusals it is `host:port`, with `http://` before it if everybody on the way can
/// read along.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    host: &'a str,
    port: u16,
    way: Way,
}

impl<'a> Place<'a> {
    /// The host and port of this address.
    pub fn of(url: &str, host: &'a str, port: u16) -> Self {
        Self { host, port, way: Way::of(url) }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}:{}", if self.way == Way::Http { "http://" } else { "" }, self.host, self.port)
    }
}

/// The one place where `http-client` compares a credential's hosts with where a request goes.
pub(super) async fn open(wallet: &dyn Wallet, using: &Use, to: Place<'_>) -> Result<Arc<Credential>, OutboundError> {
    let credential = wallet.open(using).await.map_err(refused)?;
    if !credential.may_go_to(to.host.trim_matches(['[', ']']), to.port, to.way) {
        let (alias, target) = (using.alias.clone(), using.target.clone());
        return Err(refused(WalletError::NotForThere { alias, target }));
    }
    Ok(credential)
}

fn refused(error: WalletError) -> OutboundError {
    let text = error.to_string();
    match error {
        WalletError::Unavailable(_) | WalletError::NoToken { .. } => OutboundError::Failed(text),
        WalletError::Unknown { .. } | WalletError::NotForThere { .. } | WalletError::Closed { .. } => {
            OutboundError::Denied(text)
        }
    }
}
