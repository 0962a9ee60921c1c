//! How long the work on one namespace may take, so that others get their turn.

use std::time::Duration;

use tokio::time::Instant;

/// After this time, the work on a namespace pauses for others.
const AT_A_TIME: Duration = Duration::from_secs(2);

/// How far the work on a namespace, or other work, has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::provisioner) enum Progress {
    /// All its bindings are as wanted.
    Done,
    /// Its time is over, and there is more to do.
    More,
    /// The host refuses. It makes no sense to try again before this time has passed.
    Later(Duration),
}

/// The work on one namespace.
#[derive(Default)]
pub(super) struct Turn {
    begun: Option<Instant>,
}

// === impl Turn ===

impl Turn {
    /// Whether the work that began with the first call has taken its time.
    pub(super) fn is_over(&mut self) -> bool {
        self.begun.get_or_insert_with(Instant::now).elapsed() > AT_A_TIME
    }
}
