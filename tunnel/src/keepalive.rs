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

/// How often [`keepalive_quietly`] looks whether bytes have arrived.
const CHECK: Duration = Duration::from_secs(3);
/// After this many checks, it pings in any case, to measure the round trip: once a minute.
const QUIET_CHECKS: u32 = 20;
/// It pings earlier after this many checks without a byte: 12 s, longer than the [`INTERVAL`] of the peer's pings. With
/// [`PING_TIMEOUT`], a dead peer is detected within 30 s.
const SILENT_CHECKS: u32 = 4;

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

/// Pings until the peer is lost. Sends the first ping immediately. Calls `report` with every round-trip time. Another
/// future must drive the connection.
pub async fn keepalive(mut pings: PingPong, mut report: impl FnMut(Duration)) -> PeerLost {
    let mut interval = FIRST_INTERVAL;
    loop {
        if let Some(lost) = ping(&mut pings, &mut report).await {
            return lost;
        }
        sleep(interval).await;
        interval = (2 * interval).min(INTERVAL);
    }
}

/// Like [`keepalive`], but with fewer pings, for the end whose peer runs [`keepalive`]. Bytes from the peer, at least
/// its pings, prove that it is alive. On a metered link, pings are a large part of the traffic of an idle tunnel.
/// `received` returns the number of bytes so far.
pub async fn keepalive_quietly(
    mut pings: PingPong,
    mut report: impl FnMut(Duration),
    received: impl Fn() -> u64,
) -> PeerLost {
    let mut interval = FIRST_INTERVAL;
    loop {
        if let Some(lost) = ping(&mut pings, &mut report).await {
            return lost;
        }
        if interval < INTERVAL {
            sleep(interval).await;
            interval *= 2;
            continue;
        }
        let mut silent = 0;
        for _ in 0..QUIET_CHECKS {
            let before = received();
            sleep(CHECK).await;
            silent = if received() == before { silent + 1 } else { 0 };
            if silent == SILENT_CHECKS {
                break;
            }
        }
    }
}

async fn ping(pings: &mut PingPong, report: &mut impl FnMut(Duration)) -> Option<PeerLost> {
    let sent = Instant::now();
    match timeout(PING_TIMEOUT, pings.ping(Ping::opaque())).await {
        Ok(Ok(_)) => report(sent.elapsed()),
        Ok(Err(err)) => return Some(PeerLost::Ended(err)),
        Err(_) => return Some(PeerLost::Silent),
    }
    None
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

    use bytes::Bytes;
    use tokio::io::duplex;

    use super::*;
    use crate::metered::{Meter, Metered};
    use crate::settings;

    #[derive(Default)]
    struct Received(AtomicU64);

    impl Meter for Received {
        fn received(&self, bytes: u64) {
            self.0.fetch_add(bytes, Ordering::Relaxed);
        }

        fn sent(&self, _: u64) {}
    }

    /// The pings of the two halves, the one that pings always and the other one, while the first one is alive for `alive`; and how long
    /// the other one then takes to notice.
    async fn pings(alive: Duration) -> ([u32; 2], Duration) {
        let (near, far) = duplex(4096);
        let received = Arc::new(Received::default());
        let near = Metered::new(near, Arc::clone(&received));
        let (client, server) =
            tokio::join!(settings::client().handshake::<_, Bytes>(near), settings::server().handshake::<_, Bytes>(far));
        let ((_requests, mut client), mut server) = (client.unwrap(), server.unwrap());
        let (own, others) = (client.ping_pong().unwrap(), server.ping_pong().unwrap());
        let counts = [0, 0].map(AtomicU32::new);
        let count = |at: usize| {
            counts[at].fetch_add(1, Ordering::Relaxed);
        };
        let mut peer = pin!(async {
            let living = async {
                tokio::select! {
                    _ = poll_fn(|cx| server.poll_accept(cx)) => {}
                    _ = keepalive(others, |_| count(0)) => {}
                }
            };
            assert!(timeout(alive, living).await.is_err(), "it does not end by itself");
        });
        let mut watching = pin!(async {
            tokio::select! {
                _ = poll_fn(|cx| Pin::new(&mut client).poll(cx)) => unreachable!("the connection stays open"),
                lost = keepalive_quietly(own, |_| count(1), || received.0.load(Ordering::Relaxed)) => lost,
            }
        });
        tokio::select! {
            () = &mut peer => {}
            lost = &mut watching => panic!("{lost}"),
        }
        let silent = Instant::now();
        assert!(matches!(watching.await, PeerLost::Silent));
        (counts.each_ref().map(|count| count.load(Ordering::Relaxed)), silent.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_half_whose_peer_pings_is_quiet_and_notices_its_loss() {
        for seconds in [3600, 3603, 3607, 3611] {
            let ([always, quietly], noticed) = pings(Duration::from_secs(seconds)).await;
            assert!((350..380).contains(&always), "{always} pings in an hour");
            assert!((50..70).contains(&quietly), "{quietly} pings in an hour");
            assert!(noticed <= Duration::from_secs(30), "after {noticed:?}");
        }
    }
}
