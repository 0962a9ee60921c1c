//! Renews the certificate of this agent before it expires.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use dial::Egress;
use dial::enrol::{Enrolled, renew};
use ops::backoff::Backoff;
use ops::files::{Reloader, Watched};
use ops::pki::{CLOCK_SKEW, Validity};
use protocol::Authority;
use rustls::ClientConfig;
use tokio::time::sleep;
use tracing::{info, warn};

use crate::config;
use crate::join::write_pair;

/// Replaces the files of the identity when their certificate is two thirds through its life.
#[derive(Debug)]
pub(crate) struct Renewal {
    pub(crate) identity: Watched<ops::tls::Identity>,
    pub(crate) files: config::Identity,
    /// With the identity.
    pub(crate) tls: Arc<ClientConfig>,
    pub(crate) servers: Vec<Authority>,
    pub(crate) egress: Arc<Egress>,
    pub(crate) reloader: Reloader,
}

/// The pauses between attempts. After two thirds of its lifetime, a certificate of thirty days is valid for ten more days.
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(600));

/// The minimum pause after a failure: each attempt makes a proxy-server sign a certificate.
const MIN_PAUSE: Duration = Duration::from_secs(1);

/// The maximum time between two looks at the clock, because the system time can jump.
const MAX_SLEEP: Duration = Duration::from_secs(60);

// === impl Renewal ===

impl Renewal {
    /// Renews the certificate whenever it is due. Never returns.
    pub(crate) async fn run(self) {
        let mut backoff = BACKOFF;
        loop {
            let identity = self.identity.borrow();
            let Validity { not_before, not_after } = identity.validity();
            let at = due(not_before, not_after);
            while let Ok(rest) = at.duration_since(SystemTime::now())
                && !rest.is_zero()
            {
                sleep(rest.min(MAX_SLEEP)).await;
                if !Arc::ptr_eq(&identity, &self.identity.borrow()) {
                    break;
                }
            }
            // Somebody may have replaced the files.
            if !Arc::ptr_eq(&identity, &self.identity.borrow()) {
                continue;
            }
            if let Some(enrolled) = self.attempt().await {
                self.install(&enrolled);
            }
            if Arc::ptr_eq(&identity, &self.identity.borrow()) {
                sleep(backoff.fail_with_full_jitter().max(MIN_PAUSE)).await;
            } else {
                backoff.reset();
            }
        }
    }

    /// Asks one server after the other.
    async fn attempt(&self) -> Option<Enrolled> {
        let expires = ops::date::Moment::from(self.identity.borrow().validity().not_after);
        for server in &self.servers {
            match renew(&self.tls, server, &self.egress).await {
                Ok(enrolled) => return Some(enrolled),
                // A server without `enrolment` refuses. Another one may issue certificates.
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    warn!(%server, error, %expires, "cannot renew the certificate");
                }
            }
        }
        None
    }

    /// Stores and loads the new certificate. If this fails, the previous one stays in use.
    fn install(&self, enrolled: &Enrolled) {
        if let Err(error) = write_pair(&self.files, enrolled) {
            return warn!(error = format!("{error:#}"), "cannot store the renewed certificate");
        }
        self.reloader.reload();
        let expires = ops::date::Moment::from(self.identity.borrow().validity().not_after);
        info!(%expires, "the certificate is renewed");
    }
}

/// Two thirds through the life of a certificate, which was issued some minutes after it began to be valid.
pub(crate) fn due(not_before: SystemTime, not_after: SystemTime) -> SystemTime {
    let issued = (not_before + CLOCK_SKEW).min(not_after);
    let life = not_after.duration_since(issued).unwrap_or_default();
    issued + life * 2 / 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_renewed_at_two_thirds_of_its_life() {
        let issued = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let of = |lifetime: u64| due(issued - CLOCK_SKEW, issued + Duration::from_secs(lifetime));
        assert_eq!(of(120), issued + Duration::from_secs(80));
        assert_eq!(of(2_592_000), issued + Duration::from_secs(1_728_000));
        assert_eq!(of(0), issued);
        // Of another authority, which does not backdate.
        assert_eq!(due(issued, issued + Duration::from_secs(60)), issued + Duration::from_secs(60));
    }
}
