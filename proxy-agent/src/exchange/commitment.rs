//! Requests that their client resets before the response.
//!
//! Such a request ends, and with it the request to the host: dropping it resets the stream, or closes the connection of an
//! upgrade. kube-apiserver does the same, by the context of the request. Otherwise, a client could occupy any number of
//! connections to the host, because an API server has no time limit for the servers of pods, logs and watches.
//!
//! Two kinds of requests are *committed* for some time, in which a reset does not end them. An API server limits both to
//! `--request-timeout`.
//!
//! | request | committed | why |
//! |---|---|---|
//! | a write of an object | from its first decision to its end | the host may execute it in spite of a reset; then the agent has to write the mirrors of a namespace, forget cached authorisation, remove an overlay |
//! | a list | while the host makes the response | the host continues to work on it, so the seats of the list must not be free yet |
//!
//! Everything before the first decision can end at any time: it only reads from the host.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use bytes::Bytes;
use h2::server::SendResponse;

use crate::exchange::api_request::ApiRequest;
use crate::exchange::call::Call;
use crate::exchange::cost::load_of;
use virtual_cluster::share::seats::Load;

/// Whether a request is committed. One task sets and reads it.
#[derive(Debug, Default)]
pub(crate) struct Commitment(AtomicBool);

// === impl Commitment ===

impl Commitment {
    /// The first decision about the request follows, or another one, or the request to the host.
    pub(super) fn begin(&self, call: &Call<'_>) {
        let api = &call.api;
        let is_write = !api.is_read() && !api.info.is_long_running();
        // A list that still waits for its seats can end.
        let is_list =
            matches!(load_of(api), Some(Load::List | Load::ListAtOnce | Load::Long)) && call.occupied.is_some();
        self.0.store(is_write || is_list, Ordering::Relaxed);
    }

    /// The host has responded.
    pub(super) fn responded(&self, api: &ApiRequest<'_>) {
        if api.is_read() {
            self.0.store(false, Ordering::Relaxed);
        }
    }

    /// Completes when the client has reset the stream, and the request is not committed. Poll it after the request in
    /// the same task, because a change of the commitment wakes nothing.
    pub(super) async fn reset(&self, respond: &mut SendResponse<Bytes>) {
        let _ = poll_fn(|cx| respond.poll_reset(cx)).await;
        poll_fn(|_| if self.0.load(Ordering::Relaxed) { Poll::Pending } else { Poll::Ready(()) }).await;
    }
}
