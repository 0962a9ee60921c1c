//! Whether the watches of RBAC objects are current.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::concern::Resource;

/// The time for which a watch counts as current after it was seen to be. It renews its lease each second.
const LEASE: Duration = Duration::from_secs(3);

/// Until when each watch of RBAC objects counts as current, in milliseconds after the origin. A task that hangs or has ended
/// renews nothing, so nobody relies on it.
#[derive(Debug)]
pub(super) struct Leases {
    origin: Instant,
    until: [AtomicU64; Resource::ALL.len()],
}

// === impl Leases ===

impl Leases {
    /// No watch is current.
    pub(super) fn new(origin: Instant) -> Self {
        Self { origin, until: Default::default() }
    }

    /// A watch is current.
    pub(super) fn renew(&self, resource: Resource, now: Instant) {
        self.set(resource, self.after_origin(now + LEASE));
    }

    /// A watch has a gap.
    pub(super) fn end(&self, resource: Resource) {
        self.set(resource, 0);
    }

    /// Whether a watch is current.
    pub(super) fn is_held(&self, resource: Resource, now: Instant) -> bool {
        self.after_origin(now) < self.until[resource as usize].load(Ordering::Acquire)
    }

    /// Whether all watches are current.
    pub(super) fn are_held(&self, now: Instant) -> bool {
        self.count(now) == Resource::ALL.len()
    }

    /// The number of watches that are current.
    pub(super) fn count(&self, now: Instant) -> usize {
        Resource::ALL.into_iter().filter(|resource| self.is_held(*resource, now)).count()
    }

    fn set(&self, resource: Resource, until: u64) {
        self.until[resource as usize].store(until, Ordering::Release);
    }

    fn after_origin(&self, time: Instant) -> u64 {
        u64::try_from(time.duration_since(self.origin).as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_watches_must_renew_their_leases() {
        let mut now = Instant::now();
        let leases = Leases::new(now);
        assert!(!leases.are_held(now));
        for (count, resource) in Resource::ALL.into_iter().enumerate() {
            assert_eq!((leases.are_held(now), leases.count(now)), (false, count));
            leases.renew(resource, now);
        }
        assert!(leases.are_held(now));
        now += Duration::from_secs(2);
        Resource::ALL[1..].iter().for_each(|resource| leases.renew(*resource, now));
        assert!(leases.are_held(now));
        now += Duration::from_secs(1);
        assert_eq!((leases.are_held(now), leases.count(now)), (false, 3));
        leases.renew(Resource::ALL[0], now);
        leases.end(Resource::ALL[2]);
        assert!(!leases.are_held(now));
    }
}
