//! Fetches the keys of an issuer: at the start, every hour, and when a token has a key that is not known yet.
//!
//! One task per issuer fetches them, so a thousand requests with an unknown key cause one fetch. Whoever sends such
//! requests is not authenticated yet, so there is also a minimum time between two fetches.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ops::backoff::Backoff;
use ops::drain::Tasks;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{info, warn};

use crate::discovery::{DiscoveryError, Metadata};
use crate::https::{Client, HttpError};
use crate::keys::{KeySet, UnreadableKeys};
use crate::refused::Refused;
use crate::url::HttpsUrl;

/// The time between two fetches. A key that the issuer has withdrawn is accepted until the next one.
const REFRESH_INTERVAL: Duration = Duration::from_secs(3600);

/// The minimum time between two fetches, whatever requests ask for.
const MIN_INTERVAL: Duration = Duration::from_secs(10);

/// How long keys are used that cannot be fetched again. Somebody who has stolen a key may also prevent that.
const MAX_AGE: Duration = Duration::from_secs(24 * 3600);

/// The pauses after failed fetches.
const RETRY: Backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(60));

/// How long a request waits for keys.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// The keys of an issuer. They are fetched until this is dropped.
#[derive(Debug)]
pub struct Issuer {
    state: watch::Receiver<State>,
    demand: mpsc::Sender<()>,
    fetches: Arc<Fetches>,
}

/// The result of all fetches.
#[derive(Clone, Debug, Default)]
struct State {
    /// The result of the last successful one.
    keys: Option<Arc<KeySet>>,
    /// The time of that one.
    fetched: Option<Instant>,
    /// The time of the last one, and whether it succeeded.
    last: Option<(Instant, bool)>,
}

/// Counts since the start.
#[derive(Debug, Default)]
struct Fetches {
    succeeded: AtomicU64,
    failed: AtomicU64,
}

struct Fetcher {
    issuer: HttpsUrl,
    client: Client,
    fetches: Arc<Fetches>,
    state: watch::Sender<State>,
}

#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
    #[error("cannot read {url}")]
    Keys { url: HttpsUrl, source: HttpError },
    #[error("cannot use {url}")]
    Unreadable { url: HttpsUrl, source: UnreadableKeys },
}

// === impl Issuer ===

impl Issuer {
    /// Begins to fetch the keys.
    pub fn start(issuer: HttpsUrl, client: Client, tasks: &Tasks) -> Self {
        let (demand, demanded) = mpsc::channel(1);
        let (sender, state) = watch::channel(State::default());
        let fetches = Arc::default();
        let fetcher = Fetcher { issuer, client, fetches: Arc::clone(&fetches), state: sender };
        tasks.spawn_until_cancelled("OIDC keys", fetcher.run(demanded));
        Self { state, demand, fetches }
    }

    /// The number of successful and of failed fetches.
    pub fn fetches(&self) -> (u64, u64) {
        (self.fetches.succeeded.load(Ordering::Relaxed), self.fetches.failed.load(Ordering::Relaxed))
    }

    /// The current keys.
    pub fn keys(&self) -> Option<Arc<KeySet>> {
        self.state.borrow().keys.clone()
    }

    /// The current keys, if one of them has this id.
    pub(crate) fn keys_with(&self, id: Option<&str>) -> Option<Arc<KeySet>> {
        self.state.borrow().keys_with(id)
    }

    /// The keys, if one of them has this id. Otherwise, waits until they are fetched again, unless that was done recently.
    pub(crate) async fn fetched_keys_with(&self, id: Option<&str>) -> Result<Arc<KeySet>, Refused> {
        let mut changes = self.state.clone();
        {
            let state = changes.borrow_and_update();
            if let Some(keys) = state.keys_with(id) {
                return Ok(keys);
            }
            if state.last.is_some_and(|(at, _)| at.elapsed() < MIN_INTERVAL) {
                return Err(state.missing());
            }
        }
        // If there is a demand already, the same fetch serves both.
        let _ = self.demand.try_send(());
        let _ = timeout(MAX_WAIT, changes.changed()).await;
        let state = changes.borrow();
        state.keys_with(id).ok_or_else(|| state.missing())
    }
}

// === impl State ===

impl State {
    fn succeeded(&mut self, keys: Arc<KeySet>, at: Instant) {
        *self = Self { keys: Some(keys), fetched: Some(at), last: Some((at, true)) };
    }

    /// The previous keys stay in use, unless they are too old.
    fn failed(&mut self, at: Instant) {
        self.last = Some((at, false));
        if self.fetched.is_some_and(|fetched| at.duration_since(fetched) > MAX_AGE) {
            self.keys = None;
        }
    }

    fn keys_with(&self, id: Option<&str>) -> Option<Arc<KeySet>> {
        self.keys.as_ref().filter(|keys| keys.has(id)).cloned()
    }

    /// Why a key is not there.
    fn missing(&self) -> Refused {
        if self.last.is_some_and(|(_, is_success)| is_success) { Refused::UnknownKey } else { Refused::NoKeys }
    }
}

// === impl Fetcher ===

impl Fetcher {
    async fn run(self, mut demanded: mpsc::Receiver<()>) {
        let mut retry = RETRY;
        loop {
            let fetched = self.fetch().await;
            let at = Instant::now();
            let pause = match &fetched {
                Ok(_) => {
                    retry.reset();
                    REFRESH_INTERVAL
                }
                Err(_) => retry.fail_with_half_jitter(),
            };
            self.publish(fetched, at);
            // Those who have demanded the keys during this fetch have got them.
            while demanded.try_recv().is_ok() {}
            tokio::select! {
                () = sleep(pause) => {}
                demand = demanded.recv() => match demand {
                    Some(()) => sleep_until(at + MIN_INTERVAL).await,
                    None => return,
                },
            }
        }
    }

    async fn fetch(&self) -> Result<KeySet, FetchError> {
        let url = Metadata::read(&self.client, &self.issuer).await?.keys()?;
        match self.client.get(&url).await {
            Ok(document) => KeySet::parse(document).map_err(|source| FetchError::Unreadable { url, source }),
            Err(source) => Err(FetchError::Keys { url, source }),
        }
    }

    fn publish(&self, fetched: Result<KeySet, FetchError>, at: Instant) {
        let issuer = &self.issuer;
        match fetched {
            Ok(keys) => {
                self.fetches.succeeded.fetch_add(1, Ordering::Relaxed);
                let was_working = self.state.borrow().last.is_some_and(|(_, is_success)| is_success);
                if !was_working {
                    info!(%issuer, keys = keys.len(), "the keys of the OIDC issuer are fetched");
                }
                if keys.is_empty() {
                    warn!(%issuer, "the OIDC issuer has no public key for RS256 to PS512, ES256 or ES384, so no token is accepted");
                }
                self.state.send_modify(|state| state.succeeded(Arc::new(keys), at));
            }
            Err(error) => {
                self.fetches.failed.fetch_add(1, Ordering::Relaxed);
                let error: &dyn std::error::Error = &error;
                warn!(%issuer, error, "cannot fetch the keys of the OIDC issuer; the previous ones stay in use for a day");
                self.state.send_modify(|state| state.failed(at));
            }
        }
    }
}

#[cfg(test)]
mod tests;
