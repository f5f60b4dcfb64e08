//! A credential for one request: opened for the very host and port it is sent to, or refused.

use std::sync::Arc;

use noetl_store::wallet::{Credential, Use, Wallet, WalletError};

use super::OutboundError;

/// The one place where `http-client` compares a credential's hosts with where a request goes.
pub(super) async fn open(
    wallet: &dyn Wallet,
    using: &Use,
    host: &str,
    port: u16,
) -> Result<Arc<Credential>, OutboundError> {
    let credential = wallet.open(using).await.map_err(refused)?;
    if !credential.may_go_to(host.trim_matches(['[', ']']), port) {
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
