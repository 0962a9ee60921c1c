//! When watches end because the process stops.

use std::pin::Pin;

use ops::drain::spread_end;
use tokio::time::sleep;

use super::connection::Services;

/// Completes at the end of a watch.
pub(super) type WatchEnd = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Completes after the process has begun to stop, at another time for each watch.
pub(super) fn watch_end(services: &Services) -> WatchEnd {
    let (stopping, time) = (services.tasks.cancelled(), services.drain);
    Box::pin(async move {
        stopping.await;
        sleep(spread_end(time)).await;
    })
}
