//! Detects a dead peer. TCP alone would need minutes, for example if a NAT has dropped the connection without a message.

use std::time::Duration;

use h2::{Ping, PingPong};
use tokio::time::{Instant, sleep, timeout};

/// The time between the first acknowledgement and the second ping. It doubles up to [`INTERVAL`], so that the round trip of a new
/// tunnel is soon known.
const FIRST_INTERVAL: Duration = Duration::from_millis(100);
/// The time between an acknowledgement and the next ping. With [`PING_TIMEOUT`], a dead peer is detected within 30 s.
pub const INTERVAL: Duration = Duration::from_secs(10);
/// The time limit for the acknowledgement of a ping.
pub const PING_TIMEOUT: Duration = Duration::from_secs(15);

/// Why a tunnel has ended.
#[derive(Debug, thiserror::Error)]
pub enum PeerLost {
    /// There was no acknowledgement in time.
    #[error("no acknowledgement of a PING within {} s", PING_TIMEOUT.as_secs())]
    Silent,
    /// The connection ended by itself.
    #[error("the connection ended")]
    Ended(#[source] h2::Error),
}

/// Pings until the peer is lost, for the first time at once. Calls `report` with every round-trip time. Another future must drive the connection.
pub async fn keepalive(mut pings: PingPong, mut report: impl FnMut(Duration)) -> PeerLost {
    let mut interval = FIRST_INTERVAL;
    loop {
        let sent = Instant::now();
        match timeout(PING_TIMEOUT, pings.ping(Ping::opaque())).await {
            Ok(Ok(_)) => report(sent.elapsed()),
            Ok(Err(err)) => return PeerLost::Ended(err),
            Err(_) => return PeerLost::Silent,
        }
        sleep(interval).await;
        interval = (2 * interval).min(INTERVAL);
    }
}
