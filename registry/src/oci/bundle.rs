//! A bundle: chosen versions in one file, to be carried where no registry is reached.
//!
//! The file is an OCI image layout in a tar. Beside the standard's own fields an entry of its index says which channels
//! served the version, in which ring it was and which interpreter ran it, if it is source text; attestations are entries of their own, under the tag they have in a
//! registry. Equal content gives an equal file: no times, no owners, blobs in the order they were added.
//!
//! Reading unpacks into a folder of the caller's and checks every blob against its name while it is written. A bundle
//! that was opened is whole: what its index names is there, and is what it is called.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use noetl_contract::Digest;
use oci_client::manifest::{ImageIndexEntry, OCI_IMAGE_INDEX_MEDIA_TYPE, OCI_IMAGE_MEDIA_TYPE, OciImageIndex};
use sha2::{Digest as _, Sha256};

use super::MAX_COMPONENT_BYTES;
use super::artefact::{
    Artefact, MAX_MANIFEST_BYTES, Packed, attestation_tag, envelope_about, envelope_layers, is_component, layer,
    must_be, pack, pack_attestations,
};
use super::error::OciError;
use crate::signatures::{Envelope, MAX_ENVELOPE_BYTES};

const REF_NAME: &str = "org.opencontainers.image.ref.name";
const CHANNELS: &str = "io.noetl.channels";
const RING: &str = "io.noetl.ring";
const INTERPRETER: &str = "io.noetl.interpreter";
const LAYOUT: &str = r#"{"imageLayoutVersion":"1.0.0"}"#;
const BLOBS: &str = "blobs/sha256/";

/// A version on its way into a bundle.
#[derive(Debug, Clone)]
pub struct BundledVersion {
    /// `path:version`, by which other tools name it.
    pub name: String,
    pub channels: Vec<String>,
    pub ring: String,
    /// The digest of what it was run by, where it is source text.
    pub interpreter: Option<String>,
    pub artefact: Artefact,
}

pub struct BundleWriter<W: Write> {
    tar: tar::Builder<W>,
    index: Vec<ImageIndexEntry>,
    written: BTreeSet<Digest>,
}

impl<W: Write> BundleWriter<W> {
    pub fn new(out: W) -> Self {
        Self { tar: tar::Builder::new(out), index: Vec::new(), written: BTreeSet::new() }
    }

    pub fn add(&mut self, version: &BundledVersion) -> Result<(), OciError> {
        let packed = pack(&version.artefact.component)?;
        let mut about = vec![
            (REF_NAME, version.name.clone()),
            (CHANNELS, version.channels.join(",")),
            (RING, version.ring.clone()),
        ];
        about.extend(version.interpreter.clone().map(|digest| (INTERPRETER, digest)));
        self.put(&packed, about)?;
        if !version.artefact.attestations.is_empty() {
            let repository = version.name.split(':').next().unwrap_or_default();
            let name = format!("{repository}:{}", attestation_tag(&packed.digest()));
            self.put(&pack_attestations(&version.artefact.attestations), vec![(REF_NAME, name)])?;
        }
        Ok(())
    }

    /// Writes what names everything, last.
    pub fn finish(mut self) -> Result<W, OciError> {
        let index = OciImageIndex {
            schema_version: 2,
            media_type: Some(OCI_IMAGE_INDEX_MEDIA_TYPE.to_owned()),
            manifests: std::mem::take(&mut self.index),
            artifact_type: None,
            annotations: None,
        };
        let index = serde_json::to_vec(&index).expect("text, numbers and lists");
        self.file("index.json", &index)?;
        self.file("oci-layout", LAYOUT.as_bytes())?;
        self.tar.into_inner().map_err(OciError::io("write the bundle"))
    }

