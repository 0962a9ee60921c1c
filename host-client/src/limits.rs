//! All limits and intervals of the client, with their reasons.

use std::time::Duration;

use ops::backoff::Backoff;

/// The flow-control window of one stream, in bytes: the memory that one stalled reader may use. It is the same as in a
/// tunnel, because a byte that waits here waits for the tunnel.
pub(super) const STREAM_WINDOW: u32 = 1024 * 1024;

/// The flow-control window of a connection: the maximum of RFC 9113 section 6.9.1, so that only the windows of streams
/// limit the flow. [`UNREAD`] bounds the memory.
pub(super) const CONNECTION_WINDOW: u32 = (1 << 31) - 1;

/// The unread bytes of all responses together. Beyond this limit, the longest response of the virtual cluster with the
/// most unread bytes is reset.
pub(super) const UNREAD: usize = 64 * 1024 * 1024;

/// The maximum size of DATA frames, in bytes. Lists have megabytes.
pub(super) const MAX_FRAME: u32 = 64 * 1024;

/// The maximum size of response headers, in bytes. Warnings and audit annotations are the longest.
pub(super) const MAX_HEADER_LIST: u32 = 256 * 1024;

/// The maximum part of one request body that `h2` may buffer, in bytes.
pub(super) const MAX_SEND_BUFFER: usize = 1024 * 1024;

/// The number of reset streams that are remembered until the last frames of the API server have arrived. A thousand
/// clients may disconnect at once.
pub(super) const REMEMBERED_RESETS: usize = 10_000;

/// The maximum number of streams on one connection, even if the API server allows more. Go's default is 250. One TCP
/// connection should not carry all streams.
pub(super) const MAX_STREAMS: usize = 256;

/// The assumed number of streams of a connection before the API server has announced it (RFC 9113 section 6.5.2
/// recommends at least 100).
pub(super) const EXPECTED_STREAMS: usize = 100;

/// The maximum number of connections to one address for one class of requests. 256 times 100 streams are more than all
/// tunnels carry.
pub(super) const MAX_CONNECTIONS: usize = 256;

/// The same for requests that have a connection to themselves. The agent limits these requests for each virtual cluster, and has
/// fewer of them in total, so that one never waits for another.
pub(super) const MAX_SINGLE_CONNECTIONS: usize = 1_000;

/// The timeout of a TCP connection.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The timeout of the TLS handshake, and of the first HTTP/2 round trip after it.
pub(super) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// TCP keep-alive: the idle time before the first probe. HTTP/2 connections also have pings, see [`tunnel::keepalive`].
pub(super) const TCP_IDLE: Duration = Duration::from_secs(30);

/// TCP keep-alive: the time between probes.
pub(super) const TCP_INTERVAL: Duration = Duration::from_secs(15);

/// The time after which a connection without streams is closed, if the pool has enough others.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// The interval of the upkeep of the pools.
pub(super) const UPKEEP_INTERVAL: Duration = Duration::from_secs(1);

/// The same interval while draining, because the process waits for the last connection.
pub(super) const DRAIN_INTERVAL: Duration = Duration::from_millis(50);

/// The wait before credentials that could not be read are read again.
pub(super) const REOPEN_INTERVAL: Duration = Duration::from_secs(5);

/// The waits before a failed address is tried again.
pub(super) const PROBE_BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30));

/// An address that fails again within this time after its recovery continues with its previous wait.
pub(super) const STABLE_TIME: Duration = Duration::from_secs(30);

/// The maximum number of times that a request is sent again if it was certainly not processed.
pub(super) const MAX_RESENDS: u32 = 5;

/// The number of streams to use if `allowed` are allowed per connection. The margin covers streams that have ended
/// here, but that the API server counts until it has received the reset.
pub(super) fn usable(allowed: usize) -> usize {
    let allowed = allowed.min(MAX_STREAMS);
    allowed - allowed / 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_leaves_at_least_one_stream() {
        assert_eq!([0, 1, 7, 8, 100, 250].map(usable), [0, 1, 7, 7, 88, 219]);
        assert_eq!(usable(usize::MAX), 224);
    }
}
