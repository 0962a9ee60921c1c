//! The tunnels to one address of a proxy-server: one at first, and more when the workers are busy.

use std::future::Future;

use ops::drain::Tasks;
use ops::workers::{Busy, WorkerId, Workers};
use protocol::Authority;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{Instrument, info, info_span};

use super::demand::{Demand, PERIOD};

/// One address, and its tunnels. When it is dropped, they take no more streams, and close after their last one.
pub(super) struct Address<D> {
    server: Authority,
    workers: Workers,
    tasks: Tasks,
    dial: D,
    tunnels: Vec<Tunnel>,
}

/// A tunnel that a task on a worker keeps up, until this is dropped.
struct Tunnel {
    worker: WorkerId,
    _stop: DropGuard,
}

// === impl Address ===

impl<D, F> Address<D>
where
    D: Fn(CancellationToken) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    /// An address without tunnels. `dial` keeps one tunnel up until the token is cancelled.
    pub(super) fn new(server: Authority, workers: Workers, tasks: Tasks, dial: D) -> Self {
        Self { server, workers, tasks, dial, tunnels: Vec::new() }
    }

    /// Opens tunnels until `stop`.
    pub(super) async fn keep(mut self, stop: CancellationToken) {
        self.open();
        let mut busy = Busy::new(&self.workers);
        let mut demand = Demand::default();
        let mut periods = interval(PERIOD);
        // After a pause of the process, one observation covers all of it.
        periods.set_missed_tick_behavior(MissedTickBehavior::Delay);
        periods.tick().await;
        loop {
            tokio::select! {
                _ = periods.tick() => {}
                () = stop.cancelled() => return,
                () = self.tasks.cancelled() => return,
            }
            busy.observe();
            let parts = self.tunnels.iter().map(|tunnel| busy.part(tunnel.worker));
            if demand.observe(parts) {
                self.open();
            }
        }
    }

    /// Opens a tunnel on a worker that has none of this address, if there is such a worker.
    fn open(&mut self) {
        let has_none = |worker| self.tunnels.iter().all(|tunnel| tunnel.worker != worker);
        let Some((worker, assignment)) = self.workers.least_of(has_none) else { return };
        let stop = CancellationToken::new();
        let kept = (self.dial)(stop.clone());
        let span = info_span!("tunnel", server = %self.server);
        let kept = async move {
            kept.await;
            drop(assignment);
        };
        worker.spawn(&self.tasks, "tunnel", kept.instrument(span));
        self.tunnels.push(Tunnel { worker: worker.id(), _stop: stop.drop_guard() });
        if self.tunnels.len() > 1 {
            info!(server = %self.server, tunnels = self.tunnels.len(), "the workers are busy: opening another tunnel");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use tokio::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn each_worker_has_one_tunnel_at_most() {
        let (workers, _threads) = Workers::start(NonZeroUsize::new(2).unwrap()).unwrap();
        let (dialled, mut dials) = mpsc::unbounded_channel();
        let dial = move |stop: CancellationToken| {
            let dialled = dialled.clone();
            async move {
                dialled.send((ops::workers::here().unwrap(), stop.clone())).unwrap();
                stop.cancelled().await;
            }
        };
        let mut address = Address::new("proxy:8091".parse().unwrap(), workers, Tasks::new(), dial);
        for _ in 0..3 {
            address.open();
        }
        let (first, second) = (dials.recv().await.unwrap(), dials.recv().await.unwrap());
        assert_ne!(first.0, second.0);
        assert_eq!(address.tunnels.len(), 2, "there is no third worker");
        assert!(!first.1.is_cancelled() && !second.1.is_cancelled());
        drop(address);
        assert!(first.1.is_cancelled() && second.1.is_cancelled() && dials.recv().await.is_none());
    }
}
