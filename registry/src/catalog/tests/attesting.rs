//! What is said about a version is kept with it, verified, and survives a restart.

use super::*;
use crate::signatures::{AttestationError, Envelope, PublicKey, SecretKey, Statement};

fn signed(at: &str, number: &str, content: &str, key: &SecretKey) -> Envelope {
    let statement = Statement {
        path: path(at),
        version: version(number),
        digest: Digest::of(content.as_bytes()),
        provenance: None,
    };
    let mut envelope = Envelope::unsigned(&statement);
    envelope.sign(key).expect("signs");
    envelope
}

fn signers(bench: &Bench) -> Vec<PublicKey> {
    let plugin = bench.catalog.plugin(&path("acme/a")).expect("is there");
    plugin.versions[0].entry.signers.clone()
}

#[tokio::test]
async fn signatures_come_with_a_push_or_after_it_and_survive_a_restart() {
    let bench = Bench::new();
    let (ada, bob) = (SecretKey::generate().expect("a key").0, SecretKey::generate().expect("a key").0);
    let mut new = bench.new_version(manifest("acme/a", "1.0.0"), "x").await;
    new.attestations = vec![signed("acme/a", "1.0.0", "x", &ada)];
    bench.push_as(&admin(), new).await.expect("pushes");
    assert_eq!(signers(&bench), [ada.public()]);

    let both = [signed("acme/a", "1.0.0", "x", &bob), signed("acme/a", "1.0.0", "x", &ada)];
    let attest = async |bench: &Bench| {
        bench.catalog.attest(&admin(), &path("acme/a"), &version("1.0.0"), &both, "release").await.expect("attests")
    };
    assert_eq!(attest(&bench).await.signers.len(), 2);
    let events = bench.events();
    attest(&bench).await;
    assert_eq!(bench.events(), events, "what is known already is not written again");
    assert_eq!(signers(&bench.reopen()).len(), 2);
}

#[tokio::test]
async fn a_signature_of_other_bytes_or_of_somebody_elses_plugin_is_refused() {
    let bench = Bench::new();
    bench.push("acme/a", "1.0.0", "x").await.expect("pushes");
    let key = SecretKey::generate().expect("a key").0;
    let (at, number) = (path("acme/a"), version("1.0.0"));
    let other = [signed("acme/a", "1.0.0", "y", &key)];
    let refused = bench.catalog.attest(&admin(), &at, &number, &other, "").await.expect_err("other bytes");
    assert!(matches!(refused, CatalogError::Attestation(AttestationError::OtherDigest { .. })));
    let right = [signed("acme/a", "1.0.0", "x", &key)];
    let refused = bench.catalog.attest(&of_tenant("rival"), &at, &number, &right, "").await.expect_err("not its own");
    assert_eq!(refused.code(), "forbidden");
    let refused = bench.catalog.attest(&admin(), &at, &version("2.0.0"), &right, "").await.expect_err("not there");
    assert_eq!(refused.code(), "version_not_found");
    assert!(signers(&bench).is_empty());
}
