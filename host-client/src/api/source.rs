//! A list and watch, before anything is parsed: list, then watch, and list again when the API server has compacted the
//! version.
//!
//! ```text
//! Listing --last page--> Connecting --200--> Watching --end, error--> Connecting
//!    ^                       |                   |
//!    +----------- 410, or events that cannot be parsed
//! ```
//! A source only reads. Its user parses the frames of the watch, and tells the source the version from which a new watch
//! must continue.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use kube_wire::watch::JsonFrames;
use ops::backoff::Backoff;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep_until, timeout_at};
use tracing::{debug, warn};

use super::calls::Api;
use super::error::ApiError;
use super::pending_call::PendingCall;
use super::position::Position;
use super::response::Page;
use super::selection::Selection;
use crate::HostBody;

/// The waits after failures, unless the API server requests a longer one.
pub(super) const RETRY_BACKOFF: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(30));

/// The maximum wait that an API server can request.
const MAX_RETRY_AFTER: u32 = 300;

/// Watches end after one to two times this many seconds, as in client-go (`tools/cache/reflector.go`), so that they
/// spread over API servers again after a restart.
pub(super) const WATCH_SECONDS: u32 = 300;

/// The duration of a watch that is to bring a bookmark soon, in seconds. An API server sends one two seconds before a watch
/// ends (`nextBookmarkTime` in `pkg/storage/cacher/cache_watcher.go`).
const BRIEF_SECONDS: u32 = 3;

/// A watch that lasts this much longer than requested is considered dead.
pub(super) const OVERTIME: Duration = Duration::from_secs(30);

/// The maximum length of a frame, in bytes. etcd's limit for an object is 1.5 MiB in protobuf.
const MAX_FRAME: usize = 16 * 1024 * 1024;

/// Lists and watches a collection forever.
#[derive(Debug)]
pub struct Source {
    api: Api,
    path: String,
    selection: Selection,
    phase: Phase,
    /// What has not been returned yet: at most one page, or the frames of one chunk.
    ready: VecDeque<Read>,
    failures: Backoff,
    resume_at: Option<Instant>,
    /// The next watch is brief.
    refreshes: bool,
    /// The items of lists are not read.
    skips_items: bool,
}

/// What a source has read.
#[derive(Debug)]
pub enum Read {
    /// An object of a list.
    Item(Box<RawValue>),
    /// The list is complete, and has this version.
    Listed(String),
    /// A frame of the watch, and a line feed. Call [`Source::reached`] with the version of its object.
    Frame(Bytes),
    /// The list or the watch cannot continue, and a new list begins. The items of an incomplete list are void.
    Restarted {
        /// The API server no longer has the version from which it would continue.
        is_expired: bool,
    },
    /// The API server refuses the list or the watch: the right is missing, or the resource does not exist. The source tries
    /// again, and then begins with a new list.
    Refused,
}

#[derive(Debug)]
enum Phase {
    Listing { next: Position, call: PendingCall<Result<Page<Box<RawValue>>, ApiError>> },
    Connecting { resource_version: String, call: PendingCall<Result<Begun, ApiError>> },
    Watching { resource_version: String, watch: Begun },
}

/// A watch that has begun, and the time by which it must have ended.
#[derive(Debug)]
struct Begun {
    body: HostBody,
    frames: JsonFrames,
    until: Instant,
    is_brief: bool,
}

/// Why the current phase has ended.
enum Interruption {
    /// The version is too old, or the frames cannot be parsed: list again.
    Relist(ApiError),
    /// A failure: try again later.
    Failed(ApiError),
    /// The watch has ended normally.
    Ended,
}

// === impl Source ===

impl Source {
    /// Lists and watches this collection with the agent's own credentials.
    pub fn new(api: &Api, path: impl Into<String>, selection: Selection) -> Self {
        Self {
            api: api.clone(),
            path: path.into(),
            selection,
            phase: Phase::beginning(),
            ready: VecDeque::new(),
            failures: RETRY_BACKOFF,
            resume_at: None,
            refreshes: false,
            skips_items: false,
        }
    }

    /// Begins with the list at this version, and so returns all events after it. If the API server does not have this version, begins
    /// with the newest list.
    #[must_use]
    pub fn beginning_at(mut self, version: String) -> Self {
        self.phase = Phase::Listing { next: Position::exactly(version), call: PendingCall::default() };
        self
    }

    /// Watches this collection from now on. Instead of a list, it reads only the current version, so it returns no
    /// [`Read::Item`].
    pub fn of_changes(api: &Api, path: impl Into<String>, selection: Selection) -> Self {
        Self { skips_items: true, ..Self::new(api, path, selection) }
    }

    /// Whether a watch is open. If its connection is dead, this becomes false when a keep-alive fails.
    pub fn is_watching(&self) -> bool {
        matches!(self.phase, Phase::Watching { .. })
    }

