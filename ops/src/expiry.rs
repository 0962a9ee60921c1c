//! Metrics of the certificates of a configuration: when each expires, and how long it is valid in total.
//!
//! A fixed number of days is too early a warning for a certificate of a week. With both figures, an alert can warn when
//! the last third of the lifetime begins.

use std::sync::Arc;
use std::time::SystemTime;

use crate::metrics::Registry;
use crate::pki::Validity;

crate::label_set! {
    /// A certificate.
    struct Named {
        certificate: Arc<str>,
    }
}

/// Registers the metrics. `read` returns each certificate by the name that the status gives it. It is called when metrics
/// are encoded, so that they show a renewed certificate as soon as it is in use.
pub fn observe(metrics: &Registry, read: impl Fn() -> Vec<(String, Validity)> + Send + Sync + 'static) {
    let read = Arc::new(read);
    let each = |value: fn(&Validity) -> u64| {
        let read = Arc::clone(&read);
        move || {
            let series = |(name, validity): (String, Validity)| {
                let value = i64::try_from(value(&validity)).unwrap_or(i64::MAX);
                (Named { certificate: name.into() }, value)
            };
            read().into_iter().map(series).collect()
        }
    };
    metrics.observe_each(
        "atoll_certificate_expiry_timestamp_seconds",
        "Unix time at which a certificate of the configuration expires, in seconds.",
        each(|validity| seconds(SystemTime::UNIX_EPOCH, validity.not_after)),
    );
    metrics.observe_each(
        "atoll_certificate_lifetime_seconds",
        "The time from the beginning to the end of the validity of the certificate.",
        each(|validity| seconds(validity.not_before, validity.not_after)),
    );
}

fn seconds(from: SystemTime, to: SystemTime) -> u64 {
    to.duration_since(from).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::metrics::Build;
    use crate::pki::{Authority, CLOCK_SKEW};

    #[test]
    fn each_certificate_has_its_end_and_its_lifetime() {
        let hour = Duration::from_secs(3600);
        let authority = Authority::create("clients", hour).unwrap();
        let (end, validity) = (authority.not_after(), authority.validity());
        let metrics = Registry::new(Build { component: "test", version: "0" });
        observe(&metrics, move || vec![("clientCA of a".to_owned(), validity)]);
        let text = metrics.encode();
        let end = end.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        let lifetime = (hour + CLOCK_SKEW).as_secs();
        for (name, value) in [("expiry_timestamp", end), ("lifetime", lifetime)] {
            let line = format!("atoll_certificate_{name}_seconds{{certificate=\"clientCA of a\"}} {value}\n");
            assert!(text.contains(&line), "{text}");
        }
    }
}
