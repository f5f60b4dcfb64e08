//! Whose a payload is.
//!
//! Payloads are found by their digest, whoever made them: two tenants with the same bytes share them. A digest is no secret,
//! so whoever lets a tenant name one asks here first. A payload belongs to everybody it was kept for; that is an empty file
//! `owners/<tenant>/<digest>`, made beside the bytes and as durable as they are.

use std::io;
use std::path::PathBuf;

use noetl_contract::{Digest, Tenant};

use super::{Payloads, blocking};
use crate::folder::{create_folder_durably, sync_folder};

impl Payloads {
    fn owner(&self, tenant: &Tenant, digest: &Digest) -> PathBuf {
        let name = digest.hex();
        self.place.folder.join("owners").join(tenant.as_str()).join(&name[..2]).join(&name[2..])
    }

    /// Notes that a payload was kept for a tenant. The payload itself need not be there yet.
    pub async fn give(&self, tenant: &Tenant, digest: &Digest) -> io::Result<()> {
        let file = self.owner(tenant, digest);
        blocking(move || {
            if file.exists() {
                return Ok(());
            }
            let Some(folder) = file.parent() else { return Ok(()) };
            create_folder_durably(folder)?;
            std::fs::File::create(&file)?;
            sync_folder(folder)
        })
        .await
    }

    /// Whether it was kept for this tenant.
    pub fn belongs(&self, tenant: &Tenant, digest: &Digest) -> bool {
        self.owner(tenant, digest).exists()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_payload_belongs_to_those_it_was_kept_for_also_after_a_restart() {
        let folder = tempfile::tempdir().expect("a folder");
        let (acme, other) = (Tenant::new("acme").expect("valid"), Tenant::new("other").expect("valid"));
        let digest = Digest::of(b"bytes");
        let payloads = Payloads::open(folder.path()).expect("a store");
        payloads.give(&acme, &digest).await.expect("noted");
        payloads.give(&acme, &digest).await.expect("noted again");
        let again = Payloads::open(folder.path()).expect("a store");
        assert!(again.belongs(&acme, &digest) && !again.belongs(&other, &digest));
        assert!(!again.belongs(&acme, &Digest::of(b"others")));
    }
}
