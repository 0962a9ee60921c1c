//! A list that is kept up to date: list, then watch, and list again when the API server has compacted the version.
//!
//! ```text
//! Listing --last page--> Connecting --200--> Watching --end, error--> Connecting
//!    ^                       |                   |
//!    +----------- 410, or events that cannot be parsed
//! ```
//! No change is lost. A watch continues from the last known resource version, which bookmarks keep recent (KEP-956).
//! After a new list, objects that disappeared in the meantime are reported as deleted. The reflector keeps only the
//! names and UIDs of objects.

mod change;
mod known;
mod pending_call;
mod watching;

use std::collections::VecDeque;
use std::time::Duration;

use ops::backoff::Backoff;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep_until, timeout_at};
use tracing::{debug, warn};

use super::calls::Api;
use super::error::ApiError;
use super::position::Position;
use super::response::Page;
use super::selection::Selection;
use crate::HostBody;
pub use change::Change;
use known::{Known, Listed, Named};
use pending_call::PendingCall;
use watching::Watching;

/// The waits after failures, unless the API server requests a longer one.
const RETRY_BACKOFF: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(30));

/// The maximum wait that an API server can request.
const MAX_RETRY_AFTER: u32 = 300;

/// Watches end after one to two times this many seconds, as in client-go (`tools/cache/reflector.go`), so that they
/// spread over API servers again after a restart.
const WATCH_SECONDS: u32 = 300;

/// A watch that lasts this much longer than requested is considered dead.
const OVERTIME: Duration = Duration::from_secs(30);

/// Lists and watches a collection forever.
#[derive(Debug)]
pub struct Reflector {
    api: Api,
    path: String,
    selection: Selection,
    phase: Phase,
    known: Known,
    /// Changes that have not been returned yet: at most one page, or the events of one chunk. They are parsed one by
    /// one, because parsed objects may need twenty times the memory.
    ready: VecDeque<Change<Box<RawValue>>>,
    failures: Backoff,
    resume_at: Option<Instant>,
}

#[derive(Debug)]
enum Phase {
    Listing { next: Position, listed: Listed, call: PendingCall<Result<Page<Box<RawValue>>, ApiError>> },
    Connecting { resource_version: String, call: PendingCall<Result<(HostBody, Instant), ApiError>> },
    Watching { watching: Watching, until: Instant },
}

/// Why the current phase has ended.
enum Interruption {
    /// The version is too old, or the events cannot be parsed: list again.
    Relist(ApiError),
    /// A failure: try again later.
    Failed(ApiError),
    /// The watch has ended normally.
    Ended,
}

// === impl Reflector ===

impl Reflector {
    /// Lists and watches this collection with the agent's own credentials.
    pub fn new(api: &Api, path: impl Into<String>, selection: Selection) -> Self {
        Self {
            api: api.clone(),
            path: path.into(),
            selection,
            phase: Phase::beginning(),
            known: Known::default(),
            ready: VecDeque::new(),
            failures: RETRY_BACKOFF,
            resume_at: None,
        }
    }

    /// The next change. Waits until there is one. Failures are logged and tried again. Cancel-safe.
    pub async fn next<T: DeserializeOwned>(&mut self) -> Change<T> {
        loop {
            if let Some(change) = self.ready.pop_front() {
                match change.parsed() {
                    Ok(change) => return change,
                    Err(error) => self.recover(Interruption::Relist(ApiError::Json(error))),
                }
                continue;
            }
            if let Some(resume_at) = self.resume_at {
                sleep_until(resume_at).await;
                self.resume_at = None;
            }
            if let Err(interruption) = self.step().await {
                self.recover(interruption);
            }
        }
    }

