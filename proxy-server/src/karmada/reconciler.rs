//! Keeps Karmada as the configuration requires: one task for each cluster, and one that controls them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ops::drain::Tasks;
use ops::files::{Reloader, Watched};
use ops::log::chain;
use ops::metrics::Registry as Metrics;
use ops::pki::Authority;
use protocol::ClusterName;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{Instrument, error, info, info_span, warn};

use super::api::{Api, Direct, Tunnelled};
use super::leave::Leaver;
use super::objects::Member;
use super::orphans::Orphans;
use super::pass::{Done, PassError, pass};
use super::pauses::Pauses;
use super::plane::Plane;
use super::standing::{Counts, Memberships, Outcome, State};
use super::wanted::{PlaneAt, Wanted};
use crate::registry::Registry;

/// The pause between two searches for Clusters that have our label and are in no configuration.
const ORPHANS_INTERVAL: Duration = Duration::from_secs(30);

/// The message for a cluster without an agent.
const ABSENT: &str = "waits for the cluster to be reachable";

/// Controls the tasks.
pub struct Reconciler {
    parts: Parts,
    wanted: watch::Receiver<Wanted>,
    /// Reports the clusters that have left, so that their endpoints can close.
    departed: mpsc::Sender<ClusterName>,
    plane: Option<Open>,
    kept: BTreeMap<ClusterName, Kept>,
    orphans: Orphans,
}

/// The parts that every task uses.
#[derive(Clone)]
struct Parts {
    registry: Arc<Registry>,
    serving_ca: Watched<Authority>,
    reloader: Reloader,
    tasks: Tasks,
    memberships: Memberships,
    counts: Counts,
}

/// The control plane, with its connection.
struct Open {
    at: PlaneAt,
    plane: Arc<Plane<Arc<Direct>>>,
}

/// A running task.
struct Kept {
    orders: watch::Sender<Order>,
    _stop: DropGuard,
}

/// The order for a task.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Order {
    Keep(Box<Member>),
    Leave,
}

/// One cluster.
struct Task {
    name: ClusterName,
    parts: Parts,
    plane: Arc<Plane<Arc<Direct>>>,
    kept_by: String,
    orders: watch::Receiver<Order>,
}

// === impl Reconciler ===

impl Reconciler {
    /// Does nothing until [`run`](Self::run). Its tasks are among `tasks`.
    pub fn new(
        registry: Arc<Registry>,
        serving_ca: Watched<Authority>,
        reloader: Reloader,
        tasks: Tasks,
        metrics: &Metrics,
        (wanted, departed): (watch::Receiver<Wanted>, mpsc::Sender<ClusterName>),
    ) -> Self {
        let (memberships, counts) = (Memberships::default(), Counts::new(metrics));
        let parts = Parts { registry, serving_ca, reloader, tasks, memberships, counts };
        Self { parts, wanted, departed, plane: None, kept: BTreeMap::new(), orphans: Orphans::default() }
    }

    /// The state of all clusters.
    pub fn memberships(&self) -> Memberships {
        self.parts.memberships.clone()
    }

    /// Runs for ever.
    pub async fn run(mut self) {
        let (ended, mut endings) = mpsc::channel(16);
        loop {
            let wanted = self.wanted.borrow_and_update().clone();
            self.arrange(&wanted, &ended).await;
            tokio::select! {
                changed = self.wanted.changed() => if changed.is_err() {
                    return;
                },
                Some(name) = endings.recv() => self.has_left(name).await,
                () = sleep(ORPHANS_INTERVAL.mul_f64(0.75 + fastrand::f64() / 2.0)) => self.find_orphans(&wanted, &ended).await,
            }
        }
    }

    async fn arrange(&mut self, wanted: &Wanted, ended: &mpsc::Sender<ClusterName>) {
        if self.plane.as_ref().map(|open| &open.at) != wanted.plane.as_ref() {
            if self.plane.take().is_some() {
                info!("the Karmada control plane has changed; Clusters in the previous one are kept");
            }
            for name in std::mem::take(&mut self.kept).into_keys() {
                self.forget(&name);
            }
            self.plane = wanted.plane.clone().and_then(|at| self.open(at));
            self.orphans = Orphans::default();
        }
        for (name, kept) in &self.kept {
            let order = wanted.members.get(name).map_or(Order::Leave, |member| Order::Keep(Box::new(member.clone())));
            kept.orders.send_if_modified(|current| {
                let is_news = *current != order;
                *current = order;
                is_news
            });
        }
        if self.plane.is_some() {
            for (name, member) in &wanted.members {
                if !self.kept.contains_key(name) {
                    self.begin(name, Order::Keep(Box::new(member.clone())), ended);
                }
            }
        }
        for name in wanted.leaving.iter().filter(|name| !self.kept.contains_key(*name)) {
            let _ = self.departed.send(name.clone()).await;
        }
    }

