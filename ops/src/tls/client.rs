//! Client configurations: for the agent's connections to the proxy-server and to its API server.

use std::sync::Arc;
use std::time::SystemTime;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ResolvesClientCert, WebPkiServerVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::accept_any::AcceptAnyChain;
use super::client_ca::{CaError, roots};
use super::peer::enrolled;
use super::server::TlsVersions;
use crate::files::Watched;
use crate::pki::{self, CertificateFacts, PemError, Validity};

/// The authorities that a server's certificate must chain to.
#[derive(Clone, Debug)]
pub struct ServerCa {
    verifier: Arc<WebPkiServerVerifier>,
    validity: Option<Validity>,
}

/// A client's own certificate and key.
#[derive(Clone, Debug)]
pub struct Identity {
    key: Arc<CertifiedKey>,
    common_name: Option<String>,
    validity: Validity,
    enrolled: SystemTime,
}

/// The files are not those of a client identity.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// Broken PEM.
    #[error(transparent)]
    Pem(#[from] PemError),
    /// The certificate is not X.509.
    #[error("the certificate cannot be parsed")]
    Certificate,
    /// The key cannot be used, or belongs to another certificate.
    #[error("the private key does not match the certificate")]
    Key(#[source] Error),
}

#[derive(Debug)]
struct ReloadableServerCa {
    ca: Watched<ServerCa>,
    algorithms: WebPkiSupportedAlgorithms,
}

#[derive(Debug)]
struct ReloadableIdentity(Watched<Identity>);

/// A client configuration whose authorities and identity follow their files: a reload applies from the next handshake
/// on. `alpn` is in order of preference.
pub fn client_config(
    server_ca: Watched<ServerCa>,
    identity: Option<Watched<Identity>>,
    alpn: &[&[u8]],
    versions: TlsVersions,
) -> ClientConfig {
    let provider = super::provider();
    let versions: &[&rustls::SupportedProtocolVersion] = match versions {
        TlsVersions::Tls13 => &[&rustls::version::TLS13],
        TlsVersions::Tls12And13 => &[&rustls::version::TLS13, &rustls::version::TLS12],
    };
    let verifier = ReloadableServerCa { ca: server_ca, algorithms: provider.signature_verification_algorithms };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .expect("aws-lc-rs has cipher suites for TLS 1.2 and 1.3")
        .dangerous() // rustls calls every verifier of one's own dangerous; this one is webpki's, made reloadable
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match identity {
        Some(identity) => builder.with_client_cert_resolver(Arc::new(ReloadableIdentity(identity))),
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    // A resumed session keeps the old identity and skips the verifier, so a reload would have no effect.
    config.resumption = rustls::client::Resumption::disabled();
    config
}

/// A client configuration that accepts every certificate of a server, for TLS 1.3. Send nothing secret over such a connection, and
/// trust nothing in a response unless something else proves it.
pub fn unverified_client_config(alpn: &[&[u8]]) -> ClientConfig {
    let provider = super::provider();
    let verifier = AcceptAnyChain::new(&provider);
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("aws-lc-rs has cipher suites for TLS 1.3")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    config.resumption = rustls::client::Resumption::disabled();
    config
}

// === impl ServerCa ===

impl ServerCa {
    /// Reads the authorities' certificates; every one in the file is trusted.
    pub fn from_pem(certificates: &[u8]) -> Result<Self, CaError> {
        let roots = Arc::new(roots(certificates)?);
        let verifier = WebPkiServerVerifier::builder_with_provider(roots, super::provider())
            .build()
            .map_err(|_| CaError::Empty)?;
        Ok(Self { verifier, validity: CertificateFacts::last(certificates) })
    }

    /// The authorities that the system trusts. Those that cannot be used are ignored, as OpenSSL and Go do.
    pub fn of_system() -> Result<Self, CaError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), super::provider())
            .build()
            .map_err(|_| CaError::Empty)?;
        Ok(Self { verifier, validity: None })
    }

    /// The validity of that authority whose own certificate expires last, if it can be read.
    pub fn validity(&self) -> Option<Validity> {
        self.validity
    }
}

// === impl Identity ===

impl Identity {
    /// Reads a certificate chain (leaf first) and its key, and checks that they belong together.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, IdentityError> {
        let chain = pki::certificates_from_pem(certificates)?;
        let key = pki::key_from_pem(key)?;
        let (_, leaf) = X509Certificate::from_der(&chain[0]).map_err(|_| IdentityError::Certificate)?;
        let validity = Validity::of(leaf.validity());
        let enrolled = enrolled(&leaf);
        let common_name = leaf.subject().iter_common_name().last();
        let common_name = common_name.and_then(|name| name.as_str().ok()).map(str::to_owned);
        let key = CertifiedKey::from_der(chain, key, &super::provider()).map_err(IdentityError::Key)?;
        Ok(Self { key: Arc::new(key), common_name, validity, enrolled })
    }

    /// The common name in the certificate; `None` if its subject has no readable one.
    pub fn common_name(&self) -> Option<&str> {
        self.common_name.as_deref()
    }

    /// The validity of the certificate.
    pub fn validity(&self) -> Validity {
        self.validity
    }

    /// When the client has enrolled: [`PeerIdentity::enrolled`](super::PeerIdentity::enrolled) for its peers.
    pub fn enrolled(&self) -> SystemTime {
        self.enrolled
    }
}

// === impl ReloadableServerCa ===

impl ServerCertVerifier for ReloadableServerCa {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.ca.borrow().verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
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

// === impl ReloadableIdentity ===

impl ResolvesClientCert for ReloadableIdentity {
    fn resolve(&self, _root_hint_subjects: &[&[u8]], _sigschemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        // There is only one identity. If the server does not accept it, its error is more helpful than a missing
        // certificate.
        Some(Arc::clone(&self.0.borrow().key))
    }

    fn has_certs(&self) -> bool {
        true
    }
}