    async fn step(&mut self) -> Result<(), Interruption> {
        match &mut self.phase {
            Phase::Listing { .. } => self.list().await,
            Phase::Connecting { resource_version, call } => {
                let (api, path, selection) = (self.api.clone(), self.path.clone(), self.selection.clone());
                let from = resource_version.clone();
                let (body, until) = call.answer(|| watch(api, path, selection, from)).await?;
                let watching = Watching::new(body, std::mem::take(resource_version));
                self.phase = Phase::Watching { watching, until };
                Ok(())
            }
            Phase::Watching { watching, until } => {
                let read = timeout_at(*until, watching.read()).await;
                let events = read.map_err(|_| Interruption::Failed(ApiError::TimedOut))?;
                let Some(events) = events? else { return Err(Interruption::Ended) };
                self.failures.reset();
                for event in events {
                    let change = self.known.event(event).map_err(Interruption::Relist)?;
                    self.ready.extend(change);
                }
                Ok(())
            }
        }
    }

    async fn list(&mut self) -> Result<(), Interruption> {
        let Phase::Listing { next, listed, call } = &mut self.phase else { return Ok(()) };
        let (api, path, selection) = (self.api.clone(), self.path.clone(), self.selection.clone());
        let from = next.clone();
        let listed_page = call.answer(|| async move { api.page(&path, &selection, &from).await });
        let page = listed_page.await?;
        for item in page.items {
            let named = Named::of(&item).map_err(Interruption::Failed)?;
            self.ready.extend(self.known.listed(listed, named, item));
        }
        self.failures.reset();
        if let Some(position) = page.next {
            *next = position;
            return Ok(());
        }
        let listed = std::mem::take(listed);
        self.ready.extend(self.known.vanished(&listed));
        self.ready.push_back(Change::Synced);
        self.phase = Phase::connecting(page.resource_version);
        Ok(())
    }

    fn recover(&mut self, interruption: Interruption) {
        if let Phase::Watching { watching, .. } = &self.phase {
            self.phase = Phase::connecting(watching.resource_version().to_owned());
        }
        let error = match interruption {
            Interruption::Ended => {
                debug!(path = self.path, "the watch ended");
                None
            }
            Interruption::Failed(error) => Some(error),
            Interruption::Relist(error) => {
                self.phase = Phase::beginning();
                Some(error)
            }
        };
        if let Some(error) = &error {
            let error: &dyn std::error::Error = error;
            // An expired version is normal, for example after a long interruption.
            warn!(path = self.path, error, "the list and watch was interrupted; trying again");
        }
        let retry_after = error.as_ref().and_then(|error| error.status()?.retry_after());
        self.resume_at = Some(Instant::now() + self.wait(retry_after));
    }

    /// A wait with full jitter, below a bound that doubles until an event arrives. A watch that ends at once also
    /// counts as a failure.
    fn wait(&mut self, retry_after: Option<u32>) -> Duration {
        let retry_after = retry_after.unwrap_or(0).min(MAX_RETRY_AFTER);
        Duration::from_secs(retry_after.into()) + self.failures.fail_with_full_jitter()
    }
}

// === impl Phase ===

impl Phase {
    fn beginning() -> Self {
        Self::Listing { next: Position::default(), listed: Listed::default(), call: PendingCall::default() }
    }

    fn connecting(resource_version: String) -> Self {
        Self::Connecting { resource_version, call: PendingCall::default() }
    }
}

// === impl Interruption ===

impl From<ApiError> for Interruption {
    fn from(error: ApiError) -> Self {
        match error {
            error if error.is_expired() => Self::Relist(error),
            // A frame cannot be parsed. The next list finds the changes in it.
            error @ (ApiError::Json(_) | ApiError::Frames(_)) => Self::Relist(error),
            error => Self::Failed(error),
        }
    }
}

/// Begins a watch. Also returns the time by which it must have ended.
async fn watch(api: Api, path: String, selection: Selection, from: String) -> Result<(HostBody, Instant), ApiError> {
    let seconds = WATCH_SECONDS + fastrand::u32(..WATCH_SECONDS);
    let body = api.watch(&path, &selection, &from, seconds).await?;
    Ok((body, Instant::now() + Duration::from_secs(seconds.into()) + OVERTIME))
}

#[cfg(test)]
mod tests;
