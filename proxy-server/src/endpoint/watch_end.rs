//! When watches end because a proxy-server on the path of the request stops: this one, or the one to which the agent is
//! connected.

use std::pin::Pin;

use ops::drain::spread_end;
use tokio::time::sleep;

use super::connection::Services;
use crate::tunnel::Lease;

/// Completes at the end of a watch.
pub(super) type WatchEnd = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Completes after a proxy-server has begun to stop, at a different time for each watch.
pub(super) fn watch_end(services: &Services, lease: &Lease) -> WatchEnd {
    let (stopping, leaving, time) = (services.tasks.cancelled(), lease.leaving().clone(), services.drain);
    Box::pin(async move {
        tokio::select! {
            () = stopping => {}
            () = leaving.cancelled_owned() => {}
        }
        sleep(spread_end(time)).await;
    })
}