    fn put(&mut self, packed: &Packed, about: Vec<(&str, String)>) -> Result<(), OciError> {
        for blob in packed.blobs.iter().chain([&packed.manifest]) {
            let digest = Digest::of(blob);
            if self.written.insert(digest) {
                self.file(&format!("{BLOBS}{}", digest.hex()), blob)?;
            }
        }
        self.index.push(ImageIndexEntry {
            media_type: OCI_IMAGE_MEDIA_TYPE.to_owned(),
            digest: packed.digest().to_string(),
            size: i64::try_from(packed.manifest.len()).unwrap_or(i64::MAX),
            platform: None,
            annotations: Some(about.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
            artifact_type: None,
        });
        Ok(())
    }

    fn file(&mut self, name: &str, bytes: &[u8]) -> Result<(), OciError> {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(0);
        self.tar.append_data(&mut header, name, bytes).map_err(OciError::io("write the bundle"))
    }
}

/// A version in a bundle that was opened; its bytes are read when they are wanted.
#[derive(Debug, Clone)]
pub struct Bundled {
    pub name: String,
    pub channels: Vec<String>,
    pub ring: Option<String>,
    pub interpreter: Option<String>,
    pub digest: Digest,
    pub attestations: Vec<Envelope>,
}

#[derive(Debug)]
pub struct Bundle {
    folder: PathBuf,
    versions: Vec<Bundled>,
}

impl Bundle {
    /// Unpacks into `folder`, which should be empty and the caller's own, and checks everything.
    pub fn open(file: &Path, folder: &Path) -> Result<Self, OciError> {
        let source = File::open(file).map_err(OciError::io("open the bundle"))?;
        let index = unpack(source, folder)?;
        let index =
            index.ok_or_else(|| OciError::Bundle("it has no index.json: it is no OCI image layout".to_owned()))?;
        let index: OciImageIndex = serde_json::from_slice(&index)
            .map_err(|error| OciError::Bundle(format!("its index.json cannot be read: {error}")))?;
        let mut bundle = Self { folder: folder.to_owned(), versions: Vec::new() };
        bundle.versions = bundle.read_index(&index)?;
        Ok(bundle)
    }

    pub fn versions(&self) -> &[Bundled] {
        &self.versions
    }

    /// The bytes of a version.
    pub fn component(&self, version: &Bundled) -> Result<Bytes, OciError> {
        self.blob(&version.digest, &version.name, MAX_COMPONENT_BYTES)
    }

    fn read_index(&self, index: &OciImageIndex) -> Result<Vec<Bundled>, OciError> {
        let mut beside = BTreeMap::new();
        let mut components = Vec::new();
        for entry in &index.manifests {
            let annotations = entry.annotations.clone().unwrap_or_default();
            let name = annotations.get(REF_NAME).cloned().unwrap_or_else(|| entry.digest.clone());
            let digest: Digest = entry.digest.parse().map_err(|_| {
                OciError::Bundle(format!("its index names `{}`, which is no sha256 digest", entry.digest))
            })?;
            let manifest = self.blob(&digest, &name, MAX_MANIFEST_BYTES as u64)?;
            if is_component(&manifest, &name)? {
                components.push((name, digest, annotations, manifest));
            } else if let Some(tag) = name.rsplit(':').next().filter(|tag| tag.ends_with(".att")) {
                beside.insert(tag.to_owned(), (name.clone(), manifest));
            } else {
                return Err(OciError::NotAPlugin {
                    what: name,
                    problem: "it is an artefact of another kind".to_owned(),
                });
            }
        }
        let versions = components.into_iter().map(|(name, manifest_digest, annotations, manifest)| {
            let layer = layer(&manifest, &name)?;
            if !self.place(&layer.digest).is_file() {
                return Err(OciError::Bundle(format!("the blob {} of {name} is missing", layer.digest)));
            }
            let attestations = match beside.get(&attestation_tag(&manifest_digest)) {
                Some((tag, attestations)) => self.envelopes(attestations, tag, &layer.digest)?,
                None => Vec::new(),
            };
            let channels = annotations.get(CHANNELS).map(String::as_str).unwrap_or_default().split(',');
            Ok(Bundled {
                channels: channels.filter(|channel| !channel.is_empty()).map(str::to_owned).collect(),
                ring: annotations.get(RING).cloned(),
                interpreter: annotations.get(INTERPRETER).cloned(),
                digest: layer.digest,
                attestations,
                name,
            })
        });
        versions.collect()
    }

