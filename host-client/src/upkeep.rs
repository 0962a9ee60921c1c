//! The housekeeping of a [`super::Host`]: probes, idle connections, unread bytes, and letting go at the end.

use std::sync::Arc;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::Core;
use super::limits::{DRAIN_TICK, TICK};

/// Runs until nobody holds the [`super::Host`] (`gone`), or the drain has closed the last connection.
pub(super) async fn upkeep(core: Arc<Core>, gone: CancellationToken) {
    let swept = core.budget.keep(|sweep| warn!(reset = sweep.reset, "streams with unread response data were reset"));
    tokio::select! {
        () = swept => {}
        () = tend(&core) => {}
        () = gone.cancelled() => core.access.load().servers.close(),
    }
}

async fn tend(core: &Core) {
    while !core.tasks.is_cancelled() {
        core.access.load().servers.tend(Instant::now(), false);
        tokio::select! {
            () = sleep(TICK) => {}
            () = core.tasks.cancelled() => {}
        }
    }
    // Requests that are there end in peace, and those of streams that are being drained are still taken.
    loop {
        core.access.load().servers.tend(Instant::now(), true);
        if core.counters.connections_open() == 0 {
            return;
        }
        sleep(DRAIN_TICK).await;
    }
}
