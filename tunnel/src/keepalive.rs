//! Detects a dead peer. TCP alone would need minutes, for example if a NAT has dropped the connection without a message.

use std::time::Duration;

use h2::{Ping, PingPong};
use tokio::time::{Instant, sleep, timeout};

/// The time between the first acknowledgement and the second ping. It doubles up to [`CHECK`], so that the round trip of a new
/// tunnel is soon known.
const FIRST_INTERVAL: Duration = Duration::from_millis(100);
/// The interval at which [`keepalive`] checks whether bytes have arrived.
const CHECK: Duration = Duration::from_millis(1500);
/// The time limit for the acknowledgement of a ping.
pub const PING_TIMEOUT: Duration = Duration::from_secs(15);

/// How long one end of a tunnel waits before it sends a PING.
#[derive(Clone, Copy, Debug)]
pub struct Intervals {
    /// The number of consecutive checks without a received byte before a PING. Together with one more check and [`PING_TIMEOUT`],
    /// it must be at most 30 s, so that a dead peer is detected in that time.
    silent: u32,
    /// The number of checks before a PING even if bytes arrive. This PING measures the round trip.
    busy: u32,
}

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

// === impl Intervals ===

impl Intervals {
    /// The end that has dialled pings after 10.5 s of silence. Once a minute, it measures whether the network is slow.
    pub const DIALLED: Self = Self { silent: 7, busy: 40 };
    /// The other end pings after 13.5 s of silence. A living peer that has dialled is silent for at most 12 s: its own silence, and
    /// the check in which it began. Once a minute, this end measures the round trip for `atoll status`.
    pub const ACCEPTED: Self = Self { silent: 9, busy: 40 };

    const fn detects_in_time(self) -> bool {
        (self.silent as u128 + 1) * CHECK.as_millis() + PING_TIMEOUT.as_millis() <= 30_000
    }
}

const _: () = {
    assert!(Intervals::DIALLED.detects_in_time() && Intervals::ACCEPTED.detects_in_time());
    assert!(Intervals::ACCEPTED.silent > Intervals::DIALLED.silent + 1, "both ends would ping an idle tunnel");
};

/// Pings until the peer is lost. Sends the first ping immediately. Calls `report` with every round-trip time. Another
/// future must drive the connection. `received` returns the number of bytes so far.
///
/// Bytes from the peer prove that it is alive, so it gets only one PING a minute while it sends. On a link that is paid by the
/// byte, pings are a large part of the traffic of an idle tunnel.
pub async fn keepalive(
    mut pings: PingPong,
    intervals: Intervals,
    mut report: impl FnMut(Duration),
    received: impl Fn() -> u64,
) -> PeerLost {
    let mut interval = FIRST_INTERVAL;
    loop {
        if let Some(lost) = ping(&mut pings, &mut report).await {
            return lost;
        }
        if interval < CHECK {
            sleep(interval).await;
            interval *= 2;
            continue;
        }
        let mut silent = 0;
        for _ in 0..intervals.busy {
            let before = received();
            sleep(CHECK).await;
            silent = if received() == before { silent + 1 } else { 0 };
            if silent == intervals.silent {
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
    use std::sync::atomic::{AtomicU32, Ordering};

    use bytes::Bytes;
    use tokio::io::duplex;

    use super::*;
    use crate::metered::{Metered, Received};
    use crate::settings;

    /// The pings of the two ends, the one that has dialled and the other one, while the first one is alive for `alive`; and how
    /// long the other one then takes to notice.
    async fn pings(alive: Duration) -> ([u32; 2], Duration) {
        let ends = duplex(4096);
        let meters = [(); 2].map(|()| Arc::new(Received::default()));
        let (near, far) = (Metered::new(ends.0, Arc::clone(&meters[1])), Metered::new(ends.1, Arc::clone(&meters[0])));
        let (client, server) =
            tokio::join!(settings::client().handshake::<_, Bytes>(near), settings::server().handshake::<_, Bytes>(far));
        let ((_requests, mut client), mut server) = (client.unwrap(), server.unwrap());
        let (own, others) = (client.ping_pong().unwrap(), server.ping_pong().unwrap());
        let counts = [0, 0].map(AtomicU32::new);
        let count = |at: usize| {
            counts[at].fetch_add(1, Ordering::Relaxed);
        };
        let received = |at: usize| meters[at].bytes();
        let mut peer = pin!(async {
            let living = async {
                tokio::select! {
                    _ = poll_fn(|cx| server.poll_accept(cx)) => {}
                    _ = keepalive(others, Intervals::DIALLED, |_| count(0), || received(0)) => {}
                }
            };
            assert!(timeout(alive, living).await.is_err(), "it does not end by itself");
        });
        let mut watching = pin!(async {
            tokio::select! {
                _ = poll_fn(|cx| Pin::new(&mut client).poll(cx)) => unreachable!("the connection stays open"),
                lost = keepalive(own, Intervals::ACCEPTED, |_| count(1), || received(1)) => lost,
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
    async fn an_end_whose_peer_pings_is_quiet_and_notices_its_loss() {
        for seconds in [3600, 3603, 3607, 3611] {
            let ([dialled, accepted], noticed) = pings(Duration::from_secs(seconds)).await;
            assert!((300..=380).contains(&dialled), "{dialled} pings in an hour");
            assert!((50..70).contains(&accepted), "{accepted} pings in an hour");
            assert!(noticed <= Duration::from_secs(30), "after {noticed:?}");
        }
    }

    /// Requests, and their responses, replace the pings.
    #[tokio::test(start_paused = true)]
    async fn traffic_is_proof_enough() {
        let (near, far) = duplex(4096);
        let (client, server) =
            tokio::join!(settings::client().handshake::<_, Bytes>(near), settings::server().handshake::<_, Bytes>(far));
        let ((_requests, client), mut server) = (client.unwrap(), server.unwrap());
        let pings = server.ping_pong().unwrap();
        let (count, began) = (AtomicU32::new(0), Instant::now());
        let count_one = |_| {
            count.fetch_add(1, Ordering::Relaxed);
        };
        // A byte every 9 s.
        let received = || began.elapsed().as_secs() / 9;
        let idle = async {
            tokio::select! {
                _ = poll_fn(|cx| server.poll_accept(cx)) => {}
                _ = client => {}
                _ = keepalive(pings, Intervals::DIALLED, count_one, received) => {}
            }
        };
        assert!(timeout(Duration::from_secs(3600), idle).await.is_err(), "it does not end by itself");
        let count = count.load(Ordering::Relaxed);
        assert!((55..=75).contains(&count), "{count} pings in an hour");
    }
}
