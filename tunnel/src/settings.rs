//! The builders of both ends, with every number that matters set deliberately.

use protocol::settings as agreed;

/// The proxy-server's end: HTTP/2 client on a connection that the agent dialled.
pub fn client() -> h2::client::Builder {
    let mut builder = h2::client::Builder::new();
    builder
        .initial_window_size(agreed::STREAM_WINDOW)
        .initial_connection_window_size(agreed::CONNECTION_WINDOW)
        .max_frame_size(agreed::MAX_FRAME)
        .max_header_list_size(agreed::MAX_HEADER_LIST)
        .max_send_buffer_size(agreed::MAX_SEND_BUFFER)
        // Until the agent's SETTINGS arrive; it allows as many.
        .initial_max_send_streams(agreed::MAX_STREAMS as usize)
        // The agent never opens streams.
        .max_concurrent_streams(0)
        .enable_push(false)
        // The budget of this crate counts small frames, per stream; h2's counts them per connection and would end all
        // streams for one slow reader of watch events.
        .data_frame_budget(usize::MAX)
        // An agent that keeps breaking the protocol loses the tunnel, but not for what a thousand clients' early
        // cancels look like.
        .max_local_error_reset_streams(Some(100_000));
    builder
}

/// The agent's end: HTTP/2 server on the connection that it dialled. It trusts the proxy-server's framing, since that is
/// the only peer and its certificate was checked.
pub fn server() -> h2::server::Builder {
    let mut builder = h2::server::Builder::new();
    builder
        .initial_window_size(agreed::STREAM_WINDOW)
        .initial_connection_window_size(agreed::CONNECTION_WINDOW)
        .max_frame_size(agreed::MAX_FRAME)
        .max_header_list_size(agreed::MAX_HEADER_LIST)
        .max_send_buffer_size(agreed::MAX_SEND_BUFFER)
        .max_concurrent_streams(agreed::MAX_STREAMS)
        .enable_connect_protocol()
        .data_frame_budget(usize::MAX)
        .max_pending_accept_reset_streams(agreed::MAX_PENDING_RESETS)
        .max_concurrent_reset_streams(agreed::MAX_PENDING_RESETS)
        .max_local_error_reset_streams(None);
    builder
}
