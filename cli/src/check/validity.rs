//! Whether certificates are valid now, and for how long.

use std::time::{Duration, SystemTime};

use ops::date::DAY;
use ops::pki::CertificateFacts;

/// A certificate that expires within this time gets a warning, or within a third of its lifetime if that is shorter.
const EXPIRY_WARNING: Duration = DAY.saturating_mul(30);

/// The validity of the certificates in one file at a given time.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Validity {
    Valid,
    NotBefore(SystemTime),
    /// The certificate that expires last does so after this time, at this time.
    ExpiresSoon(Duration, SystemTime),
    ExpiredAt(SystemTime),
}

// === impl Validity ===

impl Validity {
    /// One valid certificate in a file is enough: to renew a CA, its operator adds the new certificate to the file.
    pub(super) fn of(certificates: &[&CertificateFacts], now: SystemTime) -> Self {
        let Some(last) = certificates.iter().max_by_key(|certificate| certificate.not_after) else {
            return Self::Valid;
        };
        let first = certificates.iter().map(|certificate| certificate.not_before).min().unwrap_or(last.not_before);
        let lifetime = last.not_after.duration_since(last.not_before).unwrap_or_default();
        match last.not_after.duration_since(now) {
            Err(_) => Self::ExpiredAt(last.not_after),
            Ok(_) if first > now => Self::NotBefore(first),
            Ok(left) if left < EXPIRY_WARNING.min(lifetime / 3) => Self::ExpiresSoon(left, last.not_after),
            Ok(_) => Self::Valid,
        }
    }
}

#[cfg(test)]
mod tests {
    use ops::pki::Authority;

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
        assert_eq!(at(&year, end - 31 * DAY), Validity::Valid);
        assert_eq!(at(&year, end - 29 * DAY), Validity::ExpiresSoon(29 * DAY, end));
        assert_eq!(at(&week, week_end - 3 * DAY), Validity::Valid, "it is short by intent");
        assert_eq!(at(&week, week_end - 2 * DAY), Validity::ExpiresSoon(2 * DAY, week_end));
        assert_eq!(at(&week, week_end + DAY), Validity::ExpiredAt(week_end));
        assert_eq!(at(&week, week.not_before - DAY), Validity::NotBefore(week.not_before));
        // The old certificate may have expired if the new one is valid.
        assert_eq!(Validity::of(&[&week, &year], week_end + DAY), Validity::Valid);
    }
}
