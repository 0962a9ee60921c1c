//! Every number of the client, and why it is what it is.

use std::time::Duration;

/// Flow-control window of one stream, in bytes: what one stalled reader may cost. The same as a tunnel's, since a byte
/// that waits here waits for the tunnel.
pub(super) const STREAM_WINDOW: u32 = 1024 * 1024;

/// Flow-control window of a connection: the largest that RFC 9113 section 6.9.1 allows, so that it never binds before
/// the stream windows do. [`UNREAD`] bounds the memory.
pub(super) const CONNECTION_WINDOW: u32 = (1 << 31) - 1;

/// Bytes that all responses together may hold unread. Beyond that, the longest one of the virtual cluster that holds most is
/// reset.
pub(super) const UNREAD: usize = 64 * 1024 * 1024;

/// DATA frames up to this size, in bytes; lists are megabytes.
pub(super) const MAX_FRAME: u32 = 64 * 1024;

/// Response headers up to this size, in bytes. Warnings and audit annotations are the longest.
pub(super) const MAX_HEADER_LIST: u32 = 256 * 1024;

/// What `h2` may buffer of one request body, in bytes.
pub(super) const MAX_SEND_BUFFER: usize = 1024 * 1024;

/// Streams that were reset here and are remembered while the API server's last frames for them arrive. A thousand
/// clients may leave at once.
pub(super) const REMEMBERED_RESETS: usize = 10_000;

/// Streams on one connection even if the API server allows more. Go's default is 250; one TCP connection should not
/// carry everything.
pub(super) const MOST_STREAMS: usize = 256;

/// What a connection is expected to carry before any has told (RFC 9113 section 6.5.2 recommends no less than 100).
pub(super) const EXPECTED_STREAMS: usize = 100;

/// Connections to one address for one class of requests: 256 times 100 streams are more than all tunnels carry.
pub(super) const MOST_CONNECTIONS: usize = 256;

/// How long a TCP connection may take.
pub(super) const CONNECT: Duration = Duration::from_secs(5);

/// How long TLS may take, and after it the first HTTP/2 round trip.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(5);

/// TCP keep-alive: silence before the first probe. HTTP/2 connections are pinged besides, see [`tunnel::keepalive`].
pub(super) const TCP_IDLE: Duration = Duration::from_secs(30);

/// TCP keep-alive: time between probes.
pub(super) const TCP_INTERVAL: Duration = Duration::from_secs(15);

/// A connection without streams is closed after this long if the pool has enough without it.
pub(super) const IDLE: Duration = Duration::from_secs(60);

/// How often the pools are looked after.
pub(super) const TICK: Duration = Duration::from_secs(1);

/// How often while draining: the process waits for the last connection.
pub(super) const DRAIN_TICK: Duration = Duration::from_millis(50);

/// How long to wait before credentials that could not be read are read again.
pub(super) const REOPEN: Duration = Duration::from_secs(5);

/// The first wait before an address that failed is tried again; it doubles.
pub(super) const FIRST_PROBE: Duration = Duration::from_secs(1);

/// No wait before a probe is longer.
pub(super) const LAST_PROBE: Duration = Duration::from_secs(30);

/// An address that failed again so soon after it came back has not recovered: its wait goes on doubling.
pub(super) const PROVEN: Duration = Duration::from_secs(30);

/// How often a request that was certainly not processed is sent again.
pub(super) const RESENDS: u32 = 5;

/// Of `allowed` streams per connection, how many are used. The margin covers streams that ended here and not yet
/// there: the API server counts one until it has seen our reset.
pub(super) fn usable(allowed: usize) -> usize {
    let allowed = allowed.min(MOST_STREAMS);
    allowed - allowed / 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_margin_but_never_nothing() {
        assert_eq!([0, 1, 7, 8, 100, 250].map(usable), [0, 1, 7, 7, 88, 219]);
        assert_eq!(usable(usize::MAX), 224);
    }
}
