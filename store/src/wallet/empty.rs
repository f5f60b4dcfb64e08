//! A wallet without credentials, where there are none to be had: a harness, a bench.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Credential, Use, Wallet, WalletError};

/// Has no credential of any alias.
#[derive(Debug, Clone, Copy, Default)]
pub struct Empty;

#[async_trait]
impl Wallet for Empty {
    async fn open(&self, using: &Use) -> Result<Arc<Credential>, WalletError> {
        Err(WalletError::Unknown { alias: using.alias.clone() })
    }
}
