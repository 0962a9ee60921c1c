//! The HTTP/2 builders of both ends. They set every limit explicitly.

use std::time::Duration;

use protocol::settings as agreed;

/// How long an end remembers a stream that it has reset: longer than frames are on their way.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(30);

/// The proxy-server's end: HTTP/2 client on a connection that the agent dialled.
pub fn client() -> h2::client::Builder {
    let mut builder = h2::client::Builder::new();
    builder
        .initial_window_size(agreed::STREAM_WINDOW)
        .initial_connection_window_size(agreed::CONNECTION_WINDOW)
        .max_frame_size(agreed::MAX_FRAME)
        .max_header_list_size(agreed::MAX_ENCODED_HEADER_LIST)
        .max_send_buffer_size(agreed::MAX_SEND_BUFFER)
        .header_table_size(agreed::HEADER_TABLE)
        // Until the agent's SETTINGS arrive, which have the same value.
        .initial_max_send_streams(agreed::MAX_STREAMS as usize)
        // The agent never opens streams.
        .max_concurrent_streams(0)
        .enable_push(false)
        // The budget of this crate counts small frames, per stream; h2's counts them per connection and would end all
        // streams for one slow reader of watch events.
        .data_frame_budget(usize::MAX)
        // What the agent sends before it learns that a client has gone is no violation.
        .max_concurrent_reset_streams(agreed::MAX_PENDING_RESETS)
        .reset_stream_duration(FORGOTTEN_AFTER)
        // An agent that continually violates the protocol loses the tunnel. The limit is high, because the cancelled requests
        // of a thousand clients can look like violations.
        .max_local_error_reset_streams(Some(100_000));
    builder
}

/// The agent's end: HTTP/2 server on the connection that it dialled. It does not limit the protocol errors of its peer,
/// because the proxy-server is the only peer, and its certificate was verified.
pub fn server() -> h2::server::Builder {
    let mut builder = h2::server::Builder::new();
    builder
        .initial_window_size(agreed::STREAM_WINDOW)
        .initial_connection_window_size(agreed::CONNECTION_WINDOW)
        .max_frame_size(agreed::MAX_FRAME)
        .max_header_list_size(agreed::MAX_ENCODED_HEADER_LIST)
        .max_send_buffer_size(agreed::MAX_SEND_BUFFER)
        .max_concurrent_streams(agreed::MAX_STREAMS)
        .header_table_size(agreed::HEADER_TABLE)
        .enable_connect_protocol()
        .data_frame_budget(usize::MAX)
        .max_pending_accept_reset_streams(agreed::MAX_PENDING_RESETS)
        .max_concurrent_reset_streams(agreed::MAX_PENDING_RESETS)
        .reset_stream_duration(FORGOTTEN_AFTER)
        .max_local_error_reset_streams(None);
    builder
}
