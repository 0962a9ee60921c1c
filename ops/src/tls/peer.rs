//! The identity in a verified certificate.

use std::time::SystemTime;

use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::x509::AttributeTypeAndValue;

use crate::pki::{CLOCK_SKEW, OID_UID, Requester, credential, equivalents, requester, system_time, time_of_enrolment};

/// What Kubernetes reads from the subject of a client certificate (`CommonNameUserConversion` in
/// `k8s.io/apiserver/pkg/authentication/request/x509/x509.go`). Only [`super::ClientCa::verify`] makes one, so the chain
/// behind it was verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerIdentity {
    /// The common name, never empty: a user, or an agent's id.
    pub common_name: String,
    /// The organisations, in the certificate's order: groups.
    pub organizations: Vec<String>,
    /// The user's uid (OID 1.3.6.1.4.1.57683.2, KEP-5086).
    pub uid: Option<String>,
    /// `X509SHA256=` and the digest of the leaf in hexadecimal: the credential id of KEP-4193.
    pub credential: String,
    /// The credential ids of the same certificate with another valid signature, which everybody can compute from it.
    pub equivalents: Vec<String>,
    /// When the peer has proven who it is. This is when its first certificate was issued, if it renews its certificate with the
    /// previous one ([`Authority::certify_client`](crate::pki::Authority::certify_client)). Otherwise, it is when the leaf begins
    /// to be valid: an authority may set this to a time before it has issued the certificate ([`CLOCK_SKEW`]), but never to a
    /// later one.
    pub enrolled: SystemTime,
    /// Who has requested the certificate for the peer
    /// ([`Authority::certify_user`](crate::pki::Authority::certify_user)).
    pub requester: Option<Requester>,
    /// When the chain must be verified again: when the first certificate expires of those that were valid when the
    /// chain was verified. A connection may live longer, but requests on it should not.
    pub valid_until: SystemTime,
    /// The certificates as the peer sent them, leaf first.
    pub chain: Vec<CertificateDer<'static>>,
}

/// The subject cannot be parsed. No part of it is ignored: an unreadable group could be one that removes rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnreadableIdentity {
    /// Not X.509.
    #[error("the certificate cannot be parsed")]
    Certificate,
    /// There is no common name, or it is empty.
    #[error("the subject has no common name")]
    NoCommonName,
    /// An attribute is not text.
    #[error("an attribute of the subject is not text")]
    NotText,
    /// The uid is empty, or there are several. Kubernetes refuses both, too.
    #[error("the subject has an empty uid or several")]
    Uid,
}

// === impl PeerIdentity ===

impl PeerIdentity {
    /// Reads a chain that was verified at the time `now`.
    pub(super) fn read(chain: &[CertificateDer<'_>], now: SystemTime) -> Result<Self, UnreadableIdentity> {
        let leaf = chain.first().ok_or(UnreadableIdentity::Certificate)?;
        let (_, certificate) = X509Certificate::from_der(leaf).map_err(|_| UnreadableIdentity::Certificate)?;
        let subject = certificate.subject();
        // Go's pkix.Name, which Kubernetes uses, keeps the last of several common names.
        let common_name = subject.iter_common_name().last().ok_or(UnreadableIdentity::NoCommonName).and_then(text)?;
        if common_name.is_empty() {
            return Err(UnreadableIdentity::NoCommonName);
        }
        let organizations = subject.iter_organization().map(text).collect::<Result<_, _>>()?;
        let mut uids = subject.iter_attributes().filter(|attribute| attribute.attr_type().as_bytes() == OID_UID);
        let uid = uids.next().map(text).transpose()?;
        if uids.next().is_some() || uid.as_deref() == Some("") {
            return Err(UnreadableIdentity::Uid);
        }
        Ok(Self {
            common_name,
            organizations,
            uid,
            credential: credential(leaf),
            equivalents: equivalents(leaf),
            enrolled: enrolled(&certificate),
            requester: requester(&certificate),
            valid_until: first_end(chain, now).unwrap_or_else(|| system_time(certificate.validity().not_after)),
            chain: chain.iter().map(|der| der.clone().into_owned()).collect(),
        })
    }
}

/// Other authorities may sign any name that somebody asks for. So a time of enrolment can only be earlier than the certificate.
pub(super) fn enrolled(certificate: &X509Certificate<'_>) -> SystemTime {
    let not_before = system_time(certificate.validity().not_before);
    time_of_enrolment(certificate).map_or(not_before, |time| time.min(not_before + CLOCK_SKEW))
}

/// When the first certificate expires of those that are valid at the time `now`. The verifier does not report which
/// certificates it has used, but it uses none that has expired or cannot be parsed.
fn first_end(chain: &[CertificateDer<'_>], now: SystemTime) -> Option<SystemTime> {
    let ends = chain.iter().filter_map(|der| {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        Some(system_time(certificate.validity().not_after))
    });
    ends.filter(|end| now < *end).min()
}

fn text(attribute: &AttributeTypeAndValue<'_>) -> Result<String, UnreadableIdentity> {
    attribute.as_str().map(str::to_owned).map_err(|_| UnreadableIdentity::NotText)
}
