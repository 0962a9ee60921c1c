//! The tunnels to one address of a proxy-server: one at all times, and more while the workers are busy.

use std::future::Future;

use ops::drain::Tasks;
use ops::workers::{BusyTime, WorkerId, Workers};
use protocol::Authority;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{Instrument, info, info_span};

use super::demand::{Change, Demand, MAX_TUNNELS, PERIOD};

/// One address, and its tunnels. When this is dropped, they accept no more streams, and close after their last one.
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

    /// Opens and closes tunnels until `stop`.
    pub(super) async fn keep(mut self, stop: CancellationToken) {
        self.open();
        let mut busy = BusyTime::new(&self.workers);
        let mut demand = Demand::default();
        let mut periods = interval(PERIOD);
        // If the process was suspended, one observation covers the whole time.
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
            match demand.observe(parts) {
                Some(Change::Open) => self.open(),
                Some(Change::Close) => self.close(),
                None => {}
            }
        }
    }

    /// Opens a tunnel on a worker that has none to this address, unless there is no such worker or the maximum is reached.
    fn open(&mut self) {
        if self.tunnels.len() >= MAX_TUNNELS {
            return;
        }
        let has_none = |worker| self.tunnels.iter().all(|tunnel| tunnel.worker != worker);
        let Some((worker, assignment)) = self.workers.least_of(has_none) else { return };
        let stop = CancellationToken::new();
        let dialling = (self.dial)(stop.clone());
        let span = info_span!("tunnel", server = %self.server);
        let run = async move {
            dialling.await;
            drop(assignment);
        };
        worker.spawn(&self.tasks, "tunnel", run.instrument(span));
        self.tunnels.push(Tunnel { worker: worker.id(), _stop: stop.drop_guard() });
        if self.tunnels.len() > 1 {
            info!(server = %self.server, tunnels = self.tunnels.len(), "the workers are busy: opening another tunnel");
        }
    }

    /// Closes the last tunnel, unless it is the only one. Its watches end soon, and its other streams continue.
    fn close(&mut self) {
        if self.tunnels.len() > 1 {
            self.tunnels.pop();
            info!(server = %self.server, tunnels = self.tunnels.len(), "the workers are idle: closing a tunnel");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use tokio::sync::mpsc;

    use super::*;

    /// The workers of all tunnels and the tokens that end them, after more attempts to open tunnels than are allowed.
    async fn open_many(workers: usize) -> Vec<(WorkerId, CancellationToken)> {
        let (workers, _threads) = Workers::start(NonZeroUsize::new(workers).unwrap()).unwrap();
        let (dialled, mut dials) = mpsc::unbounded_channel();
        let dial = move |stop: CancellationToken| {
            let dialled = dialled.clone();
            async move {
                dialled.send((ops::workers::here().unwrap(), stop.clone())).unwrap();
                stop.cancelled().await;
            }
        };
        let mut address = Address::new("proxy:8091".parse().unwrap(), workers, Tasks::new(), dial);
        for _ in 0..2 * MAX_TUNNELS {
            address.open();
        }
        let mut tunnels = Vec::new();
        while tunnels.len() < address.tunnels.len() {
            tunnels.push(dials.recv().await.unwrap());
        }
        let ended =
            |tunnels: &[(WorkerId, CancellationToken)]| tunnels.iter().filter(|(_, stop)| stop.is_cancelled()).count();
        for expected in 0..tunnels.len() {
            assert_eq!(ended(&tunnels), expected);
            address.close();
        }
        address.close();
        assert_eq!(ended(&tunnels), tunnels.len() - 1, "one tunnel stays");
        drop(address);
        assert!(dials.recv().await.is_none(), "no tunnel remains");
        tunnels
    }

    #[tokio::test]
    async fn each_worker_has_at_most_one_tunnel_to_an_address() {
        let tunnels = open_many(2).await;
        assert_eq!(tunnels.len(), 2);
        assert_ne!(tunnels[0].0, tunnels[1].0);
        assert!(tunnels.iter().all(|(_, stop)| stop.is_cancelled()));
    }

    #[tokio::test]
    async fn the_number_of_tunnels_to_an_address_is_limited() {
        assert_eq!(open_many(3 * MAX_TUNNELS).await.len(), MAX_TUNNELS);
    }
}
