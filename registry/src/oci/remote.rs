//! One artefact in a registry.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use noetl_contract::Digest;
use oci_client::client::{ClientConfig, ClientProtocol};
use oci_client::manifest::OCI_IMAGE_MEDIA_TYPE;
use oci_client::{Client, Reference, RegistryOperation};

use super::artefact::{
    Artefact, Layer, Packed, add_attestations, attestation_tag, envelope_about, envelope_layers, layer, must_be, pack,
    pack_attestations,
};
use super::credentials::Credentials;
use super::error::OciError;
use super::reference::{Name, OciReference};
use crate::signatures::{Envelope, join};

/// Longest wait for a connection, and for the next piece of an answer.
const PATIENCE: Duration = Duration::from_secs(30);

pub struct Remote {
    client: Client,
    reference: OciReference,
    credentials: Credentials,
}

/// What a push made, or found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// The artefact's own digest, for `@sha256:...`.
    pub manifest: Digest,
    /// The component's.
    pub component: Digest,
    /// Attestations beside it that do not hold or are about other things: they stay there, and are not taken along.
    pub left_out: usize,
}

/// What lies beside an artefact.
#[derive(Default)]
struct Beside {
    manifest: Option<Bytes>,
    /// The layers that hold what is about the component, and what they hold.
    layers: Vec<Digest>,
    envelopes: Vec<Envelope>,
    left_out: usize,
}

impl Remote {
    /// `plain_http` allows a registry elsewhere without TLS; one on this machine needs no such word.
    pub fn new(reference: OciReference, credentials: Credentials, plain_http: bool) -> Self {
        let plain = plain_http || reference.is_this_machine();
        let config = ClientConfig {
            protocol: if plain { ClientProtocol::Http } else { ClientProtocol::Https },
            connect_timeout: Some(PATIENCE),
            read_timeout: Some(PATIENCE),
            user_agent: concat!("noetl/", env!("CARGO_PKG_VERSION")),
            platform_resolver: None,
            ..ClientConfig::default()
        };
        Self { client: Client::new(config), reference, credentials }
    }

    /// Blobs first, then the manifest that names them, then its attestations together with those that are there.
    pub async fn push(&self, artefact: &Artefact) -> Result<Published, OciError> {
        if matches!(self.reference.name, Some(Name::Digest(_))) {
            let problem = "a push names a tag, since the digest follows from the bytes".to_owned();
            return Err(OciError::Reference { given: self.reference.to_string(), problem });
        }
        let packed = pack(&artefact.component)?;
        let target = self.reference.client_form()?;
        self.client
            .auth(&target, &self.credentials.0, RegistryOperation::Push)
            .await
            .map_err(|error| self.failed(error))?;
        self.put(&target, &packed).await?;
        let (manifest, component) = (packed.digest(), Digest::of(&artefact.component));
        let mut left_out = 0;
        if !artefact.attestations.is_empty() {
            let at = self.beside(&manifest)?;
            let there = self.attestations(&at, &component).await?;
            left_out = there.left_out;
            let all = join(&component, &there.envelopes, &artefact.attestations).map_err(|error| {
                let (registry, problem) = (self.reference.registry().to_owned(), error.to_string());
                OciError::Registry { registry, problem }
            })?;
            if all != there.envelopes {
                let packed = match &there.manifest {
                    Some(manifest) => add_attestations(manifest, &there.layers, &all, &at.to_string())?,
                    None => pack_attestations(&all),
                };
                self.put(&at, &packed).await?;
            }
        }
        Ok(Published { manifest, component, left_out })
    }

    pub async fn pull(&self) -> Result<(Artefact, Published), OciError> {
        let target = self.reference.client_form()?;
        let what = self.reference.to_string();
        let (manifest, _) = self
            .client
            .pull_manifest_raw(&target, &self.credentials.0, &[OCI_IMAGE_MEDIA_TYPE])
            .await
            .map_err(|error| self.failed(error))?;
        let published = Digest::of(&manifest);
        if let Some(Name::Digest(wanted)) = &self.reference.name
            && *wanted != published.to_string()
        {
            let (expected, actual) = (wanted.clone(), published.to_string());
            return Err(OciError::WrongDigest { what, expected, actual });
        }
        let bytes = self.blob(&target, &layer(&manifest, &what)?).await?;
        let component = Digest::of(&bytes);
        let beside = self.attestations(&self.beside(&published)?, &component).await?;
        let published = Published { manifest: published, component, left_out: beside.left_out };
        Ok((Artefact { component: bytes, attestations: beside.envelopes }, published))
    }

    async fn put(&self, target: &Reference, packed: &Packed) -> Result<(), OciError> {
        for blob in &packed.blobs {
            let digest = Digest::of(blob).to_string();
            let there = self.client.blob_exists(target, &digest).await.map_err(|error| self.failed(error))?;
            if !there {
                self.client.push_blob(target, blob.clone(), &digest).await.map_err(|error| self.failed(error))?;
            }
        }
        let media_type = http::HeaderValue::from_static(OCI_IMAGE_MEDIA_TYPE);
        let pushed = self.client.push_manifest_raw(target, packed.manifest.clone(), media_type).await;
        pushed.map(drop).map_err(|error| self.failed(error))
    }

    /// What is said beside an artefact about its component.
    async fn attestations(&self, at: &Reference, component: &Digest) -> Result<Beside, OciError> {
        let pulled = self.client.pull_manifest_raw(at, &self.credentials.0, &[OCI_IMAGE_MEDIA_TYPE]).await;
        let manifest = match pulled.map_err(|error| self.failed(error)) {
            Ok((manifest, _)) => manifest,
            Err(OciError::NotFound(_)) => return Ok(Beside::default()),
            Err(error) => return Err(error),
        };
        let mut beside = Beside::default();
        for layer in envelope_layers(&manifest, &at.to_string())? {
            match envelope_about(&self.blob(at, &layer).await?, component) {
                Some(envelope) => {
                    beside.layers.push(layer.digest);
                    beside.envelopes.push(envelope);
                }
                None => beside.left_out += 1,
            }
        }
        beside.manifest = Some(manifest);
        Ok(beside)
    }

    fn beside(&self, manifest: &Digest) -> Result<Reference, OciError> {
        self.reference.with_tag(&attestation_tag(manifest)).client_form()
    }

    async fn blob(&self, target: &Reference, layer: &Layer) -> Result<Bytes, OciError> {
        let name = layer.digest.to_string();
        let mut pieces =
            self.client.pull_blob_stream(target, name.as_str()).await.map_err(|error| self.failed(error))?.stream;
        let mut bytes = BytesMut::with_capacity(usize::try_from(layer.size).unwrap_or(0));
        while let Some(piece) = pieces.next().await {
            bytes.extend_from_slice(&piece.map_err(OciError::io("read from the registry"))?);
            if bytes.len() as u64 > layer.size {
                let (size, most) = (bytes.len() as u64, layer.size);
                return Err(OciError::TooLarge { what: format!("the blob {name}"), size, most });
            }
        }
        must_be(&layer.digest, &bytes, &self.reference.to_string())?;
        Ok(bytes.freeze())
    }

    fn failed(&self, error: oci_client::errors::OciDistributionError) -> OciError {
        OciError::of(self.reference.registry(), &self.reference.to_string(), error)
    }
}
