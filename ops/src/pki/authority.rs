//! A certificate authority: a CA certificate with its key.

use std::fmt;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod,
    KeyPair, KeyUsagePurpose, PublicKeyData, SanType, SerialNumber,
};
use rustls::sign::CertifiedKey;
use rustls_pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName};
use sha2::{Digest as _, Sha256};
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::enrolment::{self, Requester};
use super::facts::Validity;
use super::name::{self, COMMON_NAME, Name, ORGANIZATION};
use super::pem::{self, PemError, PemPair};
use super::request::RequestedKey;
use crate::secret::Secret;

/// How far in the past certificates begin to be valid, because machines at the edge have slow clocks.
pub const CLOCK_SKEW: Duration = Duration::from_secs(5 * 60);

/// The maximum lifetime of a certificate: a hundred years. So X.509 can represent every date.
pub const MAX_LIFETIME: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Signs certificates. Created by [`Authority::create`] or read from files. See [`crate::files`] for reloading it.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// The issuing certificate's subject, byte for byte.
    subject: Vec<u8>,
    /// Whether the issuing certificate has a subject key identifier that leaves can point to.
    has_key_identifier: bool,
    /// What a server sends after its own certificate: the CA certificates that are not self-signed.
    intermediates: Vec<CertificateDer<'static>>,
    validity: Validity,
    pem: PemPair,
}

