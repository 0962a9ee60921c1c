//! Objects in which the host publishes its certificate and names: token Secrets and `kube-root-ca.crt`.
//!
//! `karmadactl join` uses `ca.crt` of a token Secret to verify the member, so it must be the CA of the endpoint.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use crate::json::{Cursor, Edits, Malformed, quoted};
use crate::program::Place;

/// `SecretTypeServiceAccountToken` in core/v1 types.go.
pub(crate) const TOKEN_SECRET: &str = "kubernetes.io/service-account-token";
/// `RootCACertConfigMapName` in pkg/controller/certificates/rootcacertpublisher.
pub(crate) const ROOT_CERTIFICATE: &str = "kube-root-ca.crt";

/// The certificate by which clients verify the endpoint of the virtual cluster.
#[derive(Debug)]
pub struct Certificate {
    /// As in the data of a Secret.
    base64: Bytes,
    /// As the inside of a JSON string.
    text: Bytes,
    /// As it is.
    pem: Bytes,
}

/// The parts of a possible credential. Only the end of the object shows whether it is one.
#[derive(Default)]
pub(crate) struct Credential {
    is_token: bool,
    is_root_certificate: bool,
    namespaces: Vec<Range<usize>>,
    certificates: Vec<Range<usize>>,
}

// === impl Certificate ===

impl Certificate {
    /// One or more certificates in PEM.
    pub fn new(pem: &str) -> Self {
        let text = quoted(pem);
        Self {
            base64: Bytes::from(STANDARD.encode(pem)),
            text: Bytes::copy_from_slice(&text.as_bytes()[1..text.len() - 1]),
            pem: Bytes::copy_from_slice(pem.as_bytes()),
        }
    }

    /// As it is in protobuf.
    pub(crate) fn pem(&self) -> Bytes {
        self.pem.clone()
    }
}

// === impl Credential ===

impl Credential {
    /// Records the value at a place, and skips it.
    pub(crate) fn note(&mut self, place: Place, cursor: &mut Cursor<'_>) -> Result<(), Malformed> {
        if cursor.peek()? != b'"' {
            return cursor.skip();
        }
        let text = cursor.string()?;
        match place {
            Place::SecretType => self.is_token = text.is(TOKEN_SECRET),
            Place::ConfigMapName => self.is_root_certificate = text.is(ROOT_CERTIFICATE),
            Place::SecretNamespace => self.namespaces.push(text.range()),
            _ => self.certificates.push(text.range()),
        }
        Ok(())
    }

    /// Makes the edits, if it is a credential. `certificate`, if any, replaces the one in the object. `map` returns the
    /// new namespace, or `None` if it stays unchanged.
    pub(crate) fn conclude(
        self,
        certificate: Option<&Certificate>,
        cursor: &Cursor<'_>,
        edits: &mut Edits,
        map: impl Fn(&[u8]) -> Option<Bytes>,
    ) {
        let certificate = match certificate {
            Some(certificate) if self.is_token => Some(&certificate.base64),
            Some(certificate) if self.is_root_certificate => Some(&certificate.text),
            _ => None,
        };
        if let Some(certificate) = certificate {
            for range in self.certificates {
                edits.replace(range, certificate.clone());
            }
        }
        if self.is_token {
            for range in self.namespaces {
                let namespace = STANDARD.decode(cursor.slice(range.clone()));
                if let Some(mapped) = namespace.ok().and_then(|namespace| map(&namespace)) {
                    edits.replace(range, Bytes::from(STANDARD.encode(mapped)));
                }
            }
        }
    }
}
