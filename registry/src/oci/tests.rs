use bytes::Bytes;
use noetl_contract::{Digest, PluginPath, Version, manifest};
use tempfile::TempDir;

use super::artefact::{MAX_MANIFEST_BYTES, add_attestations, envelope_about, layer, pack, pack_attestations};
use super::*;
use crate::signatures::{Envelope, SecretKey, Statement};

/// A component without code.
fn component(version: &str) -> Bytes {
    let text = format!("path = \"acme/a\"\nversion = \"{version}\"\nworld = \"transform\"\n");
    Bytes::from(manifest::embed(b"\0asm\x0d\0\x01\0", &text).expect("embeds"))
}

fn attested(version: &str) -> Artefact {
    let component = component(version);
    let statement = Statement {
        path: PluginPath::new("acme/a").expect("a path"),
        version: version.parse::<Version>().expect("a version"),
        digest: Digest::of(&component),
        provenance: None,
    };
    let mut envelope = Envelope::unsigned(&statement);
    envelope.sign(&SecretKey::generate().expect("randomness").0).expect("signs");
    Artefact { component, attestations: vec![envelope] }
}

fn bundled(version: &str, channels: &[&str]) -> BundledVersion {
    BundledVersion {
        name: format!("acme/a:{version}"),
        channels: channels.iter().map(|channel| (*channel).to_owned()).collect(),
        ring: "user".to_owned(),
        interpreter: channels.first().map(|channel| format!("sha256:{channel}")),
        artefact: attested(version),
    }
}

fn bundle_of(versions: &[BundledVersion]) -> Vec<u8> {
    let mut writer = BundleWriter::new(Vec::new());
    versions.iter().for_each(|version| writer.add(version).expect("adds"));
    writer.finish().expect("finishes")
}

fn open(bytes: &[u8]) -> Result<(TempDir, Bundle), OciError> {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("bundle.tar");
    std::fs::write(&file, bytes).expect("writes");
    let blobs = folder.path().join("blobs");
    std::fs::create_dir(&blobs).expect("a folder");
    Bundle::open(&file, &blobs).map(|bundle| (folder, bundle))
}

#[test]
fn an_artefact_follows_from_its_component_and_names_its_digest() {
    let component = component("1.0.0");
    let packed = pack(&component).expect("packs");
    assert_eq!(packed.digest(), pack(&component).expect("packs").digest());
    let layer = layer(&packed.manifest, "it").expect("a component");
    assert_eq!((layer.digest, layer.size), (Digest::of(&component), component.len() as u64));
}