/// The files are not those of a certificate authority.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// Broken PEM.
    #[error(transparent)]
    Pem(#[from] PemError),
    /// The type or encoding of the key is not supported.
    #[error("the private key cannot be used for signing")]
    Key(#[source] rcgen::Error),
    /// A certificate is not X.509.
    #[error("a certificate cannot be parsed: {0}")]
    Certificate(String),
    /// No certificate of the file belongs to the key.
    #[error("the private key does not match any of the certificates")]
    KeyMismatch,
    /// The certificate may not sign others.
    #[error("the certificate is not a CA certificate (basicConstraints CA or keyUsage keyCertSign is missing)")]
    NotAnAuthority,
}

/// A certificate cannot be issued.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// The lifetime is zero or above [`MAX_LIFETIME`].
    #[error("the lifetime of a certificate must be between one second and a hundred years")]
    Lifetime,
    /// The authority's own certificate has expired, so nobody would accept the new one.
    #[error("the CA certificate has expired")]
    AuthorityExpired,
    /// A server name that a certificate cannot contain, or no name at all.
    #[error("the server names are missing, or cannot be written in a certificate")]
    Names,
    /// The cryptography failed (no randomness, a broken key).
    #[error("signing failed")]
    Signing(#[source] rcgen::Error),
    /// The TLS provider refused the new key.
    #[error("the TLS provider refuses the new key")]
    Provider(#[source] rustls::Error),
}

/// A certificate that was just signed.
struct Leaf {
    certificate: CertificateDer<'static>,
    key: KeyPair,
}

// === impl Authority ===

impl Authority {
    /// Creates a self-signed authority that may sign leaves, but no further authorities (pathlen 0).
    pub fn create(common_name: &str, lifetime: Duration) -> Result<Self, IssueError> {
        let now = SystemTime::now();
        let key = KeyPair::generate().map_err(IssueError::Signing)?;
        let mut params = params(now, expiry(now, lifetime)?)?;
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages =
            vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = params.self_signed(&key).map_err(IssueError::Signing)?;
        let pair =
            PemPair { certificate: pem::certificate_to_pem(certificate.der()), key: Secret::from(key.serialize_pem()) };
        Ok(Self::from_pair(pair).expect("what was just made is an authority"))
    }

    /// Reads an authority from the contents of its two files. The certificate file may hold a chain. The certificate
    /// that belongs to the key is the issuer. Those that are not self-signed are also sent to clients.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, AuthorityError> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self::from_pair(PemPair { certificate: text(certificates), key: Secret::from(text(key)) })
    }

    fn from_pair(mut pem: PemPair) -> Result<Self, AuthorityError> {
        let certificates = pem::certificates_from_pem(pem.certificate.as_bytes())?;
        // The file may also contain the key. Everybody gets the certificates.
        pem.certificate = certificates.iter().map(|der| pem::certificate_to_pem(der)).collect();
        let key = KeyPair::try_from(&pem::key_from_pem(pem.key.expose().as_bytes())?).map_err(AuthorityError::Key)?;
        let parsed = certificates
            .iter()
            .map(|der| X509Certificate::from_der(der).map(|(_, certificate)| certificate))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| AuthorityError::Certificate(error.to_string()))?;
        let spki = key.subject_public_key_info();
        let issuing = parsed
            .iter()
            .find(|certificate| certificate.public_key().raw == spki)
            .ok_or(AuthorityError::KeyMismatch)?;
        let may_sign = issuing.key_usage().ok().flatten().is_none_or(|usage| usage.value.key_cert_sign());
        if !issuing.is_ca() || !may_sign {
            return Err(AuthorityError::NotAnAuthority);
        }
        let key_identifier = issuing.iter_extensions().find_map(|extension| match extension.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(identifier) => Some(identifier.0.to_vec()),
            _ => None,
        });
        let has_key_identifier = key_identifier.is_some();
        let subject = issuing.subject().as_raw().to_vec();
        let validity = Validity::of(issuing.validity());
        let intermediates = certificates
            .iter()
            .zip(&parsed)
            .filter(|(_, certificate)| certificate.subject().as_raw() != certificate.issuer().as_raw())
            .map(|(der, _)| der.clone())
            .collect();

        // rcgen's own parser of CA certificates panics on some names. rcgen needs only the key identifier.
        let mut params = CertificateParams::default();
        params.key_identifier_method = key_identifier.map_or(KeyIdMethod::Sha256, KeyIdMethod::PreSpecified);
        Ok(Self { issuer: Issuer::new(params, key), subject, has_key_identifier, intermediates, validity, pem })
    }

    /// The certificate file, for those who trust this authority.
    pub fn certificate_pem(&self) -> &str {
        &self.pem.certificate
    }

    /// SHA-256 of the public key (SubjectPublicKeyInfo, RFC 7469 section 2.4).
    pub fn key_digest(&self) -> [u8; 32] {
        Sha256::digest(self.issuer.key().subject_public_key_info()).into()
    }

    /// Both files.
    pub fn pem(&self) -> &PemPair {
        &self.pem
    }

    /// When the authority's own certificate expires. No certificate that it issues is valid for longer.
    pub fn not_after(&self) -> SystemTime {
        self.validity.not_after
    }

    /// The validity of the authority's own certificate.
    pub fn validity(&self) -> Validity {
        self.validity
    }

    /// When a certificate that is issued at `now` for `lifetime` will expire.
    pub fn leaf_not_after(&self, now: SystemTime, lifetime: Duration) -> Result<SystemTime, IssueError> {
        if self.validity.not_after <= now {
            return Err(IssueError::AuthorityExpired);
        }
        Ok(expiry(now, lifetime)?.min(self.validity.not_after))
    }

    /// Issues a server certificate for these DNS names and IP addresses, with a new key, ready for rustls.
    pub fn issue_server(&self, names: &[ServerName<'_>], lifetime: Duration) -> Result<CertifiedKey, IssueError> {
        self.issue_server_at(names, lifetime, SystemTime::now())
    }

    pub(crate) fn issue_server_at(
        &self,
        names: &[ServerName<'_>],
        lifetime: Duration,
        now: SystemTime,
    ) -> Result<CertifiedKey, IssueError> {
        let mut params = params(now, self.leaf_not_after(now, lifetime)?)?;
        params.subject_alt_names = names.iter().map(alternative_name).collect::<Result<_, _>>()?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let first = names.first().ok_or(IssueError::Names)?.to_str();
        // Clients check only the alternative names. The common name is for people, and has at most 64 characters (RFC
        // 5280 appendix A.1, ub-common-name). An empty subject would make the alternative names critical.
        let common_name = if first.len() <= 64 { &*first } else { "atoll" };
        let leaf = self.sign(params, &Name::default().with(COMMON_NAME, common_name))?;
        let key = PrivatePkcs8KeyDer::from(leaf.key.serialize_der()).into();
        let key = rustls::crypto::aws_lc_rs::sign::any_ecdsa_type(&key).map_err(IssueError::Provider)?;
        let chain = std::iter::once(leaf.certificate).chain(self.intermediates.iter().cloned());
        Ok(CertifiedKey::new(chain.collect(), key))
    }

    /// Issues a client certificate with a new key. For a Kubernetes API server, `common_name` is the user, and each of
    /// `organizations` is a group.
    pub fn issue_client(
        &self,
        common_name: &str,
        organizations: &[impl AsRef<str>],
        lifetime: Duration,
    ) -> Result<PemPair, IssueError> {
        self.issue_client_after(common_name, organizations, lifetime, SystemTime::UNIX_EPOCH)
    }

    /// The same, but the certificate is not valid before `not_before`: certificates of the same name that are older may be
    /// revoked.
    pub fn issue_client_after(
        &self,
        common_name: &str,
        organizations: &[impl AsRef<str>],
        lifetime: Duration,
        not_before: SystemTime,
    ) -> Result<PemPair, IssueError> {
        self.issue_client_named(&subject(common_name, organizations), lifetime, SystemTime::now(), not_before)
    }

    pub(super) fn issue_client_named(
        &self,
        name: &Name,
        lifetime: Duration,
        now: SystemTime,
        not_before: SystemTime,
    ) -> Result<PemPair, IssueError> {
        let mut params = params(now, self.leaf_not_after(now, lifetime)?)?;
        params.not_before = params.not_before.max(not_before.into());
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let leaf = self.sign(params, name)?;
        Ok(PemPair { certificate: self.chain(&leaf.certificate), key: Secret::from(leaf.key.serialize_pem()) })
    }

    /// Issues a client certificate for a key that somebody else holds. Returns the certificate and its intermediates, in PEM.
    ///
    /// `enrolled` is when the client has proven who it is without a certificate. The certificate contains this time, and a
    /// certificate that renews it must contain the same. Otherwise, whoever has stolen a key could renew its certificate until
    /// it is newer than a revocation.
    pub fn certify_client(
        &self,
        key: &RequestedKey,
        common_name: &str,
        lifetime: Duration,
        enrolled: SystemTime,
    ) -> Result<String, IssueError> {
        let now = SystemTime::now();
        let mut params = params(now, self.leaf_not_after(now, lifetime)?)?;
        // A revocation can come from a machine whose clock is ahead.
        params.not_before = params.not_before.max(enrolled.checked_sub(CLOCK_SKEW).unwrap_or(enrolled).into());
        params.subject_alt_names = vec![enrolment::name(enrolled).map_err(IssueError::Signing)?];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let name = Name::default().with(COMMON_NAME, common_name);
        Ok(self.chain(&self.certify(params, &name, key.public())?))
    }

    /// Issues a client certificate for the key that somebody else holds, like [`issue_client_after`](Self::issue_client_after).
    /// The certificate contains who requested it for the user, so that it can be revoked together with the requester. Returns the
    /// certificate and its intermediates, in PEM.
    pub fn certify_user(
        &self,
        key: &RequestedKey,
        (common_name, organizations): (&str, &[impl AsRef<str>]),
        lifetime: Duration,
        not_before: SystemTime,
        requester: &Requester,
    ) -> Result<String, IssueError> {
        let now = SystemTime::now();
        let mut params = params(now, self.leaf_not_after(now, lifetime)?)?;
        params.not_before = params.not_before.max(not_before.into());
        params.subject_alt_names = vec![requester.name().map_err(IssueError::Signing)?];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        Ok(self.chain(&self.certify(params, &subject(common_name, organizations), key.public())?))
    }

    /// A certificate and its intermediates, in PEM.
    fn chain(&self, leaf: &CertificateDer<'_>) -> String {
        std::iter::once(leaf).chain(&self.intermediates).map(|der| pem::certificate_to_pem(der)).collect()
    }

    fn sign(&self, params: CertificateParams, subject: &Name) -> Result<Leaf, IssueError> {
        let key = KeyPair::generate().map_err(IssueError::Signing)?;
        Ok(Leaf { certificate: self.certify(params, subject, &key)?, key })
    }

    fn certify(
        &self,
        mut params: CertificateParams,
        subject: &Name,
        key: &impl PublicKeyData,
    ) -> Result<CertificateDer<'static>, IssueError> {
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = self.has_key_identifier;
        // Tells rcgen that the subject is not empty. The real subject is set below.
        params.distinguished_name.push(DnType::CommonName, "atoll");
        let certificate = params.signed_by(key, &self.issuer).map_err(IssueError::Signing)?;
        let renamed = name::rename_and_sign(certificate.der(), &self.subject, &subject.to_der(), self.issuer.key())
            .map_err(IssueError::Signing)?;
        Ok(renamed.into())
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").field("validity", &self.validity).finish_non_exhaustive()
    }
}

