//! Dates in certificates.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// An X.509 date; dates before 1970 are 1970.
pub(crate) fn system_time(time: x509_parser::time::ASN1Time) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(u64::try_from(time.timestamp()).unwrap_or(0))
}
