//! The upkeep of a [`Host`](super::Host): probes, idle connections, unread bytes, and the end.

use std::sync::Arc;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::core::Core;
use super::limits::{DRAIN_INTERVAL, UPKEEP_INTERVAL};

/// Runs until the last [`Host`](super::Host) is dropped (`gone`), or the drain has closed the last connection.
pub(super) async fn upkeep(core: Arc<Core>, gone: CancellationToken) {
    let swept = core.budget.keep(|sweep| warn!(reset = sweep.reset, "streams with unread response data were reset"));
    tokio::select! {
        () = swept => {}
        () = tend(&core) => {}
        () = gone.cancelled() => core.upstream.load().servers.close(),
    }
}

async fn tend(core: &Core) {
    while !core.tasks.is_cancelled() {
        core.upstream.load().servers.tend(Instant::now(), false);
        tokio::select! {
            () = sleep(UPKEEP_INTERVAL) => {}
            () = core.tasks.cancelled() => {}
        }
    }
    // Current requests continue to their end, and requests of streams that are being drained are still accepted.
    loop {
        core.upstream.load().servers.tend(Instant::now(), true);
        if core.counters.connections_open() == 0 {
            return;
        }
        sleep(DRAIN_INTERVAL).await;
    }
}
