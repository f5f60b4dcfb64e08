//! Encryption of a connection, as `sslmode` of a credential wants it.
//!
//! | mode | encrypted | the server's certificate |
//! |---|---|---|
//! | `disable` | no | |
//! | `prefer` (usual) | if the server can | not looked at, unless the credential has a root certificate |
//! | `require` | always | not looked at, unless the credential has a root certificate |
//! | `verify-ca`, `verify-full` | always | made by a known authority, for that very host |
//!
//! A password goes out in the clear, as some servers want it, only where the certificate was looked at or the server is on this
//! machine.

use std::net::IpAddr;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::super::SqlError;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TlsMode {
    Disable,
    #[default]
    Prefer,
    Require,
    Verify,
}

impl TlsMode {
    /// The mode of that name; nothing if there is none.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "disable" => Some(Self::Disable),
            "" | "allow" | "prefer" => Some(Self::Prefer),
            "require" => Some(Self::Require),
            "verify-ca" | "verify-full" => Some(Self::Verify),
            _ => None,
        }
    }

    /// Whether whoever answers may have the password itself: it has proven to be the server, or is on this machine.
    pub(super) fn trusts(self, root: Option<&str>, encrypted: bool, who: IpAddr) -> bool {
        who.is_loopback() || (encrypted && (self == Self::Verify || root.is_some()))
    }
}

pub(super) async fn encrypt(
    stream: TcpStream,
    host: &str,
    mode: TlsMode,
    root: Option<&str>,
) -> Result<TlsStream<TcpStream>, SqlError> {
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| SqlError::Connect("the host's name is none a certificate can have".to_owned()))?;
    let config = config(mode, root)?;
    let connected = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    connected.map_err(|error| SqlError::Connect(format!("encrypting failed: {error}")))
}

fn config(mode: TlsMode, root: Option<&str>) -> Result<ClientConfig, SqlError> {
    let invalid = |text: String| SqlError::Invalid(format!("the credential's certificate cannot be used: {text}"));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| SqlError::Connect(error.to_string()))?;
    let builder = match root {
        Some(text) => {
            let mut roots = RootCertStore::empty();
            for certificate in CertificateDer::pem_slice_iter(text.as_bytes()) {
                let certificate = certificate.map_err(|error| invalid(error.to_string()))?;
                roots.add(certificate).map_err(|error| invalid(error.to_string()))?;
            }
            if roots.is_empty() {
                return Err(invalid("there is none in it".to_owned()));
            }
            builder.with_root_certificates(roots)
        }
        None if mode == TlsMode::Verify => {
            let failed = |error: rustls::Error| SqlError::Connect(format!("encrypting failed: {error}"));
            builder.with_platform_verifier().map_err(failed)?
        }
        None => builder.dangerous().with_custom_certificate_verifier(Arc::new(Anybody(provider))),
    };
    Ok(builder.with_no_client_auth())
}

/// Takes any certificate: encrypted against those who listen, and no proof of who answers.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_itself_goes_to_a_server_that_was_verified_and_to_this_machine() {
        use TlsMode::{Disable, Prefer, Require, Verify};
        for (mode, root, encrypted, who, trusted) in [
            (Prefer, None, true, "192.0.2.1", false),
            (Require, None, true, "192.0.2.1", false),
            (Disable, None, false, "192.0.2.1", false),
            (Prefer, Some("a root"), true, "192.0.2.1", true),
            (Prefer, Some("a root"), false, "192.0.2.1", false),
            (Verify, None, true, "192.0.2.1", true),
            (Prefer, None, false, "127.0.0.1", true),
            (Disable, None, false, "::1", true),
        ] {
            let who = who.parse().expect("an address");
            assert_eq!(mode.trusts(root, encrypted, who), trusted, "{mode:?} {root:?} {encrypted} {who}");
        }
    }
}