    /// What the source reads next. Waits until there is something. Failures are logged and tried again. Cancel-safe.
    pub async fn next(&mut self) -> Read {
        loop {
            if let Some(read) = self.ready.pop_front() {
                return read;
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

    /// All events up to this version have been read: a new watch continues after it.
    pub fn reached(&mut self, version: &str) {
        if let Phase::Watching { resource_version, .. } | Phase::Connecting { resource_version, .. } = &mut self.phase {
            version.clone_into(resource_version);
        }
    }

    /// A frame is an ERROR event, or a frame or an item cannot be parsed. What was read after it is void.
    pub fn fail(&mut self, error: ApiError) {
        self.ready.clear();
        self.recover(error.into());
    }

    /// Watches again from the version that was reached, for a few seconds. A bookmark arrives after about a second, and tells
    /// how new the state is. Otherwise, an API server sends one each minute.
    pub fn refresh(&mut self) {
        self.refreshes = true;
        // A watch that is just beginning is not brief.
        if let Phase::Watching { resource_version, .. } | Phase::Connecting { resource_version, .. } = &mut self.phase {
            self.phase = Phase::connecting(std::mem::take(resource_version));
        }
    }

    async fn step(&mut self) -> Result<(), Interruption> {
        match &mut self.phase {
            Phase::Listing { .. } => self.list().await,
            Phase::Connecting { resource_version, call } => {
                let (api, path, selection) = (self.api.clone(), self.path.clone(), self.selection.clone());
                let (from, is_brief) = (resource_version.clone(), self.refreshes);
                let watch = call.answer(|| watch(api, path, selection, from, is_brief)).await?;
                self.refreshes &= !watch.is_brief;
                self.phase = Phase::Watching { resource_version: std::mem::take(resource_version), watch };
                Ok(())
            }
            Phase::Watching { watch, .. } => {
                let read = timeout_at(watch.until, watch.body.frame()).await;
                // A watch that ends within a frame counts like one that ends before it.
                let Some(frame) = read.map_err(|_| ApiError::TimedOut)? else { return Err(Interruption::Ended) };
                let Ok(chunk) = frame.map_err(ApiError::from)?.into_data() else { return Ok(()) };
                self.failures.reset();
                watch.frames.push(&chunk).map_err(ApiError::from)?;
                while let Some(frame) = watch.frames.next_frame().map_err(ApiError::from)? {
                    self.ready.push_back(Read::Frame([frame, b"\n"].concat().into()));
                }
                Ok(())
            }
        }
    }

    async fn list(&mut self) -> Result<(), Interruption> {
        let Phase::Listing { next, call } = &mut self.phase else { return Ok(()) };
        let (api, path, selection) = (self.api.clone(), self.path.clone(), self.selection.clone());
        let from = if self.skips_items { Position::one() } else { next.clone() };
        // This is no reason to reset the failures: the user may not be able to read an item, however often it is listed.
        let page = match call.answer(|| async move { api.page(&path, &selection, &from).await }).await {
            Err(error) if next.exact.is_some() => {
                debug!(path = self.path, error = &error as &dyn std::error::Error, "there is no list at this version");
                self.phase = Phase::beginning();
                return Ok(());
            }
            page => page?,
        };
        if !self.skips_items {
            self.ready.extend(page.items.into_iter().map(Read::Item));
            if let Some(position) = page.next {
                *next = position;
                return Ok(());
            }
        }
        self.ready.push_back(Read::Listed(page.resource_version.clone()));
        self.phase = Phase::connecting(page.resource_version);
        Ok(())
    }

    fn recover(&mut self, interruption: Interruption) {
        let mut was_brief = false;
        if let Phase::Watching { resource_version, watch } = &mut self.phase {
            was_brief = watch.is_brief;
            self.phase = Phase::connecting(std::mem::take(resource_version));
        }
        let error = match interruption {
            Interruption::Ended if was_brief => return,
            Interruption::Ended => {
                debug!(path = self.path, "the watch ended");
                None
            }
            Interruption::Failed(error) if is_refusal(&error) => {
                self.phase = Phase::beginning();
                self.ready.push_back(Read::Refused);
                Some(error)
            }
            Interruption::Failed(error) => Some(error),
            Interruption::Relist(error) => {
                self.phase = Phase::beginning();
                self.ready.push_back(Read::Restarted { is_expired: error.is_expired() });
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
        Self::Listing { next: Position::default(), call: PendingCall::default() }
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

/// Whether another attempt fails in the same way, unless somebody changes the API server.
fn is_refusal(error: &ApiError) -> bool {
    error.status().is_some_and(|status| matches!(status.code, 401 | 403..=406))
}

/// Begins a watch.
async fn watch(api: Api, path: String, selection: Selection, from: String, is_brief: bool) -> Result<Begun, ApiError> {
    let seconds = if is_brief { BRIEF_SECONDS } else { WATCH_SECONDS + fastrand::u32(..WATCH_SECONDS) };
    let body = api.watch(&path, &selection, &from, seconds).await?;
    let until = Instant::now() + Duration::from_secs(seconds.into()) + OVERTIME;
    Ok(Begun { body, frames: JsonFrames::new(MAX_FRAME), until, is_brief })
}

#[cfg(test)]
mod tests;
