//! How much a virtual cluster has written recently.
//!
//! etcd stores each version of an object until it is compacted. Every five minutes, kube-apiserver compacts the versions
//! that are older than five minutes (`--etcd-compaction-interval`; apiserver's `pkg/storage/etcd3/compact.go`), so a version
//! stays for up to ten minutes. A client that changes one large object again and again could therefore fill etcd, although
//! it stores little. etcd then refuses the writes of the whole host.

use std::time::Duration;

use tokio::time::Instant;

/// The time for which a bucket counts bytes.
const INTERVAL: Duration = Duration::from_secs(60);

/// The number of intervals that count: ten minutes, and the minute that has begun.
const INTERVALS: usize = 11;

/// The time after which a version no longer counts, at the latest.
pub(super) const COUNTED: Duration = INTERVAL.saturating_mul(11);

const _: () = assert!(COUNTED.as_secs() == INTERVAL.as_secs() * INTERVALS as u64, "all intervals count");

/// The number of bytes that were written within the last ten to eleven minutes.
#[derive(Debug)]
pub(super) struct Written {
    /// The bytes of each interval, the newest one first.
    bytes: [u64; INTERVALS],
    /// The start of the newest interval.
    since: Instant,
}

// === impl Written ===

impl Written {
    /// Nothing was written before `now`.
    pub(super) fn nothing(now: Instant) -> Self {
        Self { bytes: [0; INTERVALS], since: now }
    }

    /// Adds a version of an object of this many bytes.
    pub(super) fn add(&mut self, bytes: u64, now: Instant) {
        match self.ended(now) {
            INTERVALS => *self = Self::nothing(now),
            ended => {
                self.bytes.rotate_right(ended);
                self.bytes[..ended].fill(0);
                self.since += INTERVAL * u32::try_from(ended).unwrap_or(u32::MAX);
            }
        }
        self.bytes[0] = self.bytes[0].saturating_add(bytes);
    }

    /// The number of bytes within the last ten minutes.
    pub(super) fn total(&self, now: Instant) -> u64 {
        let counted = &self.bytes[..INTERVALS - self.ended(now)];
        counted.iter().fold(0, |total, bytes| total.saturating_add(*bytes))
    }

    /// The number of intervals that have ended since the newest one began, but at most all.
    fn ended(&self, now: Instant) -> usize {
        let ended = now.saturating_duration_since(self.since).as_secs() / INTERVAL.as_secs();
        usize::try_from(ended).unwrap_or(INTERVALS).min(INTERVALS)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bytes_count_for_ten_minutes() {
        let begun = Instant::now();
        let after = |minutes: u64| begun + INTERVAL * u32::try_from(minutes).unwrap();
        let mut written = Written::nothing(begun);
        written.add(5, begun);
        written.add(7, after(1));
        assert_eq!(written.total(after(10)), 12);
        assert_eq!(written.total(after(11)), 7);
        written.add(u64::MAX, after(11));
        assert_eq!(written.total(after(11)), u64::MAX);
        written.add(1, after(1000));
        assert_eq!((written.total(after(1000)), written.total(after(1011))), (1, 0));
    }

    proptest! {
        /// Compares with a list of all writes.
        #[test]
        fn each_write_counts_between_ten_and_eleven_minutes(writes in prop::collection::vec((0_u64..400, 1_u64..1000), 0..50)) {
            let (mut now, mut all) = (Instant::now(), Vec::new());
            let mut written = Written::nothing(now);
            for (pause, bytes) in writes {
                now += Duration::from_secs(pause);
                written.add(bytes, now);
                all.push((now, bytes));
                let within = |minutes| {
                    let recent = all.iter().filter(|(at, _)| now - *at < INTERVAL * minutes);
                    recent.map(|(_, bytes)| bytes).sum::<u64>()
                };
                let total = written.total(now);
                prop_assert!(within(10) <= total && total <= within(11), "{total}");
            }
        }
    }
}
