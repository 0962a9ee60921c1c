//! The upload of a request body, which may continue while the response is awaited or read.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::SendStream;
use http_body::{Body, Frame};
use http_body_util::combinators::UnsyncBoxBody;
use ops::drain::Tasks;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::debug;
use tunnel::outbound::{SendError, send_body};

use super::BoxError;

/// A running upload. Dropping it ends the upload.
pub(super) struct Upload {
    guard: DropGuard,
    failure: Failure,
}

/// The error of the body, if it failed.
#[derive(Clone, Default)]
struct Failure(Arc<Mutex<Option<BoxError>>>);

/// A body that stores its failure before it resets the stream, so that the code that sees the reset finds the failure.
struct Observed {
    body: UnsyncBoxBody<Bytes, BoxError>,
    failure: Failure,
}

/// The error is stored elsewhere.
struct StoredElsewhere;

// === impl Upload ===

impl Upload {
    pub(super) fn begin(body: UnsyncBoxBody<Bytes, BoxError>, sending: SendStream<Bytes>, tasks: &Tasks) -> Self {
        let (stop, failure) = (CancellationToken::new(), Failure::default());
        let observed = Observed { body, failure: failure.clone() };
        let stopped = stop.clone();
        tasks.spawn("host upload", async move {
            match stopped.run_until_cancelled(send_body(observed, sending)).await {
                Some(Ok(_)) | None => {}
                Some(Err(SendError::Closed(error))) => debug!(%error, "the upload ended early"),
                Some(Err(SendError::Body(StoredElsewhere))) => debug!("the body of the request failed"),
            }
        });
        Self { guard: stop.drop_guard(), failure }
    }

    /// Lets the upload continue until the guard is dropped.
    pub(super) fn into_guard(self) -> DropGuard {
        self.guard
    }

    /// Ends the upload. Returns the error of the body, if it failed.
    pub(super) fn into_failure(self) -> Option<BoxError> {
        self.failure.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

// === impl Observed ===

impl Body for Observed {
    type Data = Bytes;
    type Error = StoredElsewhere;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StoredElsewhere>>> {
        let this = &mut *self;
        Pin::new(&mut this.body).poll_frame(cx).map_err(|error| {
            *this.failure.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            StoredElsewhere
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}
