//! The content of certificates, for people. Nothing here is verified or used for decisions.

use std::time::SystemTime;

use sha2::{Digest as _, Sha256};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::pem::{PemError, certificate_to_pem, certificates_from_pem};
use crate::secret::sha256;

/// One certificate of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFacts {
    /// The last common name of the subject; empty if there is none.
    pub common_name: String,
    /// When its validity begins.
    pub not_before: SystemTime,
    /// When its validity ends.
    pub not_after: SystemTime,
    /// Whether its basic constraints make it an authority (RFC 5280 section 4.2.1.9).
    pub is_authority: bool,
    /// Whether it may authenticate clients: its extended key usage says so, or is absent (section 4.2.1.12).
    pub is_for_clients: bool,
    /// `X509SHA256=` and its digest in hexadecimal: the credential id of KEP-4193.
    pub credential: String,
    /// The public key, as encoded in the certificate. Two certificates with the same key are one authority.
    pub public_key: Vec<u8>,
}

/// The time in which a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// When it begins.
    pub not_before: SystemTime,
    /// When it ends.
    pub not_after: SystemTime,
}

/// The file does not contain certificates.
#[derive(Debug, thiserror::Error)]
pub enum FactsError {
    /// Broken PEM.
    #[error(transparent)]
    Pem(#[from] PemError),
    /// PEM of something else.
    #[error("a certificate cannot be parsed")]
    Certificate,
}

// === impl CertificateFacts ===

impl CertificateFacts {
    /// Reads every certificate of a PEM file, in order. At least one.
    pub fn read(pem: &[u8]) -> Result<Vec<Self>, FactsError> {
        let certificates = certificates_from_pem(pem)?;
        certificates.iter().map(|der| Self::of(der).ok_or(FactsError::Certificate)).collect()
    }

    /// The validity of that certificate of a PEM file that expires last.
    pub(crate) fn last(pem: &[u8]) -> Option<Validity> {
        let certificates = Self::read(pem).ok()?;
        let last = certificates.iter().max_by_key(|certificate| certificate.not_after)?;
        Some(Validity { not_before: last.not_before, not_after: last.not_after })
    }

    fn of(der: &[u8]) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let common_name = certificate.subject().iter_common_name().last();
        let usage = certificate.extended_key_usage().ok()?;
        let Validity { not_before, not_after } = Validity::of(certificate.validity());
        Some(Self {
            common_name: common_name.and_then(|name| name.as_str().ok()).unwrap_or_default().to_owned(),
            not_before,
            not_after,
            is_authority: certificate.is_ca(),
            is_for_clients: usage.is_none_or(|usage| usage.value.client_auth || usage.value.any),
            credential: credential(der),
            public_key: certificate.public_key().raw.to_vec(),
        })
    }
}

// === impl Validity ===

impl Validity {
    /// The dates of a certificate.
    pub(crate) fn of(dates: &x509_parser::certificate::Validity) -> Self {
        Self {
            not_before: super::date::system_time(dates.not_before),
            not_after: super::date::system_time(dates.not_after),
        }
    }
}

/// SHA-256 of the public keys (SubjectPublicKeyInfo, RFC 7469 section 2.4) of the certificates of a PEM file, in order.
fn key_digests(pem: &[u8]) -> Result<Vec<[u8; 32]>, FactsError> {
    Ok(CertificateFacts::read(pem)?.iter().map(|certificate| Sha256::digest(&certificate.public_key).into()).collect())
}

/// The certificate with this digest of its public key, in PEM.
pub fn with_key_digest(pem: &[u8], digest: &[u8; 32]) -> Option<String> {
    let at = key_digests(pem).ok()?.iter().position(|found| found == digest)?;
    certificates_from_pem(pem).ok()?.get(at).map(|der| certificate_to_pem(der))
}

/// The credential id of KEP-4193: `X509SHA256=` and the digest of a certificate.
pub(crate) fn credential(certificate: &[u8]) -> String {
    format!("X509SHA256={}", sha256(certificate))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::pki::Authority;

    #[test]
    fn authorities_and_issued_certificates_are_distinguished() {
        let authority = Authority::create("clients", Duration::from_secs(3600)).unwrap();
        let user = authority.issue_client("jane", &["dev".to_owned()], Duration::from_secs(60)).unwrap();
        let [ca] = &CertificateFacts::read(authority.certificate_pem().as_bytes()).unwrap()[..] else { panic!() };
        assert!(ca.is_authority && ca.common_name == "clients" && ca.not_after == authority.not_after());
        let leaf = &CertificateFacts::read(user.certificate.as_bytes()).unwrap()[0];
        assert!(!leaf.is_authority && leaf.is_for_clients && leaf.common_name == "jane");
        assert!(leaf.not_before < SystemTime::now() && leaf.not_after < ca.not_after);
        assert_ne!(leaf.public_key, ca.public_key);
    }

    #[test]
    fn invalid_certificates_are_reported() {
        assert!(matches!(CertificateFacts::read(b"hello"), Err(FactsError::Pem(_))));
        let pem = "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
        assert!(matches!(CertificateFacts::read(pem.as_bytes()), Err(FactsError::Certificate)));
    }
}
