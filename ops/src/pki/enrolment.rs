//! When a client has enrolled, as its certificates say: a URI among the alternative names (RFC 5280 section 4.2.1.6).

use std::time::{Duration, SystemTime};

use rcgen::SanType;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::X509Certificate;

/// The URI without the seconds since 1970.
const PREFIX: &str = "atoll:enrolled:";

/// The alternative name for this time, in whole seconds, like all times in certificates.
pub(super) fn name(enrolled: SystemTime) -> Result<SanType, rcgen::Error> {
    let seconds = enrolled.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    Ok(SanType::URI(format!("{PREFIX}{seconds}").try_into()?))
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
}
