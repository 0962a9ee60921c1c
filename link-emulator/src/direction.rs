//! One direction of a link: delay, loss and rate, without I/O and clock.

use std::collections::VecDeque;

use fastrand::Rng;
use tokio::time::Instant;

use crate::quality::Quality;

/// The length of the queue before a slow link in bytes: a hundred full packets, as in a common router. A longer queue would
/// only delay all packets of a slow link.
const QUEUE: usize = 150_000;

/// The largest number of packets on their way.
const PACKETS: usize = 1 << 16;

/// The packets that are on their way in one direction, in the order of their arrival.
#[derive(Debug)]
pub(crate) struct Direction {
    packets: VecDeque<Packet>,
    /// When the last packet has left.
    left: Instant,
    random: Rng,
}

#[derive(Debug)]
struct Packet {
    due: Instant,
    bytes: Vec<u8>,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It arrives.
    Sent,
    /// It is lost on its way.
    Lost,
    /// The queue before the link is full.
    Full,
}

// === impl Direction ===

impl Direction {
    /// Equal seeds lose the same packets.
    pub(crate) fn new(now: Instant, seed: u64) -> Self {
        Self { packets: VecDeque::new(), left: now, random: Rng::with_seed(seed) }
    }

    /// A packet enters the link.
    pub(crate) fn push(&mut self, now: Instant, packet: &[u8], quality: &Quality) -> Fate {
        // A link that has become fast has no queue.
        let longest = quality.transmission(QUEUE);
        let waiting = if longest.is_zero() { longest } else { self.left.saturating_duration_since(now) };
        if waiting > longest || self.packets.len() >= PACKETS {
            return Fate::Full;
        }
        // A packet that is lost behind the queue has also used the link.
        self.left = now + waiting + quality.transmission(packet.len());
        if quality.dead || self.random.u32(0..1_000) < quality.lost_per_mille {
            return Fate::Lost;
        }
        let due = self.left + quality.delay();
        // A link keeps the order of packets even if its delay becomes shorter.
        let due = self.packets.back().map_or(due, |last| due.max(last.due));
        self.packets.push_back(Packet { due, bytes: packet.to_vec() });
        Fate::Sent
    }

    /// When the next packet arrives.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.packets.front().map(|packet| packet.due)
    }

    /// A packet that has arrived by now.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Vec<u8>> {
        if self.due()? > now {
            return None;
        }
        self.packets.pop_front().map(|packet| packet.bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_packet_needs_half_of_the_round_trip_and_its_transmission() {
        let start = Instant::now();
        let mut direction = Direction::new(start, 1);
        let quality = Quality { round_trip_millis: 50, kilobits: Some(1_000), ..Quality::default() };
        assert_eq!(direction.push(start, &[0; 1_250], &quality), Fate::Sent);
        assert_eq!(direction.push(start, &[0; 1_250], &quality), Fate::Sent);
        let after = |millis| start + Duration::from_millis(millis);
        assert_eq!(direction.due(), Some(after(35)));
        assert_eq!(direction.pop(after(34)), None);
        assert!(direction.pop(after(35)).is_some());
        assert_eq!(direction.due(), Some(after(45)));
    }

    #[test]
    fn a_slow_link_has_a_short_queue() {
        let start = Instant::now();
        let mut direction = Direction::new(start, 1);
        let quality = Quality { kilobits: Some(1_000), ..Quality::default() };
        let sent = (0..1_000).filter(|_| direction.push(start, &[0; 1_500], &quality) == Fate::Sent).count();
        assert_eq!(sent, 101);
    }

    #[test]
    fn a_link_that_becomes_fast_has_no_queue() {
        let start = Instant::now();
        let mut direction = Direction::new(start, 1);
        let slow = Quality { kilobits: Some(1_000), ..Quality::default() };
        assert_eq!(direction.push(start, &[0; 1_250], &slow), Fate::Sent);
        assert_eq!(direction.push(start, &[0; 1_250], &Quality::default()), Fate::Sent);
    }

    #[test]
    fn as_many_packets_are_lost_as_it_says() {
        let start = Instant::now();
        let mut direction = Direction::new(start, 7);
        let quality = Quality { lost_per_mille: 50, ..Quality::default() };
        let lost = (0..20_000).filter(|_| direction.push(start, &[0; 100], &quality) == Fate::Lost).count();
        assert!((900..1_100).contains(&lost), "{lost}");
        let dead = Quality { dead: true, ..Quality::default() };
        assert_eq!(direction.push(start, &[0; 100], &dead), Fate::Lost);
    }

    proptest! {
        #[test]
        fn what_arrives_keeps_its_order(steps in proptest::collection::vec((0_u64..200, 0_u32..400, any::<bool>()), 1..60)) {
            let mut now = Instant::now();
            let mut direction = Direction::new(now, 3);
            let (mut number, mut arrived) = (0_u32, Vec::new());
            for (pause, round_trip_millis, slow) in steps {
                now += Duration::from_millis(pause);
                let kilobits = slow.then_some(1_000);
                let quality = Quality { round_trip_millis, kilobits, ..Quality::default() };
                direction.push(now, &number.to_be_bytes(), &quality);
                number += 1;
                arrived.extend(std::iter::from_fn(|| direction.pop(now)));
            }
            arrived.extend(std::iter::from_fn(|| direction.pop(now + Duration::from_secs(60))));
            let expected: Vec<Vec<u8>> = (0..number).map(|number| number.to_be_bytes().to_vec()).collect();
            prop_assert_eq!(arrived, expected);
        }
    }
}
