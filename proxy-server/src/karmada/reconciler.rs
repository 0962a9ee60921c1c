//! Makes Karmada match the configuration: one task for each cluster, and one that starts and stops them.

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
use super::desired::{Desired, PlaneConfig};
use super::leave::Leaver;
use super::memberships::{Counts, Memberships, Outcome, State};
use super::objects::Member;
use super::orphans::Orphans;
use super::pass::{Done, PassError, pass};
use super::pauses::Pauses;
use super::plane::Plane;
use crate::registry::Registry;

/// The pause between two searches for Clusters that have our label and are in no configuration.
const ORPHANS_INTERVAL: Duration = Duration::from_secs(30);

/// The message for a cluster without an agent.
const ABSENT: &str = "waits for the cluster to be reachable";

/// Starts and stops the tasks.
pub struct Reconciler {
    services: Services,
    desired: watch::Receiver<Desired>,
    /// Gets the clusters that have left Karmada, so that their endpoints can close.
    left: mpsc::Sender<ClusterName>,
    plane: Option<OpenPlane>,
    members: BTreeMap<ClusterName, RunningTask>,
    orphans: Orphans,
}

/// The services of the process that every task uses.
#[derive(Clone)]
struct Services {
    registry: Arc<Registry>,
    serving_ca: Watched<Authority>,
    reloader: Reloader,
    tasks: Tasks,
    memberships: Memberships,
    counts: Counts,
}

/// The control plane, with its connection.
struct OpenPlane {
    config: PlaneConfig,
    plane: Arc<Plane<Arc<Direct>>>,
}

/// The task of one cluster. Dropping this stops it.
struct RunningTask {
    goal: watch::Sender<Goal>,
    _stop: DropGuard,
}

/// What a task has to achieve.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Goal {
    Member(Box<Member>),
    Leave,
}

/// Reconciles one cluster.
struct Task {
    name: ClusterName,
    services: Services,
    plane: Arc<Plane<Arc<Direct>>>,
    kept_by: String,
    goal: watch::Receiver<Goal>,
}

// === impl Reconciler ===

impl Reconciler {
    /// Does nothing until [`run`](Self::run), which spawns into `tasks`. `left` gets the clusters that have left Karmada.
    pub fn new(
        registry: Arc<Registry>,
        serving_ca: Watched<Authority>,
        reloader: Reloader,
        tasks: Tasks,
        metrics: &Metrics,
        desired: watch::Receiver<Desired>,
        left: mpsc::Sender<ClusterName>,
    ) -> Self {
        let (memberships, counts) = (Memberships::default(), Counts::new(metrics));
        let services = Services { registry, serving_ca, reloader, tasks, memberships, counts };
        Self { services, desired, left, plane: None, members: BTreeMap::new(), orphans: Orphans::default() }
    }

    /// The state of all clusters.
    pub fn memberships(&self) -> Memberships {
        self.services.memberships.clone()
    }

    /// Runs for ever.
    pub async fn run(mut self) {
        let (ended, mut endings) = mpsc::channel(16);
        loop {
            let desired = self.desired.borrow_and_update().clone();
            self.update(&desired, &ended).await;
            tokio::select! {
                changed = self.desired.changed() => if changed.is_err() {
                    return;
                },
                Some(name) = endings.recv() => self.has_left(name).await,
                () = sleep(ORPHANS_INTERVAL.mul_f64(0.75 + fastrand::f64() / 2.0)) => self.delete_orphans(&desired, &ended).await,
            }
        }
    }

    /// Starts missing tasks, and tells all of them their goals.
    async fn update(&mut self, desired: &Desired, ended: &mpsc::Sender<ClusterName>) {
        if self.plane.as_ref().map(|open| &open.config) != desired.plane.as_ref() {
            if self.plane.take().is_some() {
                info!("the Karmada control plane has changed; Clusters in the previous one are kept");
            }
            for name in std::mem::take(&mut self.members).into_keys() {
                self.forget(&name);
            }
            self.plane = desired.plane.clone().and_then(|config| self.open(config));
            self.orphans = Orphans::default();
        }
        for (name, task) in &self.members {
            let goal = desired.members.get(name).map_or(Goal::Leave, |member| Goal::Member(Box::new(member.clone())));
            task.goal.send_if_modified(|current| {
                let is_changed = *current != goal;
                *current = goal;
                is_changed
            });
        }
        if self.plane.is_some() {
            for (name, member) in &desired.members {
                if !self.members.contains_key(name) {
                    self.start(name, Goal::Member(Box::new(member.clone())), ended);
                }
            }
        }
        for name in desired.leaving.iter().filter(|name| !self.members.contains_key(*name)) {
            let _ = self.left.send(name.clone()).await;
        }
    }

