//! The task that reads watched files again.

use std::error::Error as StdError;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::source::{LoadError, Outcome, Parsed, Source, join};
use super::watched::Watched;

/// All watched files of a process. Clones share them. Files can be added at any time, and are removed when no clone of
/// their [`Watched`] is left.
#[derive(Clone)]
pub struct Reloader(Arc<Shared>);

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Successful reloads.
    pub reloaded: u64,
    /// Changes that were refused: the previous value stays in use.
    pub failed: u64,
}

struct Shared {
    period: Duration,
    sources: Mutex<Vec<Arc<dyn Source>>>,
    reloaded: AtomicU64,
    failed: AtomicU64,
}

// === impl Reloader ===

impl Reloader {
    /// The default period. The kubelet takes up to a minute to renew a mounted Secret, so this adds little.
    pub const DEFAULT_PERIOD: Duration = Duration::from_secs(5);

    /// Reads files again every `period`, once [`Reloader::run`] runs.
    pub fn new(period: Duration) -> Self {
        Self(Arc::new(Shared {
            period,
            sources: Mutex::default(),
            reloaded: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }))
    }

    /// Reads and parses files, now (blocking) and whenever one of them changes. `parse` gets the contents in the order
    /// of `paths`. A later failure keeps the old value, is logged once and counted.
    pub fn watch<T, E, const N: usize>(
        &self,
        paths: [PathBuf; N],
        parse: impl Fn([&[u8]; N]) -> Result<T, E> + Send + Sync + 'static,
    ) -> Result<Watched<T>, LoadError>
    where
        T: Send + Sync + 'static,
        E: Into<Box<dyn StdError + Send + Sync>> + 'static,
    {
        let (source, watched) = Parsed::open(paths, parse)?;
        self.sources().push(Arc::new(source));
        Ok(watched)
    }

    /// Reads all files again, now. Blocks on the file system.
    pub fn reload(&self) {
        let sources = {
            let mut sources = self.sources();
            sources.retain(|source| source.is_wanted());
            sources.clone()
        };
        for source in sources {
            match source.reread() {
                Outcome::Same => {}
                Outcome::Reloaded => {
                    self.0.reloaded.fetch_add(1, Ordering::Relaxed);
                    tracing::info!(files = join(source.paths()), "reloaded");
                }
                Outcome::Failed(error) => {
                    self.0.failed.fetch_add(1, Ordering::Relaxed);
                    let error: &dyn StdError = &error;
                    tracing::error!(
                        files = join(source.paths()),
                        error,
                        "cannot reload; the previous content stays in use"
                    );
                }
            }
        }
    }

    /// Reads files again every period and on SIGHUP, as long as it is polled. Run it once. You can drop it at any time.
    pub async fn run(&self) {
        let mut hangup = signal(SignalKind::hangup())
            .inspect_err(
                |error| tracing::warn!(%error, "cannot listen for SIGHUP; files are reloaded only periodically"),
            )
            .ok();
        let mut ticks = interval_at(Instant::now() + self.0.period, self.0.period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = received(&mut hangup) => {}
            }
            let reloader = self.clone();
            // Joined at once, so that nothing outlives the drain. A file system that hangs must not stop the runtime.
            if tokio::task::spawn_blocking(move || reloader.reload()).await.is_err() {
                tracing::error!("a parser of a watched file panicked; the previous content stays in use");
            }
        }
    }

    /// For metrics.
    pub fn counts(&self) -> Counts {
        Counts { reloaded: self.0.reloaded.load(Ordering::Relaxed), failed: self.0.failed.load(Ordering::Relaxed) }
    }

    /// How many sets of files are watched.
    pub fn watched(&self) -> usize {
        self.sources().iter().filter(|source| source.is_wanted()).count()
    }

    fn sources(&self) -> std::sync::MutexGuard<'_, Vec<Arc<dyn Source>>> {
        self.0.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Reloader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reloader").field("period", &self.0.period).field("watched", &self.watched()).finish()
    }
}

async fn received(signal: &mut Option<Signal>) {
    let more = match signal {
        Some(signal) => signal.recv().await.is_some(),
        None => false,
    };
    if !more {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests;