    fn envelopes(&self, manifest: &[u8], name: &str, component: &Digest) -> Result<Vec<Envelope>, OciError> {
        let mut envelopes = Vec::new();
        for layer in envelope_layers(manifest, name)? {
            envelopes.extend(envelope_about(&self.blob(&layer.digest, name, MAX_ENVELOPE_BYTES as u64)?, component));
        }
        Ok(envelopes)
    }

    fn place(&self, digest: &Digest) -> PathBuf {
        self.folder.join(digest.hex())
    }

    /// A blob of at most so many bytes: what a manifest says of its size is not believed.
    fn blob(&self, digest: &Digest, what: &str, most: u64) -> Result<Bytes, OciError> {
        let missing = |_: std::io::Error| OciError::Bundle(format!("the blob {digest} of {what} is missing"));
        let place = self.place(digest);
        within(&format!("the blob {digest} of {what}"), std::fs::metadata(&place).map_err(missing)?.len(), most)?;
        let bytes = std::fs::read(place).map_err(missing)?;
        must_be(digest, &bytes, what)?;
        Ok(Bytes::from(bytes))
    }
}

fn within(what: &str, size: u64, most: u64) -> Result<(), OciError> {
    if size > most {
        return Err(OciError::TooLarge { what: what.to_owned(), size, most });
    }
    Ok(())
}

/// Writes every blob under its digest, checked, and answers with the index.
fn unpack(source: impl Read, folder: &Path) -> Result<Option<Vec<u8>>, OciError> {
    let damaged = |error: std::io::Error| OciError::Bundle(format!("it is no tar file, or a damaged one: {error}"));
    let mut index = None;
    let mut archive = tar::Archive::new(source);
    for entry in archive.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).trim_start_matches("./").to_owned();
        match entry.header().entry_type() {
            tar::EntryType::Directory => continue,
            tar::EntryType::Regular => {}
            _ => return Err(OciError::Bundle(format!("`{name}` is neither a file nor a folder"))),
        }
        if name == "oci-layout" {
            continue;
        }
        if name == "index.json" {
            within("`index.json` in the bundle", entry.size(), MAX_MANIFEST_BYTES as u64)?;
            let mut text = Vec::new();
            entry.read_to_end(&mut text).map_err(damaged)?;
            index = Some(text);
            continue;
        }
        let digest = name.strip_prefix(BLOBS).and_then(|digits| digits.parse::<Digest>().ok());
        let digest = digest.ok_or_else(|| OciError::Bundle(format!("`{name}` has no place in an OCI image layout")))?;
        within(&format!("`{name}` in the bundle"), entry.size(), MAX_COMPONENT_BYTES)?;
        let file = File::create(folder.join(digest.hex())).map_err(OciError::io("unpack the bundle"))?;
        let actual = copy(&mut entry, file)?;
        if actual != digest {
            let (expected, actual) = (digest.to_string(), actual.to_string());
            return Err(OciError::WrongDigest { what: format!("`{name}` in the bundle"), expected, actual });
        }
    }
    Ok(index)
}

/// Copies, and answers with the digest of what was copied.
fn copy(from: &mut impl Read, mut to: File) -> Result<Digest, OciError> {
    let mut hasher = Sha256::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        let count = from.read(&mut piece).map_err(OciError::io("read the bundle"))?;
        if count == 0 {
            return Ok(Digest::from_bytes(hasher.finalize().into()));
        }
        hasher.update(&piece[..count]);
        to.write_all(&piece[..count]).map_err(OciError::io("unpack the bundle"))?;
    }
}
