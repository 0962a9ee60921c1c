//! One file with certificates, or one with a key.

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

/// An authority's certificates, what they are for, and where the configuration names them.
pub(super) struct Anchors<'c> {
    /// `clientCA of cluster ke-beijing`.
    pub(super) what: String,
    pub(super) at: &'c Located<FilePath>,
    /// The keys of all authorities in the file.
    pub(super) public_keys: Vec<Vec<u8>>,
}

/// An authority that issues certificates: certificate and key.
pub(super) fn authority(report: &mut Report, what: &str, certificate: &Located<FilePath>, key: &Located<FilePath>) {
    let (Some(pem), Some(secret)) = (read(report, what, certificate), read_key(report, what, key)) else { return };
    if let Err(error) = Authority::from_pem(&pem, &secret) {
        let at = match &error {
            AuthorityError::Key(_) | AuthorityError::KeyMismatch => key,
            AuthorityError::Pem(error) if is_of_key(error) => key,
            _ => certificate,
        };
        unusable(report, what, at, &error);
    }
}

/// Authorities that verify clients.
pub(super) fn client_anchors<'c>(report: &mut Report, what: &str, at: &'c Located<FilePath>) -> Option<Anchors<'c>> {
    anchors(report, what, at, |pem| ClientCa::from_pem(pem).map(drop))
}

/// Authorities that verify servers.
pub(super) fn server_anchors<'c>(report: &mut Report, what: &str, at: &'c Located<FilePath>) -> Option<Anchors<'c>> {
    anchors(report, what, at, |pem| ServerCa::from_pem(pem).map(drop))
}

/// The certificate and key of a client. Returns its name.
pub(super) fn identity(
    report: &mut Report,
    what: &str,
    certificate: &Located<FilePath>,
    key: &Located<FilePath>,
) -> Option<String> {
    let (Some(pem), Some(secret)) = (read(report, what, certificate), read_key(report, what, key)) else { return None };
    let identity = match Identity::from_pem(&pem, &secret) {
        Ok(identity) => identity,
        Err(error) => {
            let at = match &error {
                IdentityError::Key(_) => key,
                IdentityError::Pem(error) if is_of_key(error) => key,
                _ => certificate,
            };
            unusable(report, what, at, &error);
            return None;
        }
    };
    if let Some(leaf) = CertificateFacts::read(&pem).ok().and_then(|found| found.into_iter().next()) {
        validity(report, what, certificate, &[&leaf]);
        if !leaf.is_for_clients {
            let path = certificate.display();
            report.mistake(certificate, format_args!("{what}: {path} is not for clients (extended key usage)"));
        }
    }
    Some(identity.common_name().unwrap_or_default().to_owned())
}

/// The file of a private key. It is a warning if others can read it.
fn read_key(report: &mut Report, what: &str, key: &Located<FilePath>) -> Option<Vec<u8>> {
    let secret = read(report, what, key)?;
    let mode = std::fs::metadata(key.as_path()).map(|metadata| metadata.permissions().mode() & 0o777);
    if let Ok(mode) = mode
        && mode & 0o007 != 0
    {
        let path = key.display();
        report.warn(
            key,
            format_args!("{what}: everybody on this machine can read {path} (mode {mode:o}); run chmod o= {path}"),
        );
    }
    Some(secret)
}

fn anchors<'c, E: Error>(
    report: &mut Report,
    what: &str,
    at: &'c Located<FilePath>,
    use_it: impl FnOnce(&[u8]) -> Result<(), E>,
) -> Option<Anchors<'c>> {
    let pem = read(report, what, at)?;
    if let Err(error) = use_it(&pem) {
        unusable(report, what, at, &error);
        return None;
    }
    let found = match CertificateFacts::read(&pem) {
        Ok(found) => found,
        Err(error) => {
            unusable(report, what, at, &error);
            return None;
        }
    };
    for certificate in found.iter().filter(|certificate| !certificate.is_authority) {
        let (path, name) = (at.display(), &certificate.common_name);
        report.mistake(at, format_args!("{what}: {path} contains the certificate of {name:?}, which is not a CA"));
    }
    validity(report, what, at, &found.iter().collect::<Vec<_>>());
    let public_keys = found.into_iter().map(|certificate| certificate.public_key).collect();
    Some(Anchors { what: what.to_owned(), at, public_keys })
}

fn validity(report: &mut Report, what: &str, at: &Located<FilePath>, certificates: &[&CertificateFacts]) {
    let path = at.display();
    match Validity::of(certificates, SystemTime::now()) {
        Validity::Valid => {}
        Validity::ExpiredAt(since) => {
            let since = Moment::from(since);
            report.mistake(at, format_args!("{what}: {path} expired at {since}; create a new one"));
        }
        Validity::NotBefore(from) => {
            let from = Moment::from(from);
            report.mistake(at, format_args!("{what}: {path} is not valid before {from}; is the clock correct?"));
        }
        Validity::ExpiresSoon(left, until) => {
            let (left, until) = (Age(left), Moment::from(until));
            report.warn(at, format_args!("{what}: {path} expires in {left}, at {until}"));
        }
    }
}

fn read(report: &mut Report, what: &str, path: &Located<FilePath>) -> Option<Vec<u8>> {
    let shown = path.display();
    match std::fs::metadata(path.as_path()).map(|metadata| metadata.len()) {
        Ok(length) if length > MAX_FILE_BYTES => {
            report.mistake(path, format_args!("{what}: {shown} is larger than {MAX_FILE_BYTES} bytes"));
            return None;
        }
        _ => {}
    }
    match std::fs::read(path.as_path()) {
        Ok(bytes) => Some(bytes),
        Err(error) => {
            report.mistake(path, format_args!("{what}: cannot read {shown}: {error}"));
            None
        }
    }
}

fn unusable(report: &mut Report, what: &str, at: &Located<FilePath>, error: &dyn Error) {
    let (path, error) = (at.display(), chain(error));
    report.mistake(at, format_args!("{what}: {path} cannot be used: {error}"));
}

fn is_of_key(error: &ops::pki::PemError) -> bool {
    matches!(error, ops::pki::PemError::Key(_))
}
