//! A component as an OCI artefact, and back.
//!
//! Everything written here follows from the component: the config's time is the epoch, and lists are in the order of
//! the component. That is what makes a second push the same artefact.

use std::collections::BTreeMap;

use bytes::Bytes;
use noetl_contract::{Digest, Manifest, inspect};
use oci_client::manifest::{IMAGE_CONFIG_MEDIA_TYPE, OCI_IMAGE_MEDIA_TYPE, OciDescriptor, OciImageManifest};
use serde_json::{Value, json};

use super::MAX_COMPONENT_BYTES;
use super::error::OciError;
use crate::signatures::{Envelope, MAX_ENVELOPE_BYTES};

/// Of the Wasm artefact layout.
const CONFIG: &str = "application/vnd.wasm.config.v0+json";
const LAYER: &str = "application/wasm";
/// A DSSE envelope as a layer.
const ENVELOPE: &str = "application/vnd.dsse.envelope.v1+json";
/// Largest manifest that is read.
pub(super) const MAX_MANIFEST_BYTES: usize = 4 << 20;
/// Most envelopes beside an artefact that are looked at: other signers keep theirs under the same tag.
const MAX_LAYERS: usize = 64;

/// A component with what is said about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Artefact {
    pub component: Bytes,
    pub attestations: Vec<Envelope>,
}

/// A manifest and the blobs it needs.
pub(super) struct Packed {
    pub manifest: Bytes,
    pub blobs: Vec<Bytes>,
}

impl Packed {
    pub fn digest(&self) -> Digest {
        Digest::of(&self.manifest)
    }
}

/// A component's layer, as its manifest describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layer {
    pub digest: Digest,
    pub size: u64,
}

/// The tag beside an artefact under which its attestations are.
pub(super) fn attestation_tag(manifest: &Digest) -> String {
    format!("sha256-{}.att", manifest.hex())
}

pub(super) fn pack(component: &Bytes) -> Result<Packed, OciError> {
    let wrong = |problem: String| OciError::NotAPlugin { what: "the component".to_owned(), problem };
    let inspection = inspect::inspect(component).map_err(|error| wrong(error.to_string()))?;
    let text = inspection.manifest_text.ok_or_else(|| wrong("it has no manifest inside".to_owned()))?;
    let plugin = Manifest::parse(&text).map_err(|errors| wrong(errors.to_string()))?;
    let imports: Vec<&str> = inspection.imports.iter().map(|import| import.name.as_str()).collect();
    let config = json!({
        "created": "1970-01-01T00:00:00Z",
        "architecture": "wasm",
        "os": "wasip2",
        "layerDigests": [Digest::of(component)],
        "component": { "exports": inspection.exports, "imports": imports, "target": null },
    });
    let config = Bytes::from(config.to_string());
    let mut annotations = BTreeMap::from([
        ("io.noetl.path".to_owned(), plugin.path.to_string()),
        ("org.opencontainers.image.title".to_owned(), plugin.path.to_string()),
        ("org.opencontainers.image.version".to_owned(), plugin.version.to_string()),
    ]);
    if !plugin.description.is_empty() {
        annotations.insert("org.opencontainers.image.description".to_owned(), plugin.description);
    }
    let manifest = manifest(descriptor(CONFIG, &config), vec![descriptor(LAYER, component)], Some(annotations));
    Ok(Packed { manifest, blobs: vec![config, component.clone()] })
}

/// An artefact of its own that holds the envelopes.
pub(super) fn pack_attestations(envelopes: &[Envelope]) -> Packed {
    let mut blobs: Vec<Bytes> = envelopes.iter().map(|envelope| Bytes::from(envelope.to_json())).collect();
    let layers: Vec<OciDescriptor> = blobs.iter().map(|blob| descriptor(ENVELOPE, blob)).collect();
    let digests: Vec<&str> = layers.iter().map(|layer| layer.digest.as_str()).collect();
    let config = config_of(&digests);
    let manifest = manifest(descriptor(IMAGE_CONFIG_MEDIA_TYPE, &config), layers, None);
    blobs.insert(0, config);
    Packed { manifest, blobs }
}

/// The artefact `there` with the envelopes in the place of the layers `replaced`. Whatever else others have put there stays
/// as it is, in fields that are not known here too: their layers are in the registry already.
pub(super) fn add_attestations(
    there: &[u8],
    replaced: &[Digest],
    envelopes: &[Envelope],
    what: &str,
) -> Result<Packed, OciError> {
    read(there, what)?;
    let wrong = |problem: String| OciError::NotAPlugin { what: what.to_owned(), problem };
    let mut manifest: Value = serde_json::from_slice(there).map_err(|error| wrong(error.to_string()))?;
    let replaced: Vec<String> = replaced.iter().map(Digest::to_string).collect();
    let is_kept = |layer: &&Value| !replaced.iter().any(|digest| layer["digest"] == digest.as_str());
    let mut layers: Vec<Value> = manifest["layers"].as_array().into_iter().flatten().filter(is_kept).cloned().collect();
    let mut blobs: Vec<Bytes> = envelopes.iter().map(|envelope| Bytes::from(envelope.to_json())).collect();
    layers.extend(blobs.iter().map(|blob| json!(descriptor(ENVELOPE, blob))));
    let digests: Vec<&str> = layers.iter().filter_map(|layer| layer["digest"].as_str()).collect();
    let config = config_of(&digests);
    manifest["config"] = json!(descriptor(IMAGE_CONFIG_MEDIA_TYPE, &config));
    manifest["layers"] = Value::Array(layers);
    blobs.insert(0, config);
    Ok(Packed { manifest: Bytes::from(manifest.to_string()), blobs })
}

