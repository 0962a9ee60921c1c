//! One file with certificates, or one with a key.

use std::error::Error;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, SystemTime};

use ops::config::{FilePath, Located};
use ops::date::{Age, DAY, Moment};
use ops::files::MAX_FILE_BYTES;
use ops::log::chain;
use ops::pki::{Authority, AuthorityError, CertificateFacts};
use ops::tls::{ClientCa, Identity, IdentityError, ServerCa};

use super::report::Report;

/// A certificate that expires within this time gets a warning, or within a third of its lifetime if that is shorter.
const SOON: Duration = DAY.saturating_mul(30);

/// An authority's certificates, what they are for, and where the configuration names them.
pub(super) struct Anchors<'c> {
    /// `clientCA of cluster ke-beijing`.
    pub(super) what: String,
    pub(super) at: &'c Located<FilePath>,
    /// The keys of all authorities in the file.
    pub(super) public_keys: Vec<Vec<u8>>,
}

/// The position of a moment in the lifetime of certificates.
#[derive(Debug, PartialEq, Eq)]
enum Validity {
    Good,
    NotYet(SystemTime),
    Soon(Duration, SystemTime),
    Over(SystemTime),
}

// === impl Validity ===

impl Validity {
    /// One valid certificate in a file is enough: this is how an authority is renewed.
    fn of(certificates: &[&CertificateFacts], now: SystemTime) -> Self {
        let Some(last) = certificates.iter().max_by_key(|certificate| certificate.not_after) else { return Self::Good };
        let first = certificates.iter().map(|certificate| certificate.not_before).min().unwrap_or(last.not_before);
        let lifetime = last.not_after.duration_since(last.not_before).unwrap_or_default();
        match last.not_after.duration_since(now) {
            Err(_) => Self::Over(last.not_after),
            Ok(_) if first > now => Self::NotYet(first),
            Ok(left) if left < SOON.min(lifetime / 3) => Self::Soon(left, last.not_after),
            Ok(_) => Self::Good,
        }
    }
}

// === impl Report ===

impl Report {
    /// An authority that issues certificates: certificate and key.
    pub(super) fn authority(&mut self, what: &str, certificate: &Located<FilePath>, key: &Located<FilePath>) {
        let (Some(pem), Some(secret)) = (self.read(what, certificate), self.key(what, key)) else { return };
        if let Err(error) = Authority::from_pem(&pem, &secret) {
            let at = match &error {
                AuthorityError::Key(_) | AuthorityError::KeyMismatch => key,
                AuthorityError::Pem(error) if is_of_key(error) => key,
                _ => certificate,
            };
            self.unusable(what, at, &error);
        }
    }

