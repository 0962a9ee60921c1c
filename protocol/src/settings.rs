//! HTTP/2 settings of a tunnel. With the defaults of common implementations, one client that stops reading blocks all
//! others on the connection.

/// Flow-control window of one stream, in bytes. It limits the cost of a stalled reader, and must hold the product of
/// bandwidth and delay of one list (1 MiB allows 20 MB/s at 50 ms).
pub const STREAM_WINDOW: u32 = 1024 * 1024;

/// Flow-control window of the connection: the maximum of RFC 9113, section 6.9.1, so that the windows of streams always limit
/// first. [`BUFFER_BUDGET`] bounds the memory instead.
pub const CONNECTION_WINDOW: u32 = (1 << 31) - 1;

/// The unread bytes that all streams of one tunnel may hold together before the worst one is reset; in an agent, those of all its
/// tunnels. It is enough for a hundred stalled readers with a full window each.
pub const BUFFER_BUDGET: usize = 128 * 1024 * 1024;

/// The cost of an unread frame in the budget, in addition to its bytes.
pub const FRAME_OVERHEAD: usize = 64;

/// The maximum number of concurrent streams on one connection.
pub const MAX_STREAMS: u32 = 10_000;

/// The maximum size of DATA frames, in bytes. It is larger than the default of 16 KiB, because lists have megabytes.
pub const MAX_FRAME: u32 = 64 * 1024;

/// The size of the HPACK dynamic tables that each end permits, in bytes (RFC 7541, section 4.2). Since version 0.4.17, the
/// encoder of `h2` uses at most 4 KiB of it, so a separate table stores the long header fields that recur in requests
/// ([`crate::field_table`]).
pub const HEADER_TABLE: u32 = 32 * 1024;

/// The maximum size of header lists, in bytes. Kubernetes' own limit for request headers is 1 MiB. This one is enough for a
/// token, a few hundred groups and a long selector.
pub const MAX_HEADER_LIST: u32 = 256 * 1024;

/// What each end announces as SETTINGS_MAX_HEADER_LIST_SIZE, in bytes. `h2` always uses Huffman codes, which are up to 3.75 times
/// longer than the bytes that they encode (RFC 7541, appendix B), and it ends the connection after as many CONTINUATION frames as
/// a list of this size has. So the largest permitted list must fit, however it is encoded.
pub const MAX_ENCODED_HEADER_LIST: u32 = 4 * MAX_HEADER_LIST;

/// The bytes that `h2` may buffer for sending on one stream: one frame that is being written, and the next one. What is on its way
/// over a long distance is not here, but in the buffer of the socket.
pub const MAX_SEND_BUFFER: usize = 2 * MAX_FRAME as usize;

/// The maximum number of streams that the peer opened and reset before they were accepted. When an API server restarts, many
/// clients cancel at the same time; the default of 20 would end the connection with GOAWAY.
pub const MAX_PENDING_RESETS: usize = 10_000;
