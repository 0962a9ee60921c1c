//! Bodies that cost the host much more than their length says.
//!
//! An API server needs hundreds of milliseconds of both CPUs of a small host for a body of 400,000 elements: it decodes it
//! more than once, with a value of its own for each element. Requests of all virtual clusters are slow meanwhile. Such a body
//! is too large for etcd in most cases, so hardly any client needs it: each virtual cluster may send few of them.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rewrite::json::{MAX_WEIGHT, weight};
use tokio::time::Instant;

use crate::turns::SMALL;

/// The weight that is not counted, in bytes: that of a CustomResourceDefinition with 10,000 fields.
const LIGHT: usize = 8 << 20;

/// The weight that a virtual cluster may send per second, in bytes, on average.
const PER_SECOND: usize = 1 << 20;

/// The heavy bodies of one virtual cluster: a rate limit by weight (the generic cell rate algorithm of ITU-T I.371).
#[derive(Debug)]
pub(crate) struct Heavy {
    /// When everything that was sent is paid for.
    paid: Mutex<Instant>,
}

// === impl Heavy ===

impl Default for Heavy {
    fn default() -> Self {
        Self { paid: Mutex::new(Instant::now()) }
    }
}

impl Heavy {
    /// Counts a body that goes to the host. If there were too many before it, the error says when to try again.
    pub(crate) fn admit(&self, body: &[u8]) -> Result<(), Duration> {
        let weight = if body.len() > SMALL { weight(body) } else { 0 };
        if weight <= LIGHT {
            return Ok(());
        }
        // One of the maximum weight is admitted whenever all before it are paid for.
        let (cost, burst) = (time(weight), time(MAX_WEIGHT));
        let now = Instant::now();
        let mut paid = self.paid.lock().unwrap_or_else(PoisonError::into_inner);
        let then = (*paid).max(now) + cost.min(burst);
        match then.duration_since(now).saturating_sub(burst) {
            Duration::ZERO => {
                *paid = then;
                Ok(())
            }
            wait => Err(wait),
        }
    }
}

/// How long it takes until this weight is paid for.
fn time(weight: usize) -> Duration {
    Duration::from_millis(u64::try_from(weight / (PER_SECOND / 1000)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn elements(count: usize) -> Vec<u8> {
        format!("[{}]", vec![r#""a""#; count].join(",")).into_bytes()
    }

    #[tokio::test(start_paused = true)]
    async fn few_heavy_bodies_are_admitted() {
        let (heavy, body) = (Heavy::default(), elements(400_000));
        assert_eq!(heavy.admit(&body), Ok(()));
        let wait = heavy.admit(&body).unwrap_err();
        advance(wait / 2).await;
        assert!(heavy.admit(&body).is_err());
        advance(wait / 2).await;
        assert_eq!(heavy.admit(&body), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn light_bodies_are_not_counted() {
        let heavy = Heavy::default();
        let string = format!(r#"{{"a":"{}"}}"#, "x".repeat(3 << 20)).into_bytes();
        for _ in 0..10 {
            assert_eq!([heavy.admit(&elements(66_000)), heavy.admit(&string)], [Ok(()), Ok(())]);
        }
        assert_eq!(heavy.admit(&elements(400_000)), Ok(()));
    }
}
