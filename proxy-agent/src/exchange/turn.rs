//! The permits and the memory that one request holds while it works on large objects: see
//! [`large_objects`](virtual_cluster::share::large_objects).

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use http::{Request, Response};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::yield_now;
use tunnel::Reservation;

use super::ApiRequest;
use crate::refusal::{Exhausted, Refusal};
use host_client::{HostBody, HostError, RequestBody};
use virtual_cluster::share::large_objects::Size;

/// The permits and the memory that one request holds while it works on large objects.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// Whether its plan now works in its turn, and does not wait for responses.
    is_working: AtomicBool,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    at_host: Option<(Size, OwnedSemaphorePermit)>,
    /// The permit for the parsed form of a large object.
    parsed: Option<OwnedSemaphorePermit>,
    /// The memory that is charged for this request, until [`Turn::end`] or [`Turn::release_memory`].
    charges: Vec<Reservation>,
}

// === impl Turn ===

impl Turn {
    /// Whether the plan now works in its turn.
    pub(super) fn is_working(&self) -> &AtomicBool {
        &self.is_working
    }

    /// Releases the charged memory, because nothing that was read is needed any more.
    pub(super) fn release_memory(&self) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).charges.clear();
    }

    /// Releases the permit for the parsed form of a large object, so that another cluster can parse one. The plan is
    /// complete, and holds no object in parsed form any more.
    pub(super) fn release_parsed(&self) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).parsed = None;
    }

    /// Releases the permits and the memory.
    pub(super) fn end(&self) {
        self.is_working.store(false, Ordering::Relaxed);
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Held::default();
    }
}

impl ApiRequest<'_> {
    /// Waits until the host may get a body of this size, and holds its permit until [`Turn::end`]. For a large body,
    /// also waits until it may be parsed, and lets the rest of the plan run in its turn. A small body waits for
    /// nothing. Refuses the request if the cluster must wait after refusals, which may have changed in the meantime.
    pub(super) async fn take_turn(&self, size: Size) -> Result<(), Refusal> {
        let held_size =
            self.turn.held.lock().unwrap_or_else(PoisonError::into_inner).at_host.as_ref().map(|(size, _)| *size);
        if size <= held_size.unwrap_or(Size::Small) {
            return Ok(());
        }
        let limits = &self.cluster.lasting.large_objects;
        let permit = limits.at_host(size).await.map_err(|_| Exhausted::LargeObjects)?;
        let parsed = limits.parsed(size).await.map_err(|_| Exhausted::LargeObjects)?;
        // Always true: only a small body needs no permit.
        if let Some(permit) = permit {
            let mut held = self.turn.held.lock().unwrap_or_else(PoisonError::into_inner);
            (held.at_host, held.parsed) = (Some((size, permit)), parsed);
        }
        self.cluster.lasting.write_rate.admit_again().map_err(Exhausted::Weight)?;
        if size == Size::Large {
            self.turn.is_working.store(true, Ordering::Relaxed);
            // [`InTurn`](virtual_cluster::share::large_objects::InTurn) reads the flag when it is polled, so the next
            // poll is in the turn.
            yield_now().await;
        }
        Ok(())
    }

    /// Charges this many bytes to the cluster until [`Turn::end`] or [`Turn::release_memory`].
    pub(super) fn hold(&self, bytes: usize) -> Result<(), Refusal> {
        let charge = self.collector().reserve(bytes)?;
        self.turn.held.lock().unwrap_or_else(PoisonError::into_inner).charges.push(charge);
        Ok(())
    }

    /// Awaits a future outside the turn: other tasks do the work, such as the host that makes a response.
    pub(super) async fn outside<F: Future>(&self, future: F) -> F::Output {
        if !self.turn.is_working.swap(false, Ordering::Relaxed) {
            return future.await;
        }
        // The next poll is outside the turn.
        yield_now().await;
        let output = future.await;
        self.turn.is_working.store(true, Ordering::Relaxed);
        // The next poll is in the turn.
        yield_now().await;
        output
    }

    /// Sends a request to the host, without samples of its body. Use [`send`](Self::send) for a body that a client has
    /// written. Other clusters may parse large objects until the host responds.
    pub(super) async fn send_unsampled(&self, request: Request<RequestBody>) -> Result<Response<HostBody>, HostError> {
        let sent = async {
            let is_parsing = self.turn.held.lock().unwrap_or_else(PoisonError::into_inner).parsed.take().is_some();
            let response = self.services.host.send(request).await;
            if is_parsing {
                let permit = self.cluster.lasting.large_objects.parsed_again().await;
                self.turn.held.lock().unwrap_or_else(PoisonError::into_inner).parsed = permit;
            }
            response
        };
        let response = self.outside(sent).await?;
        response.body().set_owner(self.cluster.lasting.owner);
        Ok(response)
    }

    /// Sends the request of a plan to the host. Samples of its body are drawn in the turn of this request.
    pub(super) async fn send_in_turn(&self, request: Request<RequestBody>) -> Result<Response<HostBody>, Refusal> {
        let sent = pin!(self.send(request));
        self.cluster.lasting.large_objects.in_turn(self.turn.is_working(), sent).await
    }
}
