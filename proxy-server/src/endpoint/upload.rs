//! Forwards a request body from the client into the tunnel. Discards the rest when the request has ended.
//!
//! A response ends its request, even if the body was not read. Over HTTP/2, the client is then told to stop (RST_STREAM
//! with NO_ERROR, RFC 9113 section 8.1). Over HTTP/1.1, the connection closes, and a client that is still sending could
//! lose the response. So a part of the rest is read first, as in Go's servers (`rstAvoidanceDelay` and
//! `maxPostHandlerReadBytes` in net/http's server.go).

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use h2::SendStream;
use http::{Version, header, request};
use http_body::Body as _;
use hyper::body::Incoming;
use ops::drain::Tasks;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::debug;
use tunnel::outbound::send_body;

/// The maximum number of bytes of a body that are read after its request has ended.
const MAX_DISCARDED: usize = 256 * 1024;

/// The time limit for reading them.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(2);

/// The body of a request.
#[derive(Debug)]
pub(super) struct Upload {
    body: Incoming,
    /// Whether to read a part of the rest when the request has ended.
    discards_rest: bool,
}

// === impl Upload ===

impl Upload {
    pub(super) fn new(head: &request::Parts, body: Incoming) -> Self {
        // A client that waits for 100 (Continue) has sent nothing, and a read would make it send the body.
        let discards_rest = head.version < Version::HTTP_2 && !head.headers.contains_key(header::EXPECT);
        Self { body, discards_rest }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.body.is_end_stream()
    }

    /// Sends the body until it ends or the guard is dropped.
    pub(super) fn send(mut self, sender: SendStream<Bytes>, tasks: &Tasks) -> DropGuard {
        let ended = CancellationToken::new();
        let guard = ended.clone().drop_guard();
        tasks.spawn("request body", async move {
            match ended.run_until_cancelled(send_body(&mut self.body, sender)).await {
                Some(Ok(_)) => return,
                Some(Err(error)) => debug!(%error, "request body ended early"),
                None => debug!("the rest of the request body is not needed"),
            }
            self.discard_rest().await;
        });
        guard
    }

    /// Discards the body, which is not needed.
    pub(super) fn discard(self, tasks: &Tasks) {
        if self.discards_rest && !self.is_empty() {
            tasks.spawn("request body", self.discard_rest());
        }
    }

    async fn discard_rest(mut self) {
        if !self.discards_rest {
            return;
        }
        let mut read = 0;
        let reading = async {
            while read < MAX_DISCARDED
                && let Some(Ok(frame)) = poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx)).await
            {
                read += frame.data_ref().map_or(0, Bytes::len);
            }
        };
        // If there is more, the connection ends.
        let _ = timeout(DISCARD_TIMEOUT, reading).await;
    }
}