/// The subject of the certificate of a user: the common name is the user, and each organization is a group.
fn subject(common_name: &str, organizations: &[impl AsRef<str>]) -> Name {
    organizations
        .iter()
        .fold(Name::default(), |name, organization| name.with(ORGANIZATION, organization.as_ref()))
        .with(COMMON_NAME, common_name)
}

fn expiry(now: SystemTime, lifetime: Duration) -> Result<SystemTime, IssueError> {
    if lifetime < Duration::from_secs(1) || lifetime > MAX_LIFETIME {
        return Err(IssueError::Lifetime);
    }
    now.checked_add(lifetime).ok_or(IssueError::Lifetime)
}

/// The parameters of every certificate: dates and a serial number.
fn params(now: SystemTime, not_after: SystemTime) -> Result<CertificateParams, IssueError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.not_before = now.checked_sub(CLOCK_SKEW).unwrap_or(now).into();
    params.not_after = not_after.into();
    params.serial_number = Some(serial_number()?);
    Ok(params)
}

/// 126 random bits. RFC 5280 section 4.1.2.2 requires a positive number of at most 20 octets. A random one is unique
/// without a record of issued certificates.
fn serial_number() -> Result<SerialNumber, IssueError> {
    let mut bytes = [0; 16];
    rustls::crypto::aws_lc_rs::default_provider()
        .secure_random
        .fill(&mut bytes)
        .map_err(|_| IssueError::Signing(rcgen::Error::RemoteKeyError))?;
    bytes[0] = bytes[0] & 0x7f | 0x40;
    Ok(SerialNumber::from_slice(&bytes))
}

fn alternative_name(name: &ServerName<'_>) -> Result<SanType, IssueError> {
    match name {
        ServerName::DnsName(name) => name.as_ref().try_into().map(SanType::DnsName).map_err(|_| IssueError::Names),
        ServerName::IpAddress(address) => Ok(SanType::IpAddress((*address).into())),
        _ => Err(IssueError::Names),
    }
}

#[cfg(test)]
mod tests;
