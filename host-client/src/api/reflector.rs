//! A list that stays true: list, watch, and from the beginning when the API server has forgotten where we were.
//!
//! ```text
//! Listing --last page--> Connecting --200--> Watching --end, error--> Connecting
//!    ^                       |                   |
//!    +----------- 410, or events that cannot be understood
//! ```
//! Nothing is lost: a watch goes on from the last resource version that was seen (bookmarks keep it fresh, KEP-956), and
//! after a new list, objects that went unseen are told as deleted. What is *not* here: the objects; only their names and
//! UIDs are kept.

mod asking;
mod known;
mod watching;

use std::collections::VecDeque;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep_until, timeout_at};
use tracing::{debug, warn};

use super::answer::Page;
use super::{Api, ApiError, Position, Selection};
use crate::HostBody;
use asking::Asking;
use known::{Known, Listed, Named};
use watching::{Event, Watching};

/// The first wait after a failure; it doubles.
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// No wait is longer, unless the API server asks for it.
const LAST_WAIT: Duration = Duration::from_secs(30);

/// No wait that an API server asks for is longer.
const LONGEST_ASKED: u32 = 300;

/// Watches are asked to end after this many seconds, up to twice as many: client-go's numbers (`tools/cache/
/// reflector.go`), so that watches spread over API servers again after a restart.
const WATCH_SECONDS: u32 = 300;

/// A watch that is still there so long after it should have ended is dead.
const OVERTIME: Duration = Duration::from_secs(30);

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Change<T = Value> {
    /// The object is there and looks like this. May repeat what is known.
    Applied(T),
    /// The object is gone. Only `metadata` with `name`, `namespace` and `uid` is promised; it is the last state of the
    /// object if that is known.
    Deleted(T),
    /// Everything that was there at one moment has been told. Comes after each complete list.
    Synced,
}

/// Follows a list for ever; see [`Api::reflect`].
#[derive(Debug)]
pub struct Reflector {
    api: Api,
    path: String,
    selection: Selection,
    phase: Phase,
    known: Known,
    /// Found and not told yet: at most one page, or the events of one chunk. They are parsed one by one, because parsed
    /// ones may need twenty times the memory.
    ready: VecDeque<Change<Box<RawValue>>>,
    failures: u32,
    resume_at: Option<Instant>,
}

#[derive(Debug)]
enum Phase {
    Listing { next: Position, listed: Listed, asking: Asking<Result<Page<Box<RawValue>>, ApiError>> },
    Connecting { resource_version: String, asking: Asking<Result<(HostBody, Instant), ApiError>> },
    Watching { watching: Watching, until: Instant },
}

/// Why the present phase cannot go on.
enum Interruption {
    /// Where we were is forgotten, or what came cannot be understood: from the beginning.
    Relist(ApiError),
    /// Once more, later.
    Failed(ApiError),
    /// The watch is over, as watches are.
    Ended,
}

// === impl Reflector ===

impl Reflector {
    pub(super) fn new(api: Api, path: String, selection: Selection) -> Self {
        Self {
            api,
            path,
            selection,
            phase: Phase::beginning(),
            known: Known::default(),
            ready: VecDeque::new(),
            failures: 0,
            resume_at: None,
        }
    }

    /// The next change. Waits for as long as there is none; failures are logged and tried again. Dropping the future
    /// loses nothing.
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
            Phase::Connecting { resource_version, asking } => {
                let (api, path, selection) = (self.api.clone(), self.path.clone(), self.selection.clone());
                let from = resource_version.clone();
                let (body, until) = asking.answer(|| watch(api, path, selection, from)).await?;
                let watching = Watching::new(body, std::mem::take(resource_version));
                self.phase = Phase::Watching { watching, until };
                Ok(())
            }
            Phase::Watching { watching, until } => {
                let read = timeout_at(*until, watching.read()).await;
                let events = read.map_err(|_| Interruption::Failed(ApiError::TimedOut))?;
                let Some(events) = events? else { return Err(Interruption::Ended) };
                self.failures = 0;
                for event in events {
                    let change = self.known.event(event).map_err(Interruption::Relist)?;
                    self.ready.extend(change);
                }
                Ok(())
            }
        }
    }

    async fn list(&mut self) -> Result<(), Interruption> {
        let Phase::Listing { next, listed, asking } = &mut self.phase else { return Ok(()) };
        let (api, path, selection) = (self.api.clone(), self.path.clone(), self.selection.clone());
        let from = next.clone();
        let asked = asking.answer(|| async move { api.page(&path, &selection, &from).await });
        let page = asked.await?;
        for item in page.items {
            let named = Named::of(&item).map_err(Interruption::Failed)?;
            self.ready.extend(self.known.listed(listed, named, item));
        }
        self.failures = 0;
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
            // An expired version is the API server's right, and how a long absence ends.
            warn!(path = self.path, error, "following a list was interrupted");
        }
        let asked = error.as_ref().and_then(|error| error.status()?.retry_after());
        self.resume_at = Some(Instant::now() + self.wait(asked));
    }

    /// Full jitter below a bound that doubles until something arrives; watches that end at once are failures too.
    fn wait(&mut self, asked: Option<u32>) -> Duration {
        let bound = FIRST_WAIT.saturating_mul(1 << self.failures.min(16)).min(LAST_WAIT);
        self.failures = self.failures.saturating_add(1);
        let asked = asked.unwrap_or(0).min(LONGEST_ASKED);
        Duration::from_secs(asked.into()) + bound.mul_f64(fastrand::f64())
    }
}

// === impl Change ===

impl Change<Box<RawValue>> {
    /// The object as a `T`.
    fn parsed<T: DeserializeOwned>(self) -> Result<Change<T>, serde_json::Error> {
        Ok(match self {
            Self::Applied(object) => Change::Applied(serde_json::from_str(object.get())?),
            Self::Deleted(object) => Change::Deleted(serde_json::from_str(object.get())?),
            Self::Synced => Change::Synced,
        })
    }
}

// === impl Phase ===

impl Phase {
    fn beginning() -> Self {
        Self::Listing { next: Position::default(), listed: Listed::default(), asking: Asking::default() }
    }

    fn connecting(resource_version: String) -> Self {
        Self::Connecting { resource_version, asking: Asking::default() }
    }
}

// === impl Interruption ===

impl From<ApiError> for Interruption {
    fn from(error: ApiError) -> Self {
        match error {
            error if error.is_expired() => Self::Relist(error),
            // What was lost in a frame that cannot be read is found again by a list.
            error @ (ApiError::Json(_) | ApiError::Frames(_)) => Self::Relist(error),
            error => Self::Failed(error),
        }
    }
}

/// Begins a watch; also says until when it may be there.
async fn watch(api: Api, path: String, selection: Selection, from: String) -> Result<(HostBody, Instant), ApiError> {
    let seconds = WATCH_SECONDS + fastrand::u32(..WATCH_SECONDS);
    let body = api.watch(&path, &selection, &from, seconds).await?;
    Ok((body, Instant::now() + Duration::from_secs(seconds.into()) + OVERTIME))
}

#[cfg(test)]
mod tests;