    fn open(&self, config: PlaneConfig) -> Option<OpenPlane> {
        match kubeconfig::watch(config.kubeconfig.clone(), &self.services.reloader) {
            Ok(client_config) => {
                let direct = Direct::new(client_config, self.services.reloader.clone(), self.services.tasks.clone());
                Some(OpenPlane { config, plane: Arc::new(Plane::new(Api::new(Arc::new(direct)))) })
            }
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                error!(error, "karmada.kubeconfig cannot be used");
                None
            }
        }
    }

    /// Starts the task of a cluster, which sends its name to `ended` when the cluster has left.
    fn start(&mut self, name: &ClusterName, goal: Goal, ended: &mpsc::Sender<ClusterName>) {
        let Some(open) = &self.plane else { return };
        let (goal, receiver) = watch::channel(goal);
        let stop = CancellationToken::new();
        let task = Task {
            name: name.clone(),
            services: self.services.clone(),
            plane: Arc::clone(&open.plane),
            kept_by: open.config.kept_by.clone(),
            goal: receiver,
        };
        let (stopped, stopping) = (stop.clone(), self.services.tasks.cancelled());
        let (ended, name) = (ended.clone(), name.clone());
        self.members.insert(name.clone(), RunningTask { goal, _stop: stop.drop_guard() });
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
        self.services.tasks.spawn("karmada member", run.instrument(span));
    }

    async fn has_left(&mut self, name: ClusterName) {
        self.members.remove(&name);
        self.forget(&name);
        let _ = self.left.send(name).await;
    }

    fn forget(&self, name: &ClusterName) {
        self.services.memberships.forget(name);
        self.services.counts.forget(name);
    }

    /// Deletes Clusters that a proxy-server has created, and that no configuration contains.
    async fn delete_orphans(&mut self, desired: &Desired, ended: &mpsc::Sender<ClusterName>) {
        let Some(open) = &self.plane else { return };
        // The tasks report errors of Karmada.
        let Ok(clusters) = open.plane.kept(&open.config.kept_by).await else { return };
        let is_orphan =
            |name: &ClusterName| !desired.has(name) && !self.members.contains_key(name) && !desired.may_come(name);
        let orphans = clusters.into_iter().filter(is_orphan).collect();
        for name in self.orphans.due(&orphans, Instant::now()) {
            self.start(&name, Goal::Leave, ended);
        }
    }
}

impl std::fmt::Debug for Reconciler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reconciler").field("members", &self.members.keys()).finish_non_exhaustive()
    }
}

// === impl Task ===

impl Task {
    /// Runs until the goal is to leave, and the cluster has left.
    async fn run(mut self) {
        let in_member = Api::new(Tunnelled::new(Arc::clone(&self.services.registry), self.name.clone()));
        let mut authority = self.services.serving_ca.changes();
        let mut pauses = Pauses::default();
        let mut force = true;
        loop {
            let goal = self.goal.borrow_and_update().clone();
            let Goal::Member(member) = goal else {
                let was_ours = self.services.memberships.state(&self.name) == Some(State::Joined);
                self.services.memberships.set(&self.name, State::Leaving, None);
                let is_served = self.services.registry.clusters().get(self.name.as_str()).is_some();
                let in_member = is_served.then_some(&in_member);
                let leaver = Leaver { name: &self.name, in_member, was_ours };
                return leaver.leave(&self.plane, &self.kept_by).await;
            };
            let ca = self.services.serving_ca.borrow();
            let wait = match pass(&in_member, &self.plane, &member, &ca, force).await {
                Ok(done) => {
                    force = false;
                    self.succeeded(done);
                    pauses.after_success()
                }
                Err(error) if error.is_absence() => {
                    self.note(State::Joining, ABSENT.to_owned(), Outcome::Absent);
                    pauses.without_agent()
                }
                Err(error) if error.is_unready() => {
                    let reason = chain(&error).to_string();
                    if self.note(State::Joining, reason.clone(), Outcome::Absent) {
                        info!(reason, "the cluster joins Karmada when it is ready");
                    }
                    pauses.without_agent()
                }
                Err(error) => {
                    self.failed(&error).await;
                    pauses.after_failure()
                }
            };
            tokio::select! {
                () = sleep(wait) => {}
                changed = self.goal.changed() => match changed {
                    Ok(()) => force = true,
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
        let before = self.services.memberships.state(&self.name);
        self.services.memberships.set(&self.name, State::Joined, None);
        self.services.counts.passed(&self.name, outcome, Some(State::Joined));
        match done {
            Done::Written if before == Some(State::Joined) => info!("updated the membership in Karmada"),
            Done::Written => info!("joined Karmada"),
            Done::Nothing => {}
        }
    }

    async fn failed(&self, error: &PassError) {
        let message = chain(error).to_string();
        let Some(conflict) = error.conflict() else {
            if self.note(State::Joining, message.clone(), Outcome::Failed) {
                warn!(error = message, "cannot reconcile the membership in Karmada; retrying");
            }
            return;
        };
        if self.note(State::Refused, message.clone(), Outcome::Refused) {
            error!(error = message, "cannot be a member of Karmada");
            if let Err(error) = self.plane.warn(&self.name, "AtollMembershipRefused", &conflict.to_string()).await {
                let error: &dyn std::error::Error = &error;
                warn!(error, "cannot write the event about the refused membership");
            }
        }
    }

    /// Records the state. Returns whether it has changed. A cluster that has joined stays `joined` while it cannot be
    /// checked: Karmada's Cluster still exists.
    fn note(&self, state: State, message: String, outcome: Outcome) -> bool {
        let was_joined = self.services.memberships.state(&self.name) == Some(State::Joined);
        let state = if was_joined && state == State::Joining { State::Joined } else { state };
        self.services.counts.passed(&self.name, outcome, Some(state));
        self.services.memberships.set(&self.name, state, Some(message))
    }
}

/// Whether a kubeconfig, and all files that it names, can be read.
pub fn check(path: PathBuf, reloader: &Reloader) -> Result<(), kubeconfig::OpenError> {
    kubeconfig::watch(path, reloader)?.borrow().open(reloader).map(drop)
}
