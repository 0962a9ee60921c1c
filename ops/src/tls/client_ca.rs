//! The authority of client certificates: for one cluster's clients, or for the agents.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};

use super::peer::{PeerIdentity, UnreadableIdentity};
use super::verified::VerifiedChains;
use crate::files::Watched;
use crate::pki::{self, CertificateFacts, PemError, Validity};

/// The maximum number of certificates of a client. Those of Kubernetes send one to three.
const MAX_CHAIN: usize = 4;

/// The maximum size of a chain, in bytes. The time that webpki needs to find a path grows steeply with the number of certificates, and
/// whoever sends them is not authenticated yet.
const MAX_CHAIN_BYTES: usize = 16 * 1024;

/// Verifies chains of client certificates. Needs only the authority's certificate, not its key.
#[derive(Clone, Debug)]
pub struct ClientCa {
    verifier: Arc<dyn ClientCertVerifier>,
    validity: Option<Validity>,
    verified: Arc<VerifiedChains>,
}

/// The file does not contain certificates of authorities.
#[derive(Debug, thiserror::Error)]
pub enum CaError {
    /// Broken PEM.
    #[error(transparent)]
    Pem(#[from] PemError),
    /// A certificate that cannot be a trust anchor.
    #[error("a certificate cannot be used as a CA certificate")]
    Anchor(#[source] Error),
    /// No certificate in the file can be a trust anchor.
    #[error("the file contains no CA certificate")]
    Empty,
}

/// The certificate does not authenticate the client.
#[derive(Debug, thiserror::Error)]
pub enum ClientCertificateError {
    /// The client sent no certificate.
    #[error("no client certificate was sent")]
    Missing,
    /// The chain is too long to be verified for somebody who may be nobody.
    #[error("the client has sent more than {MAX_CHAIN} certificates, or more than {} KiB", MAX_CHAIN_BYTES / 1024)]
    TooLong,
    /// The certificate is expired, not yet valid, not for clients, or from another authority.
    #[error("the client certificate is not accepted")]
    Untrusted(#[source] Error),
    /// The chain is valid but does not identify the client.
    #[error("the subject of the client certificate does not identify a client")]
    Unreadable(#[from] UnreadableIdentity),
}

/// A [`ClientCa`] for rustls to use during the handshake, always in its newest version.
#[derive(Debug)]
pub(super) struct ReloadableClientCa {
    ca: Watched<ClientCa>,
    algorithms: WebPkiSupportedAlgorithms,
    is_mandatory: bool,
}

// === impl ClientCa ===

impl ClientCa {
    /// Reads the authorities' certificates. All in the file are trusted, so you can renew an authority by listing the
    /// old and the new one for some time.
    pub fn from_pem(certificates: &[u8]) -> Result<Self, CaError> {
        let roots = roots(certificates)?;
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), super::provider())
            .build()
            .map_err(|_| CaError::Empty)?;
        Ok(Self { verifier, validity: CertificateFacts::last(certificates), verified: Arc::new(VerifiedChains::new()) })
    }

    /// The validity of that authority whose own certificate expires last, if it can be read. Verifying a chain does not
    /// check this (RFC 5280 section 6.1 leaves it to the trust anchor's owner), but operators want to know it.
    pub fn validity(&self) -> Option<Validity> {
        self.validity
    }

    /// Verifies a chain (leaf first, as the peer sent it) at the time `now`: signatures up to this authority, validity,
    /// extended key usage. Then reads who the peer is. The handshake has already checked that the peer holds the key.
    ///
    /// Call it once per connection *and cluster*, also for resumed sessions: rustls restores the certificates of a
    /// resumed session without verifying them again.
    ///
    /// A chain that was accepted is not verified again for a few minutes.
    pub fn verify(
        &self,
        chain: &[CertificateDer<'_>],
        now: SystemTime,
    ) -> Result<PeerIdentity, ClientCertificateError> {
        if let Some(identity) = self.verified.get(chain, now) {
            return Ok(PeerIdentity::clone(&identity));
        }
        let (leaf, intermediates) = chain.split_first().ok_or(ClientCertificateError::Missing)?;
        if is_too_long(leaf, intermediates) {
            return Err(ClientCertificateError::TooLong);
        }
        // If the clock is before 1970, every certificate is "not yet valid".
        let since_epoch = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        self.verifier
            .verify_client_cert(leaf, intermediates, UnixTime::since_unix_epoch(since_epoch))
            .map_err(ClientCertificateError::Untrusted)?;
        let identity = Arc::new(PeerIdentity::read(chain, now)?);
        self.verified.insert(Arc::clone(&identity), now);
        Ok(Arc::unwrap_or_clone(identity))
    }

    #[cfg(test)]
    pub(super) fn verified(&self) -> &VerifiedChains {
        &self.verified
    }
}

fn is_too_long(leaf: &CertificateDer<'_>, intermediates: &[CertificateDer<'_>]) -> bool {
    let bytes: usize = leaf.len() + intermediates.iter().map(|certificate| certificate.len()).sum::<usize>();
    intermediates.len() >= MAX_CHAIN || bytes > MAX_CHAIN_BYTES
}

/// Reads trust anchors.
pub(super) fn roots(certificates: &[u8]) -> Result<RootCertStore, CaError> {
    let mut roots = RootCertStore::empty();
    for certificate in pki::certificates_from_pem(certificates)? {
        roots.add(certificate).map_err(CaError::Anchor)?;
    }
    Ok(roots)
}

// === impl ReloadableClientCa ===

impl ReloadableClientCa {
    pub(super) fn new(ca: Watched<ClientCa>, provider: &CryptoProvider, is_mandatory: bool) -> Self {
        Self { ca, algorithms: provider.signature_verification_algorithms, is_mandatory }
    }
}

impl ClientCertVerifier for ReloadableClientCa {
    fn client_auth_mandatory(&self) -> bool {
        self.is_mandatory
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        // Hints are borrowed from the verifier, so they could not follow a reload. Agents have only one certificate
        // anyway.
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        if is_too_long(end_entity, intermediates) {
            return Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure));
        }
        self.ca.borrow().verifier.verify_client_cert(end_entity, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests;
