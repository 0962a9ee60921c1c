//! When watches end because the process stops.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::sleep;

use super::connection::Services;

/// Completes at the end of a watch.
pub(super) type WatchEnd = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Completes at a random time after the process begins to stop, but before the end of the drain. Otherwise, the clients of all watches
/// would connect again at the same time.
pub(super) fn watch_end(services: &Services) -> WatchEnd {
    let (stopping, time) = (services.tasks.cancelled(), services.drain);
    Box::pin(async move {
        stopping.await;
        sleep(delay(time)).await;
    })
}

/// A random part of three quarters of the drain.
fn delay(drain: Duration) -> Duration {
    drain.mul_f64(0.75 * fastrand::f64())
}