/// The form of an image's config, because clients that only copy images look into it.
fn config_of(layers: &[&str]) -> Bytes {
    let config = json!({
        "architecture": "", "os": "", "config": {}, "rootfs": { "type": "layers", "diff_ids": layers },
    });
    Bytes::from(config.to_string())
}

fn manifest(config: OciDescriptor, layers: Vec<OciDescriptor>, annotations: Option<BTreeMap<String, String>>) -> Bytes {
    let media_type = Some(OCI_IMAGE_MEDIA_TYPE.to_owned());
    let manifest = OciImageManifest { media_type, config, layers, annotations, ..OciImageManifest::default() };
    Bytes::from(serde_json::to_vec(&manifest).expect("text, numbers and lists"))
}

fn descriptor(media_type: &str, blob: &Bytes) -> OciDescriptor {
    OciDescriptor {
        media_type: media_type.to_owned(),
        digest: Digest::of(blob).to_string(),
        size: i64::try_from(blob.len()).unwrap_or(i64::MAX),
        ..OciDescriptor::default()
    }
}

fn read(manifest: &[u8], what: &str) -> Result<OciImageManifest, OciError> {
    let wrong = |problem: String| OciError::NotAPlugin { what: what.to_owned(), problem };
    if manifest.len() > MAX_MANIFEST_BYTES {
        return Err(wrong("its manifest is too long".to_owned()));
    }
    serde_json::from_slice(manifest).map_err(|error| wrong(format!("its manifest cannot be read: {error}")))
}

/// The one layer of a component.
pub(super) fn layer(manifest: &[u8], what: &str) -> Result<Layer, OciError> {
    let wrong = |problem: String| OciError::NotAPlugin { what: what.to_owned(), problem };
    let manifest = read(manifest, what)?;
    if manifest.config.media_type != CONFIG {
        return Err(wrong(format!("its config is `{}`, not `{CONFIG}`", manifest.config.media_type)));
    }
    match manifest.layers.as_slice() {
        [layer] if layer.media_type == LAYER => sized(layer, what, MAX_COMPONENT_BYTES),
        [layer] => Err(wrong(format!("its layer is `{}`, not `{LAYER}`", layer.media_type))),
        layers => Err(wrong(format!("it has {} layers, not one", layers.len()))),
    }
}

/// Whether a manifest is one of a component at all.
pub(super) fn is_component(manifest: &[u8], what: &str) -> Result<bool, OciError> {
    Ok(read(manifest, what)?.config.media_type == CONFIG)
}

/// The layers with envelopes; what else others have put there is left alone.
pub(super) fn envelope_layers(manifest: &[u8], what: &str) -> Result<Vec<Layer>, OciError> {
    let layers = read(manifest, what)?.layers;
    let envelopes = layers.iter().filter(|layer| layer.media_type == ENVELOPE).take(MAX_LAYERS);
    // One that is too long was not made here.
    Ok(envelopes.filter_map(|layer| sized(layer, what, MAX_ENVELOPE_BYTES as u64).ok()).collect())
}

/// An envelope that holds and is about the component. Others, of signers whose keys are not known here or about other
/// things, are left where they are: whoever takes the component could only refuse them.
pub(super) fn envelope_about(blob: &[u8], component: &Digest) -> Option<Envelope> {
    Envelope::parse(blob).ok().filter(|envelope| envelope.open_for(component).is_ok())
}

fn sized(layer: &OciDescriptor, what: &str, most: u64) -> Result<Layer, OciError> {
    let wrong = |problem: String| OciError::NotAPlugin { what: what.to_owned(), problem };
    let size = u64::try_from(layer.size).map_err(|_| wrong("a layer has a negative size".to_owned()))?;
    if size > most {
        return Err(OciError::TooLarge { what: what.to_owned(), size, most });
    }
    let digest = layer.digest.parse().map_err(|error: noetl_contract::ids::InvalidId| wrong(error.to_string()))?;
    Ok(Layer { digest, size })
}

/// Refuses bytes that are not those of a digest.
pub(super) fn must_be(digest: &Digest, bytes: &[u8], what: &str) -> Result<(), OciError> {
    let actual = Digest::of(bytes);
    if actual == *digest {
        return Ok(());
    }
    Err(OciError::WrongDigest { what: what.to_owned(), expected: digest.to_string(), actual: actual.to_string() })
}
