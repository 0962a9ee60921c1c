//! Whether the network between the two halves is slow, so that compression saves time.
//!
//! The agent measures it with PING frames (RFC 9113, section 6.7). The acknowledgement of a ping shows that the peer has everything
//! that was written before the ping. So two pings in succession give a lower bound of the bandwidth, and a ping that takes long
//! shows that data waits for the link. An idle link does not show its bandwidth. But if its round trip is short, the distance is
//! short, and most local networks are fast.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use h2::{Ping, PingPong};
use tokio::time::{Instant, sleep, timeout};

use crate::keepalive::{INTERVAL, PING_TIMEOUT, PeerLost};

/// The interval at which the written bytes are counted.
const TICK: Duration = Duration::from_millis(500);

/// If at least this many bytes were written since the last ping, the next ping is sent at once: data may wait for the link.
const MIN_SAMPLE: u64 = 256 * 1024;

/// A link with a longer round trip always counts as slow. The windows of TCP and of streams limit what it transfers per round trip,
/// at first to a few kilobytes.
const LONG_ROUND_TRIP: Duration = Duration::from_millis(5);

/// An idle link with a longer round trip may be slow. On 1 Mbit/s, a ping alone takes longer.
const SHORT_ROUND_TRIP: Duration = Duration::from_millis(1);

/// A link that was slow is fast again after this many pings with a short round trip in succession: the machine was busy, and not the
/// link.
const SHORT_PINGS: u32 = 3;

/// If a ping takes this much longer than the fastest one, data waits for the link.
const QUEUE_DELAY: Duration = Duration::from_millis(50);

/// A link that transfers this many bytes per second is fast. A processor core compresses several times as many, but it has other
/// work.
const FAST_BYTES_PER_SECOND: u128 = 30_000_000;

/// When bodies are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// While the link is slow.
    #[default]
    Auto,
    /// Always, such as on a link that is paid by the byte.
    Always,
    /// Never.
    Never,
}

/// The state of the link of one tunnel.
#[derive(Debug)]
pub struct Link {
    compression: Compression,
    is_slow: AtomicBool,
}

/// What the acknowledged pings show.
#[derive(Debug, Default)]
struct Estimate {
    /// The shortest round trip of this tunnel.
    shortest: Option<Duration>,
    last: Option<Acknowledged>,
    /// The number of pings with a short round trip in succession.
    short: u32,
}

/// A ping that was acknowledged.
#[derive(Clone, Copy, Debug)]
struct Acknowledged {
    at: Instant,
    round_trip: Duration,
    /// The bytes that had been written to the tunnel before.
    written: u64,
}

// === impl Link ===

impl Link {
    /// A link that has not been measured.
    pub fn new(compression: Compression) -> Self {
        Self { compression, is_slow: AtomicBool::new(true) }
    }

    /// Whether bodies may be compressed, now or later.
    pub fn may_compress(&self) -> bool {
        self.compression != Compression::Never
    }

    /// Whether bodies are compressed now.
    pub fn compresses(&self) -> bool {
        match self.compression {
            Compression::Auto => self.is_slow.load(Ordering::Relaxed),
            Compression::Always => true,
            Compression::Never => false,
        }
    }

    /// Pings until the peer is lost, as [`keepalive`](crate::keepalive::keepalive) does, but also at once, and more often while the
    /// tunnel transfers much. `written` returns the number of bytes that were written to the tunnel. Another future must drive the
    /// connection.
    pub async fn measure(&self, mut pings: PingPong, written: impl Fn() -> u64) -> PeerLost {
        let mut estimate = Estimate::default();
        loop {
            let (sent, written_before) = (Instant::now(), written());
            match timeout(PING_TIMEOUT, pings.ping(Ping::opaque())).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return PeerLost::Ended(error),
                Err(_) => return PeerLost::Silent,
            }
            let acknowledged = Acknowledged { at: Instant::now(), round_trip: sent.elapsed(), written: written_before };
            if let Some(is_slow) = estimate.update(acknowledged) {
                self.is_slow.store(is_slow, Ordering::Relaxed);
            }
            loop {
                sleep(TICK).await;
                if sent.elapsed() >= INTERVAL || written() >= written_before + MIN_SAMPLE {
                    break;
                }
            }
        }
    }
}

// === impl Estimate ===

impl Estimate {
    /// Whether the link is slow; `None` if the acknowledgement does not show it.
    fn update(&mut self, now: Acknowledged) -> Option<bool> {
        let shortest = self.shortest.map_or(now.round_trip, |shortest| shortest.min(now.round_trip));
        self.shortest = Some(shortest);
        self.short = if now.round_trip <= SHORT_ROUND_TRIP { self.short + 1 } else { 0 };
        let Some(before) = self.last.replace(now) else { return Some(now.round_trip > SHORT_ROUND_TRIP) };
        if shortest > LONG_ROUND_TRIP {
            return Some(true);
        }
        let (bytes, time) = (now.written.saturating_sub(before.written), now.at.saturating_duration_since(before.at));
        let is_fast = u128::from(bytes) * 1_000_000 >= FAST_BYTES_PER_SECOND * time.as_micros();
        if self.short >= SHORT_PINGS || is_fast {
            return Some(false);
        }
        (now.round_trip > shortest + QUEUE_DELAY).then_some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The results of pings, each as the time in milliseconds at which it was acknowledged, its round trip in microseconds, and the
    /// kilobytes that were written before.
    fn updates(pings: &[(u64, u64, u64)]) -> Vec<Option<bool>> {
        let (mut estimate, start) = (Estimate::default(), Instant::now());
        let acknowledged = |(at, round_trip, written): (u64, u64, u64)| Acknowledged {
            at: start + Duration::from_millis(at),
            round_trip: Duration::from_micros(round_trip),
            written: written * 1_000,
        };
        pings.iter().map(|ping| estimate.update(acknowledged(*ping))).collect()
    }

    #[test]
    fn a_link_with_a_long_round_trip_is_slow() {
        assert_eq!(updates(&[(20, 20_000, 0), (1_000, 20_000, 40_000), (9_000, 20_000, 40_000)]), [Some(true); 3]);
    }

    #[test]
    fn a_link_with_a_short_round_trip_is_fast_until_data_waits() {
        let pings = [(1, 300, 0), (500, 900, 400), (1_400, 400_000, 500), (2_200, 300_000, 600)];
        assert_eq!(updates(&pings), [Some(false), None, Some(true), Some(true)]);
    }

    #[test]
    fn a_link_that_transfers_much_is_fast() {
        let pings = [(2, 2_000, 0), (502, 2_000, 14_000), (1_002, 80_000, 30_000)];
        assert_eq!(updates(&pings), [Some(true), None, Some(false)]);
    }

    #[test]
    fn a_busy_machine_does_not_make_a_link_slow_for_ever() {
        let pings = [(1, 300, 0), (900, 90_000, 400), (10_900, 300, 400), (20_900, 300, 400), (30_900, 300, 400)];
        assert_eq!(updates(&pings), [Some(false), Some(true), None, None, Some(false)]);
    }

    #[test]
    fn the_configuration_decides_before_the_link() {
        let compresses = |compression| {
            let link = Link::new(compression);
            [true, false].map(|is_slow| {
                link.is_slow.store(is_slow, Ordering::Relaxed);
                link.compresses()
            })
        };
        assert_eq!(compresses(Compression::Auto), [true, false]);
        assert_eq!(compresses(Compression::Always), [true, true]);
        assert_eq!(compresses(Compression::Never), [false, false]);
    }
}
