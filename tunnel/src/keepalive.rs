//! Finds a dead peer. TCP alone would need minutes: a NAT that forgot the connection answers nothing.

use std::time::Duration;

use h2::{Ping, PingPong};
use tokio::time::{Instant, sleep, timeout};

/// Time between pings, and the time an answer may take. Together they find a dead peer within 30 s.
pub const INTERVAL: Duration = Duration::from_secs(10);
/// See [`INTERVAL`].
pub const PING_TIMEOUT: Duration = Duration::from_secs(15);

/// Why the tunnel is over.
#[derive(Debug, thiserror::Error)]
pub enum PeerLost {
    /// No answer in time.
    #[error("no acknowledgement of a PING within {} s", PING_TIMEOUT.as_secs())]
    Silent,
    /// The connection ended by itself.
    #[error("the connection ended")]
    Ended(#[source] h2::Error),
}

/// Pings until the peer is lost. Calls `seen` with every round-trip time. The connection must be driven elsewhere.
pub async fn keepalive(mut pings: PingPong, mut seen: impl FnMut(Duration)) -> PeerLost {
    loop {
        sleep(INTERVAL).await;
        let sent = Instant::now();
        match timeout(PING_TIMEOUT, pings.ping(Ping::opaque())).await {
            Ok(Ok(_)) => seen(sent.elapsed()),
            Ok(Err(err)) => return PeerLost::Ended(err),
            Err(_) => return PeerLost::Silent,
        }
    }
}
