//! Reads and writes PEM (RFC 7468).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::secret::Secret;

/// A certificate (or a chain, leaf first) and its private key, both as PEM text.
#[derive(Clone, Debug)]
pub struct PemPair {
    /// Public.
    pub certificate: String,
    /// PKCS #8, secret.
    pub key: Secret,
}

/// The text is not the required kind of PEM.
#[derive(Debug, thiserror::Error)]
pub enum PemError {
    /// A certificate section is broken.
    #[error("not a PEM certificate")]
    Certificate(#[source] rustls_pki_types::pem::Error),
    /// There is no certificate section.
    #[error("there is no CERTIFICATE section")]
    NoCertificate,
    /// There is no usable key section (PKCS #8, SEC 1 or PKCS #1).
    #[error("not a PEM private key")]
    Key(#[source] rustls_pki_types::pem::Error),
}

/// Reads every certificate of a PEM file, in order; other sections are skipped. At least one.
pub fn certificates_from_pem(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, PemError> {
    let certificates =
        CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>().map_err(PemError::Certificate)?;
    if certificates.is_empty() {
        return Err(PemError::NoCertificate);
    }
    Ok(certificates)
}

/// Reads the first private key of a PEM file.
pub fn key_from_pem(pem: &[u8]) -> Result<PrivateKeyDer<'static>, PemError> {
    PrivateKeyDer::from_pem_slice(pem).map_err(PemError::Key)
}

/// The certificates of a PEM file, in PEM. Nothing else that the file contains, such as a key, is returned.
pub fn only_certificates(pem: &[u8]) -> Result<String, PemError> {
    Ok(certificates_from_pem(pem)?.iter().map(|der| certificate_to_pem(der)).collect())
}

/// Writes a certificate as a PEM section, lines of 64 characters.
pub(super) fn certificate_to_pem(der: &[u8]) -> String {
    let encoded = STANDARD.encode(der);
    let mut pem = String::with_capacity(encoded.len() + encoded.len() / 64 + 64);
    pem.push_str("-----BEGIN CERTIFICATE-----\n");
    let mut rest = encoded.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(64));
        pem.push_str(line);
        pem.push('\n');
        rest = after;
    }
    pem.push_str("-----END CERTIFICATE-----\n");
    pem
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sections_are_read_back(
            sections in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..200), 1..4),
        ) {
            let pem = sections.iter().map(|der| certificate_to_pem(der)).collect::<String>();
            let read = certificates_from_pem(pem.as_bytes()).unwrap();
            prop_assert_eq!(read.iter().map(|der| der.to_vec()).collect::<Vec<_>>(), sections);
        }
    }

    #[test]
    fn a_file_without_certificates_is_an_error() {
        assert!(matches!(certificates_from_pem(b"hello"), Err(PemError::NoCertificate)));
    }
}