    /// Authorities that verify clients.
    pub(super) fn client_anchors<'c>(&mut self, what: &str, at: &'c Located<FilePath>) -> Option<Anchors<'c>> {
        self.anchors(what, at, |pem| ClientCa::from_pem(pem).map(drop))
    }

    /// Authorities that verify servers.
    pub(super) fn server_anchors<'c>(&mut self, what: &str, at: &'c Located<FilePath>) -> Option<Anchors<'c>> {
        self.anchors(what, at, |pem| ServerCa::from_pem(pem).map(drop))
    }

    /// The certificate and key of a client. Returns its name.
    pub(super) fn identity(
        &mut self,
        what: &str,
        certificate: &Located<FilePath>,
        key: &Located<FilePath>,
    ) -> Option<String> {
        let (Some(pem), Some(secret)) = (self.read(what, certificate), self.key(what, key)) else { return None };
        let identity = match Identity::from_pem(&pem, &secret) {
            Ok(identity) => identity,
            Err(error) => {
                let at = match &error {
                    IdentityError::Key(_) => key,
                    IdentityError::Pem(error) if is_of_key(error) => key,
                    _ => certificate,
                };
                self.unusable(what, at, &error);
                return None;
            }
        };
        if let Some(leaf) = CertificateFacts::read(&pem).ok().and_then(|found| found.into_iter().next()) {
            self.validity(what, certificate, &[&leaf]);
            if !leaf.is_for_clients {
                let path = certificate.display();
                self.mistake(certificate, format_args!("{what}: {path} is not for clients (extended key usage)"));
            }
        }
        Some(identity.common_name().unwrap_or_default().to_owned())
    }

    /// The file of a private key. It is a warning if others can read it.
    fn key(&mut self, what: &str, key: &Located<FilePath>) -> Option<Vec<u8>> {
        let secret = self.read(what, key)?;
        let mode = std::fs::metadata(key.as_path()).map(|metadata| metadata.permissions().mode() & 0o777);
        if let Ok(mode) = mode
            && mode & 0o007 != 0
        {
            let path = key.display();
            self.warn(
                key,
                format_args!("{what}: everybody on this machine can read {path} (mode {mode:o}); run chmod o= {path}"),
            );
        }
        Some(secret)
    }

    fn anchors<'c, E: Error>(
        &mut self,
        what: &str,
        at: &'c Located<FilePath>,
        use_it: impl FnOnce(&[u8]) -> Result<(), E>,
    ) -> Option<Anchors<'c>> {
        let pem = self.read(what, at)?;
        if let Err(error) = use_it(&pem) {
            self.unusable(what, at, &error);
            return None;
        }
        let found = match CertificateFacts::read(&pem) {
            Ok(found) => found,
            Err(error) => {
                self.unusable(what, at, &error);
                return None;
            }
        };
        for certificate in found.iter().filter(|certificate| !certificate.is_authority) {
            let (path, name) = (at.display(), &certificate.common_name);
            self.mistake(at, format_args!("{what}: {path} contains the certificate of {name:?}, which is not a CA"));
        }
        self.validity(what, at, &found.iter().collect::<Vec<_>>());
        let public_keys = found.into_iter().map(|certificate| certificate.public_key).collect();
        Some(Anchors { what: what.to_owned(), at, public_keys })
    }

    fn validity(&mut self, what: &str, at: &Located<FilePath>, certificates: &[&CertificateFacts]) {
        let path = at.display();
        match Validity::of(certificates, SystemTime::now()) {
            Validity::Good => {}
            Validity::Over(since) => {
                let since = Moment::from(since);
                self.mistake(at, format_args!("{what}: {path} expired at {since}; create a new one"));
            }
            Validity::NotYet(from) => {
                let from = Moment::from(from);
                self.mistake(at, format_args!("{what}: {path} is not valid before {from}; is the clock correct?"));
            }
            Validity::Soon(left, until) => {
                let (left, until) = (Age(left), Moment::from(until));
                self.warn(at, format_args!("{what}: {path} expires in {left}, at {until}"));
            }
        }
    }

    pub(super) fn read(&mut self, what: &str, path: &Located<FilePath>) -> Option<Vec<u8>> {
        let shown = path.display();
        match std::fs::metadata(path.as_path()).map(|metadata| metadata.len()) {
            Ok(length) if length > MAX_FILE_BYTES => {
                self.mistake(path, format_args!("{what}: {shown} is larger than {MAX_FILE_BYTES} bytes"));
                return None;
            }
            _ => {}
        }
        match std::fs::read(path.as_path()) {
            Ok(bytes) => Some(bytes),
            Err(error) => {
                self.mistake(path, format_args!("{what}: cannot read {shown}: {error}"));
                None
            }
        }
    }

    fn unusable(&mut self, what: &str, at: &Located<FilePath>, error: &dyn Error) {
        let (path, error) = (at.display(), chain(error));
        self.mistake(at, format_args!("{what}: {path} cannot be used: {error}"));
    }
}

fn is_of_key(error: &ops::pki::PemError) -> bool {
    matches!(error, ops::pki::PemError::Key(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(days: u32) -> (CertificateFacts, SystemTime) {
        let authority = Authority::create("a", DAY * days).unwrap();
        let facts = CertificateFacts::read(authority.certificate_pem().as_bytes()).unwrap().remove(0);
        let end = facts.not_after;
        (facts, end)
    }

    #[test]
    fn certificates_that_expire_soon_are_reported_in_time() {
        let ((year, end), (week, week_end)) = (facts(365), facts(7));
        let at = |certificate, now| Validity::of(&[certificate], now);
        assert_eq!(at(&year, end - 31 * DAY), Validity::Good);
        assert_eq!(at(&year, end - 29 * DAY), Validity::Soon(29 * DAY, end));
        assert_eq!(at(&week, week_end - 3 * DAY), Validity::Good, "it is short by intent");
        assert_eq!(at(&week, week_end - 2 * DAY), Validity::Soon(2 * DAY, week_end));
        assert_eq!(at(&week, week_end + DAY), Validity::Over(week_end));
        assert_eq!(at(&week, week.not_before - DAY), Validity::NotYet(week.not_before));
        // The old certificate may have expired if the new one is valid.
        assert_eq!(Validity::of(&[&week, &year], week_end + DAY), Validity::Good);
    }
}
