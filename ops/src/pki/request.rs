//! Certificate signing requests (PKCS #10, RFC 2986): a machine creates its key where it uses it, and only the public half leaves
//! the machine.

use rcgen::{CertificateParams, DistinguishedName, KeyPair, SubjectPublicKeyInfo};
use rustls_pki_types::CertificateSigningRequestDer;
use rustls_pki_types::pem::PemObject as _;
use x509_parser::prelude::{FromDer, X509CertificationRequest};

use crate::secret::Secret;

/// A new key, and the request to certify it.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// In PEM, PKCS#8.
    pub key: Secret,
    /// In PEM. It contains the public key, and nothing else: the authority decides about the rest of the certificate.
    pub request: String,
}

/// A public key whose owner has enrolled that it holds the private key.
#[derive(Debug)]
pub struct RequestedKey(SubjectPublicKeyInfo);

/// The bytes are not a request of this kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// No PEM of a request.
    #[error("it is not a certificate signing request in PEM")]
    Pem,
    /// Broken DER.
    #[error("the certificate signing request cannot be parsed")]
    Parse,
    /// The signature is not that of the key in the request.
    #[error("the signature of the certificate signing request is invalid")]
    Signature,
    /// A key that this process does not certify.
    #[error("the type of the public key is not supported")]
    Key,
}

/// No key can be created.
#[derive(Debug, thiserror::Error)]
#[error("the cryptography failed")]
pub struct NewKeyError(#[source] rcgen::Error);

/// The maximum length of a request in DER, in bytes. One with an RSA key of 4096 bits has about 1.2 KB.
const MAX_LENGTH: usize = 4096;

// === impl NewKey ===

impl NewKey {
    /// Creates a key (ECDSA P-256) and a request.
    pub fn create() -> Result<Self, NewKeyError> {
        let key = KeyPair::generate().map_err(NewKeyError)?;
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        let request = params.serialize_request(&key).and_then(|request| request.pem()).map_err(NewKeyError)?;
        Ok(Self { key: Secret::from(key.serialize_pem()), request })
    }
}

// === impl RequestedKey ===

impl RequestedKey {
    /// Reads a request in PEM, and verifies its signature. Everything in it but the key is ignored.
    pub fn verify(pem: &[u8]) -> Result<Self, RequestError> {
        let der = CertificateSigningRequestDer::from_pem_slice(pem).map_err(|_| RequestError::Pem)?;
        if der.len() > MAX_LENGTH {
            return Err(RequestError::Parse);
        }
        let (rest, request) = X509CertificationRequest::from_der(&der).map_err(|_| RequestError::Parse)?;
        if !rest.is_empty() {
            return Err(RequestError::Parse);
        }
        request.verify_signature().map_err(|_| RequestError::Signature)?;
        let key = request.certification_request_info.subject_pki.raw;
        SubjectPublicKeyInfo::from_der(key).map(Self).map_err(|_| RequestError::Key)
    }

    pub(super) fn public(&self) -> &SubjectPublicKeyInfo {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use proptest::prelude::*;

    use super::*;
    use crate::pki::{Authority, certificates_from_pem};
    use crate::tls::{ClientCa, Identity};

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_requested_key_gets_a_certificate_for_the_name_that_the_authority_chooses() {
        let authority = Authority::create("agents", HOUR).unwrap();
        let new = NewKey::create().unwrap();
        let key = RequestedKey::verify(new.request.as_bytes()).unwrap();
        let now = SystemTime::now();
        let pem = authority.certify_client(&key, "site-a", HOUR / 2, now).unwrap();
        // The certificate belongs to the private key, and the authority's clients accept it.
        Identity::from_pem(pem.as_bytes(), new.key.expose().as_bytes()).unwrap();
        let ca = ClientCa::from_pem(authority.certificate_pem().as_bytes()).unwrap();
        let chain = certificates_from_pem(pem.as_bytes()).unwrap();
        let peer = ca.verify(&chain, now + Duration::from_secs(1)).unwrap();
        assert_eq!((peer.common_name.as_str(), peer.organizations.len()), ("site-a", 0));
        assert!(peer.valid_until <= now + HOUR / 2);
    }

    #[test]
    fn a_changed_request_is_refused() {
        let new = NewKey::create().unwrap();
        let der = CertificateSigningRequestDer::from_pem_slice(new.request.as_bytes()).unwrap();
        let pem = |der: &[u8]| {
            let lines = base64_lines(der);
            format!("-----BEGIN CERTIFICATE REQUEST-----\n{lines}-----END CERTIFICATE REQUEST-----\n")
        };
        assert!(RequestedKey::verify(pem(&der).as_bytes()).is_ok());
        let (_, request) = X509CertificationRequest::from_der(&der).unwrap();
        let signed = request.certification_request_info.raw;
        let begin = der.windows(signed.len()).position(|window| window == signed).unwrap();
        for at in begin..begin + signed.len() {
            let mut changed = der.to_vec();
            changed[at] ^= 1;
            assert!(RequestedKey::verify(pem(&changed).as_bytes()).is_err(), "byte {at}");
        }
        assert_eq!(RequestedKey::verify(b"hello").unwrap_err(), RequestError::Pem);
    }

    fn base64_lines(der: &[u8]) -> String {
        use base64::Engine as _;
        let text = base64::engine::general_purpose::STANDARD.encode(der);
        text.as_bytes().chunks(64).map(|line| format!("{}\n", String::from_utf8_lossy(line))).fold(
            String::new(),
            |mut lines, line| {
                lines.push_str(&line);
                lines
            },
        )
    }

    proptest! {
        #[test]
        fn hostile_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(RequestedKey::verify(&bytes).is_err());
        }
    }
}
