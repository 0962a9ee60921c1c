//! When a client enrolled, and who requested a certificate for somebody else, as URIs among the alternative names (RFC 5280 section
//! 4.2.1.6).

use std::time::{Duration, SystemTime};

use rcgen::SanType;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::X509Certificate;

/// The URI without the seconds since 1970.
const PREFIX: &str = "atoll:enrolled:";
/// The URI without the seconds since 1970, and the common name after them.
const REQUESTER: &str = "atoll:requested-by:";

/// The client that has requested a certificate for somebody else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requester {
    /// The common name of its certificate.
    pub common_name: String,
    /// When it has enrolled.
    pub enrolled: SystemTime,
}

/// The alternative name for this time, in whole seconds, like all times in certificates.
pub(super) fn name(enrolled: SystemTime) -> Result<SanType, rcgen::Error> {
    Ok(SanType::URI(format!("{PREFIX}{}", seconds(enrolled)).try_into()?))
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The time in a certificate, if it has one. If it has several, the earliest counts.
pub(crate) fn time_of_enrolment(certificate: &X509Certificate<'_>) -> Option<SystemTime> {
    let names = certificate.subject_alternative_name().ok()??;
    let seconds = names.value.general_names.iter().filter_map(|name| match name {
        GeneralName::URI(uri) => uri.strip_prefix(PREFIX)?.parse().ok(),
        _ => None,
    });
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds.min()?))
}

/// The requester in a certificate, if it has one.
pub(crate) fn requester(certificate: &X509Certificate<'_>) -> Option<Requester> {
    let names = certificate.subject_alternative_name().ok()??;
    names.value.general_names.iter().find_map(|name| {
        let GeneralName::URI(uri) = name else { return None };
        let (seconds, common_name) = uri.strip_prefix(REQUESTER)?.split_once(':')?;
        let enrolled = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds.parse().ok()?))?;
        Some(Requester { common_name: common_name.to_owned(), enrolled })
    })
}

// === impl Requester ===

impl Requester {
    /// The alternative name for it.
    pub(super) fn name(&self) -> Result<SanType, rcgen::Error> {
        Ok(SanType::URI(format!("{REQUESTER}{}:{}", seconds(self.enrolled), self.common_name).try_into()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::{Authority, CLOCK_SKEW, NewKey, RequestedKey, certificates_from_pem};
    use crate::tls::ClientCa;

    #[test]
    fn a_renewed_certificate_is_as_old_as_the_first_one() {
        let hour = Duration::from_secs(3600);
        let authority = Authority::create("agents", hour).unwrap();
        let ca = ClientCa::from_pem(authority.certificate_pem().as_bytes()).unwrap();
        let now = SystemTime::now();
        let read = |enrolled| {
            let key = RequestedKey::verify(NewKey::create().unwrap().request.as_bytes()).unwrap();
            let pem = authority.certify_client(&key, "site-a", hour, enrolled).unwrap();
            let chain = certificates_from_pem(pem.as_bytes()).unwrap();
            ca.verify(&chain, now + CLOCK_SKEW).unwrap().enrolled
        };
        let whole = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        for enrolled in [now - 24 * hour, now, now + CLOCK_SKEW / 2] {
            assert_eq!(whole(read(enrolled)), whole(enrolled));
        }
    }

    #[test]
    fn a_certificate_tells_who_requested_it() {
        let hour = Duration::from_secs(3600);
        let authority = Authority::create("users", hour).unwrap();
        let ca = ClientCa::from_pem(authority.certificate_pem().as_bytes()).unwrap();
        let enrolled = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let requester = Requester { common_name: "site-a".to_owned(), enrolled };
        let key = RequestedKey::verify(NewKey::create().unwrap().request.as_bytes()).unwrap();
        let groups = ["dev", "ops"];
        let pem = authority.certify_user(&key, ("jane", &groups), hour, SystemTime::UNIX_EPOCH, &requester).unwrap();
        let chain = certificates_from_pem(pem.as_bytes()).unwrap();
        let identity = ca.verify(&chain, SystemTime::now()).unwrap();
        assert_eq!(
            (identity.common_name.as_str(), &identity.organizations[..]),
            ("jane", &groups.map(str::to_owned)[..])
        );
        assert_eq!(identity.requester, Some(requester));
        assert!(identity.enrolled > enrolled, "it is the time of the user's certificate");
    }
}
