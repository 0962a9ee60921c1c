//! The table of a NAT, without I/O and clock.
//!
//! A NAT that has forgotten a connection drops its packets. RFC 5382, section 5, asks for mappings that live for two hours;
//! many devices forget after a minute.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

/// More connections than a test opens. When the table is full, the connections that are idle are forgotten.
const CONNECTIONS: usize = 10_000;

/// The connections through a NAT.
#[derive(Debug, Default)]
pub(crate) struct Mappings {
    /// When each connection had its last packet.
    used: HashMap<Connection, Instant>,
}

/// Which end has sent a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    /// The end behind the NAT.
    Site,
    /// The end before it.
    Cloud,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Connection {
    protocol: u8,
    site: (u32, u16),
    cloud: (u32, u16),
}

const TCP: u8 = 6;
const UDP: u8 = 17;
/// The flags of a TCP header (RFC 9293, section 3.1).
const SYN: u8 = 0b10;
const ACK: u8 = 0b1_0000;

// === impl Mappings ===

impl Mappings {
    /// Whether the NAT lets this IPv4 packet through. `expiry`: after which time it forgets an idle connection.
    pub(crate) fn admit(&mut self, now: Instant, packet: &[u8], sender: Sender, expiry: Option<Duration>) -> bool {
        let Some((connection, opens)) = Connection::of(packet, sender) else { return true };
        let forgotten = match (self.used.get(&connection), expiry) {
            (Some(used), Some(expiry)) => now.saturating_duration_since(*used) > expiry,
            _ => false,
        };
        // A new connection of the site with the same port gets a new mapping.
        if forgotten && !(opens && sender == Sender::Site) {
            return false;
        }
        if self.used.len() >= CONNECTIONS {
            self.used.retain(|_, used| now.saturating_duration_since(*used) < Duration::from_secs(60));
        }
        self.used.insert(connection, now);
        true
    }
}

// === impl Connection ===

impl Connection {
    /// The connection of a packet, and whether the packet opens it. `None`: neither TCP nor UDP, or a later fragment.
    fn of(packet: &[u8], sender: Sender) -> Option<(Self, bool)> {
        let version_and_length = *packet.first()?;
        if version_and_length >> 4 != 4 || number(packet, 6)? & 0x1fff != 0 {
            return None;
        }
        let protocol = *packet.get(9)?;
        if protocol != TCP && protocol != UDP {
            return None;
        }
        let address = |at| Some(u32::from(number(packet, at)?) << 16 | u32::from(number(packet, at + 2)?));
        let segment = packet.get(usize::from(version_and_length & 0xf) * 4..)?;
        let source = (address(12)?, number(segment, 0)?);
        let destination = (address(16)?, number(segment, 2)?);
        let opens = protocol == UDP || *segment.get(13)? & (SYN | ACK) == SYN;
        let (site, cloud) = match sender {
            Sender::Site => (source, destination),
            Sender::Cloud => (destination, source),
        };
        Some((Self { protocol, site, cloud }, opens))
    }
}

/// The two bytes at this offset.
fn number(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MINUTE: Option<Duration> = Some(Duration::from_secs(60));

    /// A TCP packet with these ports.
    fn tcp(source: u16, destination: u16, flags: u8) -> Vec<u8> {
        let mut packet = vec![0; 40];
        packet[0] = 0x45;
        packet[9] = TCP;
        packet[20..22].copy_from_slice(&source.to_be_bytes());
        packet[22..24].copy_from_slice(&destination.to_be_bytes());
        packet[33] = flags;
        packet
    }

    #[test]
    fn an_idle_connection_is_forgotten_in_both_directions() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut mappings = Mappings::default();
        assert!(mappings.admit(start, &tcp(4_000, 443, SYN), Sender::Site, MINUTE));
        assert!(mappings.admit(after(50), &tcp(443, 4_000, ACK), Sender::Cloud, MINUTE));
        assert!(mappings.admit(after(100), &tcp(4_000, 443, ACK), Sender::Site, MINUTE), "the response renews it");
        assert!(!mappings.admit(after(161), &tcp(443, 4_000, ACK), Sender::Cloud, MINUTE));
        assert!(!mappings.admit(after(162), &tcp(4_000, 443, ACK), Sender::Site, MINUTE));
        assert!(mappings.admit(after(163), &tcp(4_001, 443, SYN), Sender::Site, MINUTE), "another connection");
        assert!(
            mappings.admit(after(164), &tcp(4_000, 443, SYN), Sender::Site, MINUTE),
            "a new one with the same port"
        );
        assert!(mappings.admit(after(165), &tcp(443, 4_000, SYN | ACK), Sender::Cloud, MINUTE));
    }

    #[test]
    fn without_an_expiry_nothing_is_forgotten() {
        let start = Instant::now();
        let mut mappings = Mappings::default();
        for hours in 0..10 {
            let now = start + Duration::from_secs(hours * 3_600);
            assert!(mappings.admit(now, &tcp(443, 4_000, ACK), Sender::Cloud, None));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_packet(bytes in proptest::collection::vec(any::<u8>(), 0..80), site in any::<bool>()) {
            let sender = if site { Sender::Site } else { Sender::Cloud };
            prop_assert!(Mappings::default().admit(Instant::now(), &bytes, sender, MINUTE));
        }
    }
}
