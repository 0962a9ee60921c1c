//! HTTP/2 numbers of a tunnel. Each answers a trap: with the defaults of common implementations one client that stops
//! reading freezes everybody else on the connection.

/// Flow-control window of one stream, in bytes: what one stalled reader may cost, and bandwidth times delay of one list
/// (1 MiB carries 20 MB/s over 50 ms).
pub const STREAM_WINDOW: u32 = 1024 * 1024;

/// Flow-control window of the connection: the largest that RFC 9113 section 6.9.1 allows, so that it never binds before
/// the stream windows do. Memory is bounded by [`BUFFER_BUDGET`] instead.
pub const CONNECTION_WINDOW: u32 = (1 << 31) - 1;

/// Bytes that all streams of one tunnel together may hold unread before the worst one is reset. A hundred readers may stall with
/// a full window each.
pub const BUFFER_BUDGET: usize = 128 * 1024 * 1024;

/// What an unread frame costs beyond its bytes, as the budget counts it.
pub const FRAME_OVERHEAD: usize = 64;

/// Streams at once on one connection.
pub const MAX_STREAMS: u32 = 10_000;

/// DATA frames up to this size, in bytes. Larger than the default 16 KiB, since lists are megabytes.
pub const MAX_FRAME: u32 = 64 * 1024;

/// Header lists up to this size, in bytes: Kubernetes' own limit for request headers is 1 MiB, ours leaves room for a
/// token, a few hundred groups and a long selector.
pub const MAX_HEADER_LIST: u32 = 256 * 1024;

/// Bytes that `h2` may buffer for sending on one stream. Senders ask for capacity first, so this only covers what one
/// body chunk adds.
pub const MAX_SEND_BUFFER: usize = 1024 * 1024;

/// Streams that the peer opened and reset before they were accepted. Many clients cancel at once when an API server
/// restarts; the default 20 would end the connection with GOAWAY.
pub const MAX_PENDING_RESETS: usize = 10_000;
