//! Whether the network between the two halves is slow, so that the agent compresses bodies.
//!
//! The agent measures the round trips of its PING frames (RFC 9113, section 6.7). A round trip of at most a millisecond
//! means a local network, where compression would only cost CPU time. On a link with 1 Mbit/s, the transmission of a
//! PING frame and of its acknowledgement alone takes longer.
//!
//! A busy machine acknowledges late. So only the shortest round trip of the last 5 to 10 minutes counts, and a flood of
//! requests does not make a link count as slow.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use protocol::blocks::Histories;
use tokio::time::Instant;

/// A link with a longer round trip is slow.
const SHORT_ROUND_TRIP: Duration = Duration::from_millis(1);

/// The shortest round trip of this window and of the previous one counts, so a round trip counts for one to two
/// windows.
const WINDOW: Duration = Duration::from_secs(5 * 60);

/// When bodies are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// If the link is slow.
    #[default]
    Auto,
    /// Always, such as on a link that is paid by the byte.
    Always,
    /// Never.
    Never,
}

/// The network that a tunnel crosses, as the agent sees it.
#[derive(Debug)]
pub struct Link {
    compression: Compression,
    histories: Histories,
    shortest: Mutex<Shortest>,
    is_slow: AtomicBool,
}

/// The shortest round trip.
#[derive(Debug, Default)]
struct Shortest {
    /// That of the current window, and when the window began.
    current: Option<(Instant, Duration)>,
    /// That of the window before.
    previous: Option<Duration>,
}

// === impl Link ===

impl Link {
    /// The link of a new tunnel. It counts as slow until it has been measured.
    pub fn new(compression: Compression) -> Self {
        let is_slow = AtomicBool::new(true);
        Self { compression, histories: Histories::sender(), shortest: Mutex::default(), is_slow }
    }

    /// Records the round trip of a ping.
    pub fn measured(&self, round_trip: Duration) {
        let mut shortest = self.shortest.lock().unwrap_or_else(PoisonError::into_inner);
        let is_slow = shortest.update(Instant::now(), round_trip) > SHORT_ROUND_TRIP;
        self.is_slow.store(is_slow, Ordering::Relaxed);
    }

    /// What the encoder of a new body needs, if the body is to be compressed.
    pub fn compression(&self) -> Option<&Histories> {
        let compresses = match self.compression {
            Compression::Auto => self.is_slow.load(Ordering::Relaxed),
            Compression::Always => true,
            Compression::Never => false,
        };
        compresses.then_some(&self.histories)
    }
}

// === impl Shortest ===

impl Shortest {
    fn update(&mut self, now: Instant, round_trip: Duration) -> Duration {
        let current = match self.current {
            Some((since, shortest)) if now.saturating_duration_since(since) < WINDOW => {
                (since, shortest.min(round_trip))
            }
            before => {
                self.previous = before.map(|(_, shortest)| shortest);
                (now, round_trip)
            }
        };
        self.current = Some(current);
        self.previous.map_or(current.1, |previous| previous.min(current.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_decides_before_the_link() {
        let compresses = |compression| {
            let link = Link::new(compression);
            [Duration::from_millis(20), Duration::from_micros(300)].map(|round_trip| {
                link.measured(round_trip);
                link.compression().is_some()
            })
        };
        assert_eq!(compresses(Compression::Auto), [true, false]);
        assert_eq!(compresses(Compression::Always), [true, true]);
        assert_eq!(compresses(Compression::Never), [false, false]);
    }

    #[test]
    fn a_link_is_slow_until_it_is_measured() {
        assert!(Link::new(Compression::Auto).compression().is_some());
    }

    #[test]
    fn the_shortest_round_trip_counts_for_five_to_ten_minutes() {
        let (mut shortest, start) = (Shortest::default(), Instant::now());
        let results = [(0, 3), (10, 1), (299, 40), (301, 40), (599, 50), (602, 50), (610, 60)]
            .map(|(at, millis)| shortest.update(start + Duration::from_secs(at), Duration::from_millis(millis)));
        assert_eq!(results.map(|shortest| shortest.as_millis()), [3, 1, 1, 1, 1, 40, 40]);
    }
}
