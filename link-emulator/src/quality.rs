//! What a network does to packets.

use std::time::Duration;

use serde::Deserialize;

/// What the network between the two ends does to packets. The default is a perfect network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Quality {
    /// The round-trip time of a small packet on an empty link, in milliseconds. Each direction has half of it.
    pub round_trip_millis: u32,
    /// How many of a thousand packets are lost, in each direction.
    pub lost_per_mille: u32,
    /// The rate of each direction in kbit/s, with the IP headers. `None`: any rate.
    pub kilobits: Option<u32>,
    /// The longest IP packet in bytes.
    pub mtu: u16,
    /// The number of seconds after which a NAT forgets an idle connection. It then drops the packets of the connection
    /// silently. `None`: it never forgets.
    pub nat_expiry_seconds: Option<u32>,
    /// Whether all packets are lost.
    pub dead: bool,
}

// === impl Quality ===

impl Quality {
    /// The time that every packet needs from end to end, in addition to that of its transmission.
    pub(crate) fn delay(&self) -> Duration {
        Duration::from_millis(u64::from(self.round_trip_millis)) / 2
    }

    /// The time in which a packet of this length leaves.
    pub(crate) fn transmission(&self, bytes: usize) -> Duration {
        let bits = u64::try_from(bytes).unwrap_or(u64::MAX).saturating_mul(8);
        self.kilobits
            .map_or(Duration::ZERO, |rate| Duration::from_micros(bits.saturating_mul(1_000) / u64::from(rate.max(1))))
    }

    pub(crate) fn nat_expiry(&self) -> Option<Duration> {
        self.nat_expiry_seconds.map(|seconds| Duration::from_secs(u64::from(seconds)))
    }
}

impl Default for Quality {
    fn default() -> Self {
        Self {
            round_trip_millis: 0,
            lost_per_mille: 0,
            kilobits: None,
            mtu: 1_500,
            nat_expiry_seconds: None,
            dead: false,
        }
    }
}
