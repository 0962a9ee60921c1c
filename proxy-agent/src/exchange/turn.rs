//! The [turns](crate::turns) of a request that works on large objects.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use http::{Request, Response};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::yield_now;
use tunnel::Reservation;

use super::Asked;
use crate::host::{HostBody, HostError, RequestBody};
use crate::refusal::{Exhausted, Refusal};
use crate::turns::Size;

/// The turns that one request holds, and the memory that is charged for it.
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
    /// Kept until the response begins.
    charges: Vec<Reservation>,
}

// === impl Turn ===

impl Turn {
    /// Whether the plan now works in its turn.
    pub(super) fn is_working(&self) -> &AtomicBool {
        &self.is_working
    }

    /// Releases the charged memory, because nothing that was read is needed any more.
    pub(super) fn free(&self) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).charges.clear();
    }

    /// Lets another cluster parse a large object. The plan is complete, and no longer holds an object in parsed form.
    pub(super) fn planned(&self) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).parsed = None;
    }

    /// Gives the turns and the memory back.
    pub(super) fn end(&self) {
        self.is_working.store(false, Ordering::Relaxed);
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Held::default();
    }
}

impl Asked<'_> {
    /// Waits for the turn of a body of this size, and keeps it until [`Turn::end`]. All later work of the plan is in
    /// this turn.
    pub(super) async fn take_turn(&self, size: Size) -> Result<(), Refusal> {
        let has = self.turn.held.lock().unwrap_or_else(PoisonError::into_inner).at_host.as_ref().map(|(size, _)| *size);
        if size <= has.unwrap_or(Size::Small) {
            return Ok(());
        }
        let turns = &self.cluster.kept.turns;
        let permit = turns.at_host(size).await.map_err(|_| Exhausted::Turns)?;
        let parsed = turns.parsed(size).await.map_err(|_| Exhausted::Turns)?;
        if let Some(permit) = permit {
            let mut held = self.turn.held.lock().unwrap_or_else(PoisonError::into_inner);
            (held.at_host, held.parsed) = (Some((size, permit)), parsed);
        }
        self.cluster.kept.heavy.admit_again().map_err(Exhausted::Weight)?;
        if size == Size::Large {
            self.turn.is_working.store(true, Ordering::Relaxed);
            yield_now().await;
        }
        Ok(())
    }

    /// Charges this many bytes to the cluster until the end of the turn.
    pub(super) fn hold(&self, bytes: usize) -> Result<(), Refusal> {
        let charge = self.collector().reserve(bytes)?;
        self.turn.held.lock().unwrap_or_else(PoisonError::into_inner).charges.push(charge);
        Ok(())
    }

    /// Awaits a future outside the turn, because others do the work: for example, the host makes a response.
    pub(super) async fn outside<F: Future>(&self, others: F) -> F::Output {
        if !self.turn.is_working.swap(false, Ordering::Relaxed) {
            return others.await;
        }
        yield_now().await;
        let output = others.await;
        self.turn.is_working.store(true, Ordering::Relaxed);
        yield_now().await;
        output
    }

    /// Sends a request to the host. Other clusters may parse large objects until the host responds.
    pub(super) async fn send_as_it_is(&self, request: Request<RequestBody>) -> Result<Response<HostBody>, HostError> {
        let sent = async {
            let is_parsing = self.turn.held.lock().unwrap_or_else(PoisonError::into_inner).parsed.take().is_some();
            let response = self.parts.host.send(request).await;
            if is_parsing {
                let permit = self.cluster.kept.turns.parsed_again().await;
                self.turn.held.lock().unwrap_or_else(PoisonError::into_inner).parsed = permit;
            }
            response
        };
        let response = self.outside(sent).await?;
        response.body().set_owner(self.cluster.kept.owner);
        Ok(response)
    }

    /// Sends the request of a plan to the host. Samples of its body are drawn in the turn of this request.
    pub(super) async fn send_in_turn(&self, request: Request<RequestBody>) -> Result<Response<HostBody>, Refusal> {
        let sent = pin!(self.send(request));
        self.cluster.kept.turns.work(self.turn.is_working(), sent).await
    }
}
