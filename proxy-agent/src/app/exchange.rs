//! Builds what serves virtual clusters, and starts what keeps them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use ops::drain::Tasks;
use ops::files::Reloader;
use request_metrics::RequestMetrics;
use rewrite::view::Certificate;
use tokio::time::timeout;

use crate::config::ProxyAgentConfiguration;
use crate::exchange::{Exchange, Services};
use host_client::Host;
use host_client::api::{Api, Reflector, Selection, Shape};
use virtual_cluster::admission_policies::AdmissionPolicies;
use virtual_cluster::clusters::{ByName, ClusterError, VirtualClusters};
use virtual_cluster::namespaces::{self, Namespaces};
use virtual_cluster::provisioner::Provisioner;
use virtual_cluster::roles;
use virtual_cluster::shared::overlays::orphans;
use virtual_cluster::shared::{Rules, handover};

/// The time that the admission policies wait for the annotations of namespaces.
const ANNOTATING: Duration = Duration::from_secs(10);

/// The parts that have to know which virtual clusters there are. Clones are the same.
#[derive(Clone)]
pub(super) struct Slices {
    pub(super) clusters: Arc<VirtualClusters>,
    pub(super) namespaces: Arc<Namespaces>,
    pub(super) provisioner: Provisioner<Api>,
    pub(super) host: Host,
    pub(super) admission_policies: AdmissionPolicies<Api>,
    pub(super) shared: Rules,
    pub(super) requests: Arc<RequestMetrics>,
}

/// `None` if there is no host. Without virtual clusters it waits for the first one.
pub(super) fn open(
    config: &ProxyAgentConfiguration,
    reloader: &Reloader,
    requests: &Arc<RequestMetrics>,
    tasks: &Tasks,
) -> anyhow::Result<Option<(Exchange, Slices)>> {
    let Some(configured) = config.host.as_ref() else { return Ok(None) };
    let host = Host::open(configured, reloader, tasks.child()).context("host")?;
    let api = Api::new(host.clone());
    let endpoint_ca = reloader
        .watch([config.identity.server_ca.to_path_buf()], |[pem]| std::str::from_utf8(pem).map(Certificate::new));
    let endpoint_ca = endpoint_ca.context("identity.serverCA")?;
    let services = Services::new(config, host, endpoint_ca)?;
    requests.exchange(config.virtual_clusters.iter().map(|cluster| &cluster.name));
    start(&services, &api, tasks);
    let slices = Slices {
        shared: services.shared.clone(),
        clusters: Arc::clone(&services.clusters),
        namespaces: Arc::clone(&services.namespaces),
        provisioner: services.provisioner.clone(),
        admission_policies: services.admission_policies.clone(),
        host: services.host.clone(),
        requests: Arc::clone(requests),
    };
    Ok(Some((Exchange::new(services, Arc::clone(requests)), slices)))
}

/// Starts the loops that keep what the services know of the host, and what virtual clusters consist of there.
pub(crate) fn start(services: &Services, api: &Api, tasks: &Tasks) {
    let Services { clusters, namespaces, provisioner, definitions, .. } = services;
    let reflector = Reflector::new(api, namespaces::PATH, Selection::default());
    let followed = Arc::clone(namespaces);
    keep(tasks, "namespaces", async move { followed.follow(reflector).await });
    let reflector =
        Reflector::new(api, virtual_cluster::nodes::PATH, Selection { shape: Shape::Metadata, ..Selection::default() });
    let nodes = clusters.nodes();
    keep(tasks, "nodes", async move { nodes.follow(reflector).await });
    let reflector = Reflector::new(api, roles::PATH, Selection::default());
    let followed = clusters.roles();
    keep(tasks, "roles", async move { followed.follow(reflector).await });
    let (kept, through) = (Arc::clone(definitions), api.clone());
    keep(tasks, "definitions", async move { kept.keep(through).await });
    let (kept, through) = (Arc::clone(definitions), api.clone());
    keep(tasks, "handover", async move { handover::keep(through, &kept).await });
    let served = Arc::clone(clusters);
    let names = move || served.all().iter().map(|cluster| cluster.name.clone()).collect();
    keep(tasks, "overlays", orphans::keep(api.clone(), names));
    let kept = Arc::clone(&services.own_rights);
    keep(tasks, "own rights", async move { kept.keep().await });
    let names = {
        let clusters = Arc::clone(clusters);
        move || clusters.names()
    };
    keep(tasks, "aggregation", roles::aggregation::keep(api.clone(), clusters.roles(), names));
    let kept = Arc::clone(&services.discovery);
    keep(tasks, "discovery", async move { kept.keep().await });
    keep(tasks, "root", provisioner.clone().run());
    let (annotating, kept) = (provisioner.clone(), services.admission_policies.clone());
    keep(tasks, "gate", async move {
        // The policies refuse pods in namespaces without annotations, and those of an earlier version have none. What
        // cannot be annotated does not keep the others waiting.
        let _ = timeout(ANNOTATING, annotating.annotated()).await;
        kept.run().await;
    });
}

// === impl Slices ===

impl Slices {
    /// Checks another list of virtual clusters, which does nothing yet.
    pub(super) fn read(&self, config: &ProxyAgentConfiguration) -> Result<ByName, ClusterError> {
        self.clusters.read(config.virtual_clusters.iter().map(|cluster| &**cluster))
    }

    /// Serves these and no others.
    pub(super) fn exchange(&self, clusters: ByName) {
        // In this order, what is not ours any more is not asked for when it is let go.
        self.requests.exchange(clusters.keys());
        self.clusters.exchange(clusters);
        self.namespaces.serve(self.clusters.names());
        self.provisioner.enforce(self.clusters.levels());
        self.provisioner.serve(self.clusters.annotations());
    }
}

/// Runs a loop that has no end of its own until the process stops.
fn keep(tasks: &Tasks, name: &'static str, endless: impl Future<Output = ()> + Send + 'static) {
    let cancelled = tasks.cancelled();
    tasks.spawn(name, async move {
        tokio::select! {
            () = endless => {}
            () = cancelled => {}
        }
    });
}