    fn open(&self, at: PlaneAt) -> Option<Open> {
        match kubeconfig::watch(at.kubeconfig.clone(), &self.parts.reloader) {
            Ok(client_config) => {
                let direct = Direct::new(client_config, self.parts.reloader.clone(), self.parts.tasks.clone());
                Some(Open { at, plane: Arc::new(Plane::new(Api::new(Arc::new(direct)))) })
            }
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                error!(error, "karmada.kubeconfig cannot be used");
                None
            }
        }
    }

    fn begin(&mut self, name: &ClusterName, order: Order, ended: &mpsc::Sender<ClusterName>) {
        let Some(open) = &self.plane else { return };
        let (orders, receiver) = watch::channel(order);
        let stop = CancellationToken::new();
        let task = Task {
            name: name.clone(),
            parts: self.parts.clone(),
            plane: Arc::clone(&open.plane),
            kept_by: open.at.kept_by.clone(),
            orders: receiver,
        };
        let (stopped, stopping) = (stop.clone(), self.parts.tasks.cancelled());
        let (ended, name) = (ended.clone(), name.clone());
        self.kept.insert(name.clone(), Kept { orders, _stop: stop.drop_guard() });
        let span = info_span!(parent: None, "karmada", cluster = %name);
        let run = async move {
            tokio::select! {
                () = task.run() => {
                    let _ = ended.send(name).await;
                }
                () = stopped.cancelled() => {}
                () = stopping => {}
            }
        };
        self.parts.tasks.spawn("karmada member", run.instrument(span));
    }

    async fn has_left(&mut self, name: ClusterName) {
        self.kept.remove(&name);
        self.forget(&name);
        let _ = self.departed.send(name).await;
    }

    fn forget(&self, name: &ClusterName) {
        self.parts.memberships.forget(name);
        self.parts.counts.forget(name);
    }

    /// Removes Clusters that we created and that no configuration contains.
    async fn find_orphans(&mut self, wanted: &Wanted, ended: &mpsc::Sender<ClusterName>) {
        let Some(open) = &self.plane else { return };
        // The tasks report errors of Karmada.
        let Ok(there) = open.plane.kept(&open.at.kept_by).await else { return };
        let is_stray = |name: &ClusterName| !wanted.has(name) && !self.kept.contains_key(name);
        let there = there.into_iter().filter(is_stray).collect();
        for name in self.orphans.due(&there, Instant::now()) {
            self.begin(&name, Order::Leave, ended);
        }
    }
}

impl std::fmt::Debug for Reconciler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reconciler").field("kept", &self.kept.keys()).finish_non_exhaustive()
    }
}

// === impl Task ===

impl Task {
    /// Runs until the task has been ordered to leave, and the cluster has left.
    async fn run(mut self) {
        let in_member = Api::new(Tunnelled::new(Arc::clone(&self.parts.registry), self.name.clone()));
        let mut authority = self.parts.serving_ca.changes();
        let mut pauses = Pauses::default();
        let mut anew = true;
        loop {
            let order = self.orders.borrow_and_update().clone();
            let Order::Keep(member) = order else {
                let was_ours = self.parts.memberships.state(&self.name) == Some(State::Joined);
                self.parts.memberships.note(&self.name, State::Leaving, None);
                let is_served = self.parts.registry.clusters().get(self.name.as_str()).is_some();
                let in_member = is_served.then_some(&in_member);
                let leaver = Leaver { name: &self.name, in_member, was_ours };
                return leaver.leave(&self.plane, &self.kept_by).await;
            };
            let ca = self.parts.serving_ca.borrow();
            let wait = match pass(&in_member, &self.plane, &member, &ca, anew).await {
                Ok(done) => {
                    anew = false;
                    self.succeeded(done);
                    pauses.good()
                }
                Err(error) if error.is_absence() => {
                    self.note(State::Joining, ABSENT.to_owned(), Outcome::Absent);
                    pauses.absent()
                }
                Err(error) => {
                    self.failed(&error).await;
                    pauses.failed()
                }
            };
            tokio::select! {
                () = sleep(wait) => {}
                changed = self.orders.changed() => match changed {
                    Ok(()) => anew = true,
                    Err(_) => return,
                },
                true = authority.changed() => {}
            }
        }
    }

    fn succeeded(&self, done: Done) {
        let outcome = match done {
            Done::Nothing => Outcome::Unchanged,
            Done::Written => Outcome::Written,
        };
        let before = self.parts.memberships.state(&self.name);
        self.parts.memberships.note(&self.name, State::Joined, None);
        self.parts.counts.passed(&self.name, outcome, Some(State::Joined));
        match done {
            Done::Written if before == Some(State::Joined) => info!("updated the membership in Karmada"),
            Done::Written => info!("joined Karmada"),
            Done::Nothing => {}
        }
    }

    async fn failed(&self, error: &PassError) {
        let message = chain(error).to_string();
        let Some(taken) = error.taken() else {
            if self.note(State::Joining, message.clone(), Outcome::Failed) {
                warn!(error = message, "cannot reconcile the membership in Karmada; retrying");
            }
            return;
        };
        if self.note(State::Refused, message.clone(), Outcome::Refused) {
            error!(error = message, "cannot be a member of Karmada");
            if let Err(error) = self.plane.tell(&self.name, "AtollMembershipRefused", &taken.to_string()).await {
                let error: &dyn std::error::Error = &error;
                warn!(error, "cannot write the event about the refused membership");
            }
        }
    }

    /// Records the state. Returns whether it has changed. A cluster that has joined stays `joined` while it cannot be
    /// checked: Karmada's Cluster still exists.
    fn note(&self, state: State, message: String, outcome: Outcome) -> bool {
        let was_joined = self.parts.memberships.state(&self.name) == Some(State::Joined);
        let state = if was_joined && state == State::Joining { State::Joined } else { state };
        self.parts.counts.passed(&self.name, outcome, Some(state));
        self.parts.memberships.note(&self.name, state, Some(message))
    }
}

/// Whether a kubeconfig, and all files that it names, can be read.
pub fn check(path: PathBuf, reloader: &Reloader) -> Result<(), kubeconfig::OpenError> {
    kubeconfig::watch(path, reloader)?.borrow().open(reloader).map(drop)
}
