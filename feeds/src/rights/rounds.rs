//! When the rights in one scope are checked again.

use std::time::Duration;

use tokio::time::Instant;

/// The time from a change to its round. Most API servers have the change in their RBAC caches by then: a lag of 9 ms has been
/// observed.
const DELAY: Duration = Duration::from_millis(100);

/// The minimum time from one round to the next.
const SPACING: Duration = Duration::from_secs(1);

/// The time from the last change to another round, for API servers whose RBAC caches lag.
const REPETITION: Duration = Duration::from_secs(2);

/// The time after a change in which no review outlives its watch, for API servers whose RBAC caches lag by more.
const UNSETTLED: Duration = Duration::from_secs(10);

/// The maximum time from one round to the next. kube-apiserver caches the permissions of a webhook for as long
/// (`--authorization-webhook-cache-authorized-ttl`).
pub(super) const LIFETIME: Duration = Duration::from_secs(5 * 60);

/// The rounds of checks in one scope. A check that began in the current round is valid until the next round.
#[derive(Debug)]
pub(super) struct Rounds {
    number: u64,
    began: Instant,
    lifetime: Duration,
    /// The round for the changes so far.
    change: Option<Instant>,
    /// The round that follows it.
    repetition: Option<Instant>,
    /// The time of the last change.
    changed: Option<Instant>,
}

// === impl Rounds ===

impl Rounds {
    /// The first round begins now. Each round lasts for this time at most.
    pub(super) fn new(now: Instant, lifetime: Duration) -> Self {
        Self { number: 0, began: now, lifetime, change: None, repetition: None, changed: None }
    }

    /// The current round.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The rights may have changed.
    pub(super) fn changed(&mut self, now: Instant) {
        self.change.get_or_insert((now + DELAY).max(self.began + SPACING));
        self.repetition = Some(now + REPETITION);
        self.changed = Some(now);
    }

    /// Whether the last change is so long ago that API servers should know it.
    pub(super) fn is_settled(&self, now: Instant) -> bool {
        self.changed.is_none_or(|changed| now.duration_since(changed) >= UNSETTLED)
    }

    /// When the next round is due.
    pub(super) fn due(&self) -> Instant {
        let expiry = self.began + self.lifetime;
        [self.change, self.repetition].into_iter().flatten().fold(expiry, Instant::min)
    }

    /// Begins the next round if it is due.
    pub(super) fn begin_due(&mut self, now: Instant) -> bool {
        if now < self.due() {
            return false;
        }
        self.number += 1;
        self.began = now;
        // A round after a change is also the one for all changes before.
        self.change = None;
        self.repetition = self.repetition.filter(|repetition| now < *repetition);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times at which rounds begin, in milliseconds, with changes at some times.
    fn rounds(changes: &[u64], until: u64) -> Vec<u64> {
        let origin = Instant::now();
        let mut rounds = Rounds::new(origin, LIFETIME);
        let mut begun = Vec::new();
        for milliseconds in 0..until {
            let now = origin + Duration::from_millis(milliseconds);
            if changes.contains(&milliseconds) {
                rounds.changed(now);
            }
            if rounds.begin_due(now) {
                begun.push(milliseconds);
            }
        }
        assert_eq!(rounds.number(), begun.len() as u64);
        begun
    }

    #[test]
    fn a_change_begins_two_rounds() {
        assert!(rounds(&[], 300_000).is_empty());
        assert_eq!(rounds(&[5000], 60_000), [5100, 7000]);
    }

    #[test]
    fn a_flood_of_changes_begins_a_round_each_second() {
        let flood: Vec<_> = (5000..9000).step_by(10).collect();
        assert_eq!(rounds(&flood, 60_000), [5100, 6100, 7100, 8100, 9100, 10990]);
    }

    /// Each change is followed by a round within 1.1 s, and by another one at least two seconds later.
    #[test]
    fn no_change_is_forgotten() {
        for second in (5000..8000).step_by(7) {
            let begun = rounds(&[5000, second], 12_000);
            assert!(begun.iter().any(|round| (second + 1..=second + 1100).contains(round)), "{second}: {begun:?}");
            assert!(begun.iter().any(|round| (second + 2000..=second + 2100).contains(round)), "{second}: {begun:?}");
        }
    }

    #[test]
    fn a_round_has_an_end() {
        assert_eq!(rounds(&[], 700_000), [300_000, 600_000]);
    }
}
