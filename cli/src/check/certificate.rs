//! Checks files with certificates and keys.

use std::error::Error;
use std::os::unix::fs::PermissionsExt as _;
use std::time::SystemTime;

use ops::config::{FilePath, Located};
use ops::date::{Age, Moment};
use ops::files::MAX_FILE_BYTES;
use ops::log::chain;
use ops::pki::{Authority, AuthorityError, CertificateFacts};
use ops::tls::{ClientCa, Identity, IdentityError, ServerCa};

use super::report::Report;
use super::validity::Validity;

/// The certificates of a CA, their purpose, and where the configuration names them.
pub(super) struct Anchors<'c> {
    /// `clientCA of cluster ke-beijing`.
    pub(super) purpose: String,
    pub(super) at: &'c Located<FilePath>,
    /// The public keys of all CAs in the file.
    pub(super) public_keys: Vec<Vec<u8>>,
}

/// Checks the certificate and the key of a CA that issues certificates.
pub(super) fn authority(report: &mut Report, purpose: &str, certificate: &Located<FilePath>, key: &Located<FilePath>) {
    let (Some(pem), Some(secret)) = (read(report, purpose, certificate), read_key(report, purpose, key)) else {
        return;
    };
    if let Err(error) = Authority::from_pem(&pem, &secret) {
        let at = match &error {
            AuthorityError::Key(_) | AuthorityError::KeyMismatch => key,
            AuthorityError::Pem(error) if is_of_key(error) => key,
            _ => certificate,
        };
        unusable(report, purpose, at, &error);
    }
}

/// Checks the CAs that verify clients.
pub(super) fn client_anchors<'c>(report: &mut Report, purpose: &str, at: &'c Located<FilePath>) -> Option<Anchors<'c>> {
    anchors(report, purpose, at, |pem| ClientCa::from_pem(pem).map(drop))
}

/// Checks the CAs that verify servers.
pub(super) fn server_anchors<'c>(report: &mut Report, purpose: &str, at: &'c Located<FilePath>) -> Option<Anchors<'c>> {
    anchors(report, purpose, at, |pem| ServerCa::from_pem(pem).map(drop))
}

/// Checks the certificate and key of a client. Returns the common name.
pub(super) fn identity(
    report: &mut Report,
    purpose: &str,
    certificate: &Located<FilePath>,
    key: &Located<FilePath>,
) -> Option<String> {
    let (Some(pem), Some(secret)) = (read(report, purpose, certificate), read_key(report, purpose, key)) else {
        return None;
    };
    let identity = match Identity::from_pem(&pem, &secret) {
        Ok(identity) => identity,
        Err(error) => {
            let at = match &error {
                IdentityError::Key(_) => key,
                IdentityError::Pem(error) if is_of_key(error) => key,
                _ => certificate,
            };
            unusable(report, purpose, at, &error);
            return None;
        }
    };
    if let Some(leaf) = CertificateFacts::read(&pem).ok().and_then(|found| found.into_iter().next()) {
        validity(report, purpose, certificate, &[&leaf]);
        if !leaf.is_for_clients {
            let path = certificate.display();
            report.mistake(
                certificate,
                format_args!("{purpose}: the extended key usage of {path} does not allow client authentication"),
            );
        }
    }
    Some(identity.common_name().unwrap_or_default().to_owned())
}

/// Reads a private key. Warns if all users of the machine can read it.
fn read_key(report: &mut Report, purpose: &str, key: &Located<FilePath>) -> Option<Vec<u8>> {
    let secret = read(report, purpose, key)?;
    let mode = std::fs::metadata(key.as_path()).map(|metadata| metadata.permissions().mode() & 0o777);
    if let Ok(mode) = mode
        && mode & 0o007 != 0
    {
        let path = key.display();
        report.warn(
            key,
            format_args!("{purpose}: all users of this machine can read {path} (mode {mode:o}); run chmod o= {path}"),
        );
    }
    Some(secret)
}

fn anchors<'c, E: Error>(
    report: &mut Report,
    purpose: &str,
    at: &'c Located<FilePath>,
    parse: impl FnOnce(&[u8]) -> Result<(), E>,
) -> Option<Anchors<'c>> {
    let pem = read(report, purpose, at)?;
    if let Err(error) = parse(&pem) {
        unusable(report, purpose, at, &error);
        return None;
    }
    let found = match CertificateFacts::read(&pem) {
        Ok(found) => found,
        Err(error) => {
            unusable(report, purpose, at, &error);
            return None;
        }
    };
    for certificate in found.iter().filter(|certificate| !certificate.is_authority) {
        let (path, name) = (at.display(), &certificate.common_name);
        report.mistake(at, format_args!("{purpose}: {path} contains the certificate of {name:?}, which is not a CA"));
    }
    validity(report, purpose, at, &found.iter().collect::<Vec<_>>());
    let public_keys = found.into_iter().map(|certificate| certificate.public_key).collect();
    Some(Anchors { purpose: purpose.to_owned(), at, public_keys })
}

fn validity(report: &mut Report, purpose: &str, at: &Located<FilePath>, certificates: &[&CertificateFacts]) {
    let path = at.display();
    match Validity::of(certificates, SystemTime::now()) {
        Validity::Valid => {}
        Validity::ExpiredAt(since) => {
            let since = Moment::from(since);
            report.mistake(at, format_args!("{purpose}: {path} expired at {since}; create a new certificate"));
        }
        Validity::NotBefore(from) => {
            let from = Moment::from(from);
            report.mistake(
                at,
                format_args!("{purpose}: {path} is not valid before {from}; check the clock of this machine"),
            );
        }
        Validity::ExpiresSoon(left, until) => {
            let (left, until) = (Age(left), Moment::from(until));
            report.warn(at, format_args!("{purpose}: {path} expires in {left}, at {until}"));
        }
    }
}

fn read(report: &mut Report, purpose: &str, path: &Located<FilePath>) -> Option<Vec<u8>> {
    let shown = path.display();
    match std::fs::metadata(path.as_path()).map(|metadata| metadata.len()) {
        Ok(length) if length > MAX_FILE_BYTES => {
            report.mistake(path, format_args!("{purpose}: {shown} is larger than {MAX_FILE_BYTES} bytes"));
            return None;
        }
        _ => {}
    }
    match std::fs::read(path.as_path()) {
        Ok(bytes) => Some(bytes),
        Err(error) => {
            report.mistake(path, format_args!("{purpose}: cannot read {shown}: {error}"));
            None
        }
    }
}

fn unusable(report: &mut Report, purpose: &str, at: &Located<FilePath>, error: &dyn Error) {
    let (path, error) = (at.display(), chain(error));
    report.mistake(at, format_args!("{purpose}: cannot use {path}: {error}"));
}

fn is_of_key(error: &ops::pki::PemError) -> bool {
    matches!(error, ops::pki::PemError::Key(_))
}