#[test]
fn artefacts_of_other_kinds_are_refused_with_what_they_are() {
    for (text, why) in [
        ("{}", "cannot be read"),
        (
            r#"{"schemaVersion":2,"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"","size":0},"layers":[]}"#,
            "its config is",
        ),
        (
            r#"{"schemaVersion":2,"config":{"mediaType":"application/vnd.wasm.config.v0+json","digest":"","size":0},"layers":[]}"#,
            "0 layers",
        ),
    ] {
        let error = layer(text.as_bytes(), "it").expect_err(text).to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn a_bundle_gives_back_what_was_put_in_and_equal_bundles_are_equal() {
    let versions = [bundled("1.0.0", &["stable"]), bundled("1.1.0", &["canary", "dev"]), bundled("1.2.0", &[])];
    let bytes = bundle_of(&versions);
    assert_eq!(bytes, bundle_of(&versions));
    let (_folder, bundle) = open(&bytes).expect("opens");
    assert_eq!(bundle.versions().len(), 3);
    for (version, read) in versions.iter().zip(bundle.versions()) {
        assert_eq!((&read.name, &read.channels), (&version.name, &version.channels));
        assert_eq!((read.ring.as_deref(), &read.interpreter), (Some("user"), &version.interpreter));
        assert_eq!(read.attestations, version.artefact.attestations);
        assert_eq!(bundle.component(read).expect("is there"), version.artefact.component);
    }
}

#[test]
fn a_changed_byte_anywhere_in_a_blob_refuses_the_bundle() {
    let bytes = bundle_of(&[bundled("1.0.0", &["stable"])]);
    let at = bytes.windows(15).position(|window| window == b"path = \"acme/a\"").expect("the manifest is in it");
    let mut changed = bytes.clone();
    changed[at + 8] = b'A';
    assert!(matches!(open(&changed), Err(OciError::WrongDigest { .. })));
    assert!(open(&bytes[..bytes.len() / 2]).is_err(), "half of a bundle is none");
    assert!(matches!(open(b"no tar at all"), Err(OciError::Bundle(_))));
}

#[test]
fn a_bundle_cannot_reach_outside_of_its_folder() {
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_size(0);
    header.set_mode(0o644);
    let name = b"../../evil";
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.set_cksum();
    tar.append(&header, std::io::empty()).expect("appends");
    let error = open(&tar.into_inner().expect("finishes")).expect_err("refused").to_string();
    assert!(error.contains("has no place"), "{error}");
}

#[test]
fn what_is_too_large_in_a_bundle_is_refused_before_it_is_read() {
    let of = |name: &str, size: u64, content: &[u8]| {
        let mut tar = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_ustar();
        header.set_path(name).expect("a path");
        header.set_size(size);
        header.set_mode(0o644);
        header.set_cksum();
        tar.append(&header, content).expect("appends");
        open(&tar.into_inner().expect("finishes")).expect_err("refused")
    };
    // The bytes are not even there.
    let blob = format!("blobs/sha256/{}", "0".repeat(64));
    assert!(matches!(of(&blob, MAX_COMPONENT_BYTES + 1, b""), OciError::TooLarge { .. }));
    let index = of("index.json", MAX_MANIFEST_BYTES as u64 + 1, b"").to_string();
    assert!(index.contains("index.json") && index.contains("more than"), "{index}");
}

/// An envelope as other signers of the field make it: no name of a key.
fn foreign(component: &Bytes) -> Envelope {
    let mut json: serde_json::Value =
        serde_json::from_slice(&attested("1.0.0").attestations[0].to_json()).expect("JSON");
    json["signatures"][0]["keyid"] = serde_json::json!("");
    let envelope = Envelope::parse(json.to_string().as_bytes()).expect("reads");
    assert!(envelope.open_for(&Digest::of(component)).is_err());
    envelope
}

#[test]
fn attestations_of_others_are_left_out_of_what_is_taken() {
    let mut version = bundled("1.0.0", &["stable"]);
    let ours = version.artefact.attestations.clone();
    let theirs = foreign(&version.artefact.component);
    let about_other_bytes = attested("2.0.0").attestations;
    version.artefact.attestations = [vec![theirs.clone()], ours.clone(), about_other_bytes].concat();
    let digest = Digest::of(&version.artefact.component);
    assert_eq!(envelope_about(&theirs.to_json(), &digest), None);
    let (_folder, bundle) = open(&bundle_of(&[version])).expect("opens");
    assert_eq!(bundle.versions()[0].attestations, ours);
}

#[test]
fn attestations_of_others_stay_where_they_are() {
    let first = attested("1.0.0");
    let theirs = foreign(&first.component);
    let there = pack_attestations(&[theirs.clone(), first.attestations[0].clone()]);
    let mut manifest: serde_json::Value = serde_json::from_slice(&there.manifest).expect("JSON");
    manifest["layers"][0]["annotations"] = serde_json::json!({ "predicateType": "x" });
    manifest["layers"][0]["data"] = serde_json::json!("e30=");
    let kept = manifest["layers"][0].clone();

    let second = attested("1.0.0").attestations;
    let replaced = [Digest::of(&first.attestations[0].to_json())];
    let packed = add_attestations(manifest.to_string().as_bytes(), &replaced, &second, "it").expect("adds");
    let manifest: serde_json::Value = serde_json::from_slice(&packed.manifest).expect("JSON");
    let layers = manifest["layers"].as_array().expect("layers");
    assert_eq!(layers.len(), 2);
    assert_eq!(layers[0], kept, "with what is not known here too");
    assert_eq!(layers[1]["digest"], Digest::of(&second[0].to_json()).to_string());
    assert_eq!(manifest["config"]["digest"], Digest::of(&packed.blobs[0]).to_string());
}

#[test]
fn references_name_a_registry_and_say_whether_it_is_this_machine() {
    let read = |text: &str| text.parse::<OciReference>();
    let full = read("oci://127.0.0.1:5000/acme/greeter:1.0.0").expect("valid");
    assert!(full.has_name() && full.is_this_machine());
    assert_eq!(full.to_string(), "oci://127.0.0.1:5000/acme/greeter:1.0.0");
    let bare = read("oci://ghcr.io/acme/greeter").expect("valid");
    assert!(!bare.has_name() && !bare.is_this_machine());
    assert_eq!(bare.with_tag("1.0.0+a").to_string(), "oci://ghcr.io/acme/greeter:1.0.0_a");
    let digest = format!("oci://localhost/a@sha256:{}", "0".repeat(64));
    assert_eq!(read(&digest).expect("valid").to_string(), digest);
    assert!(!read("oci://127.0.0.1.example.com/a:1").expect("valid").is_this_machine());
    for wrong in ["oci://", "oci://acme/greeter:1", "oci://ghcr.io", "https://ghcr.io/a:1", "oci://u@ghcr.io/a:1"] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn credentials_come_from_the_docker_configuration_and_only_for_their_registry() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("config.json");
    let of = |registry: &str| Credentials::from_docker_config(&file, registry).map(|credentials| credentials.0);
    assert_eq!(of("a:1").expect("no file is nobody"), oci_client::secrets::RegistryAuth::Anonymous);
    std::fs::write(&file, r#"{"auths":{"a:1":{"auth":"YWRhOnNlY3JldA=="}}}"#).expect("writes");
    let ada = oci_client::secrets::RegistryAuth::Basic("ada".to_owned(), "secret".to_owned());
    assert_eq!(of("a:1").expect("reads"), ada);
    assert_eq!(of("b:1").expect("reads"), oci_client::secrets::RegistryAuth::Anonymous);
    std::fs::write(&file, r#"{"auths":{"a:1":{"identitytoken":"hush"}}}"#).expect("writes");
    let refused = of("a:1").expect_err("a refresh token is no bearer token").to_string();
    assert!(refused.contains("docker login a:1") && !refused.contains("hush"), "{refused}");
    std::fs::write(&file, "not JSON").expect("writes");
    assert!(of("a:1").is_err());
}

#[test]
fn a_helper_without_a_login_for_a_registry_means_nobody_and_a_broken_one_does_not() {
    use docker_credential::CredentialRetrievalError as E;
    let failed = |stdout: &str, stderr: &str| E::HelperFailure {
        helper: "docker-credential-x".to_owned(),
        stdout: stdout.to_owned(),
        stderr: stderr.to_owned(),
    };
    assert!(credentials::has_none(&failed("credentials not found in native keychain\n", "")));
    assert!(credentials::has_none(&failed("", "Error: Credentials not found")));
    assert!(!credentials::has_none(&failed("", "the keychain is locked")));
    assert!(!credentials::has_none(&E::HelperCommunicationError));
}
