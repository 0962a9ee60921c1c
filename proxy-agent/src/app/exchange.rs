//! Builds the services of virtual clusters, and starts the loops that keep caches and objects up to date.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use ops::drain::Tasks;
use ops::files::Reloader;
use request_metrics::RequestMetrics;
use request_traces::Traces;
use rewrite::view::Certificate;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::config::ProxyAgentConfiguration;
use crate::exchange::{Exchange, Services, Sharing};
use caller::Authorizer;
use host_client::Host;
use host_client::api::{Api, Reflector, Selection, Shape};
use virtual_cluster::admission_policies::AdmissionPolicies;
use virtual_cluster::clusters::{ByName, ClusterError, VirtualClusters};
use virtual_cluster::config::VirtualCluster;
use virtual_cluster::declared::Judged;
use virtual_cluster::loops;
use virtual_cluster::namespaces::{self, Namespaces};
use virtual_cluster::node_labels::NodeLabelFailure;
use virtual_cluster::provisioner::Provisioner;
use virtual_cluster::roles;
use virtual_cluster::shared::Rules;
use virtual_cluster::usage::{self, Usage};

/// The maximum time for which the installation of the admission policies waits for the annotations of namespaces.
const ANNOTATION_TIMEOUT: Duration = Duration::from_secs(10);

/// The services that depend on the list of virtual clusters. Clones share them.
#[derive(Clone)]
pub(super) struct ClusterServices {
    pub(super) clusters: Arc<VirtualClusters>,
    pub(super) namespaces: Arc<Namespaces>,
    pub(super) provisioner: Provisioner<Api>,
    pub(super) usage: Arc<Usage>,
    pub(super) host: Host,
    pub(super) admission_policies: AdmissionPolicies<Api>,
    pub(super) shared: Rules,
    pub(super) node_label_failure: NodeLabelFailure,
    pub(super) requests: Arc<RequestMetrics>,
    pub(super) sharing: Option<Arc<Sharing>>,
    pub(super) authz: Arc<Authorizer>,
}

// === impl ClusterServices ===

impl ClusterServices {
    /// Waits until requests can be served, and until it is known which virtual clusters objects of the host declare.
    pub(super) async fn ready(&self, mut declared: watch::Receiver<Option<Judged>>) {
        self.admission_policies.in_force().await;
        // This fails if nothing follows the objects any more, so the process stops.
        let _ = declared.wait_for(Option::is_some).await;
        for cluster in self.clusters.all() {
            cluster.namespaces_known().await;
        }
    }
}

/// Builds the services, and starts their loops. `None` if the configuration has no host.
pub(super) fn open(
    config: &ProxyAgentConfiguration,
    reloader: &Reloader,
    (requests, traces): (&Arc<RequestMetrics>, Traces),
    tasks: &Tasks,
) -> anyhow::Result<Option<(Exchange, ClusterServices)>> {
    let Some(configured) = config.host.as_ref() else { return Ok(None) };
    let host = Host::open(configured, reloader, tasks.child()).context("host")?;
    let api = Api::new(host.clone());
    let endpoint_ca = reloader
        .watch([config.identity.server_ca.to_path_buf()], |[pem]| std::str::from_utf8(pem).map(Certificate::new));
    let endpoint_ca = endpoint_ca.context("identity.serverCA")?;
    let mut services = Services::new(config, host, endpoint_ca, tasks)?;
    services.traces = traces;
    requests.exchange(config.virtual_clusters.iter().map(|cluster| &cluster.name));
    start(&services, &api, tasks);
    let node_label_failure = NodeLabelFailure::default();
    let label_nodes = loops::label_nodes(api, &services.clusters, node_label_failure.clone());
    tasks.spawn_until_cancelled("node labels", label_nodes);
    let cluster_services = ClusterServices {
        shared: services.shared.clone(),
        clusters: Arc::clone(&services.clusters),
        namespaces: Arc::clone(&services.namespaces),
        provisioner: services.provisioner.clone(),
        usage: Arc::clone(&services.usage),
        admission_policies: services.admission_policies.clone(),
        host: services.host.clone(),
        node_label_failure,
        requests: Arc::clone(requests),
        sharing: services.sharing.clone(),
        authz: Arc::clone(&services.authz),
    };
    Ok(Some((Exchange::new(services, Arc::clone(requests)), cluster_services)))
}

/// Starts the loops that keep the caches of the services and the objects of virtual clusters up to date.
pub(crate) fn start(services: &Services, api: &Api, tasks: &Tasks) {
    let Services { clusters, namespaces, provisioner, definitions, .. } = services;
    let reflector = Reflector::new(api, namespaces::PATH, Selection::default());
    let followed = Arc::clone(namespaces);
    tasks.spawn_until_cancelled("namespaces", async move { followed.follow(reflector).await });
    let reflector =
        Reflector::new(api, virtual_cluster::nodes::PATH, Selection { shape: Shape::Metadata, ..Selection::default() });
    let nodes = clusters.nodes();
    tasks.spawn_until_cancelled("nodes", async move { nodes.follow(reflector).await });
    let reflector = Reflector::new(api, roles::PATH, Selection::default());
    let followed = clusters.roles();
    tasks.spawn_until_cancelled("roles", async move { followed.follow(reflector).await });
    let (kept, through) = (Arc::clone(definitions), api.clone());
    tasks.spawn_until_cancelled("definitions", async move { kept.keep(through).await });
    let (kept, through) = (Arc::clone(definitions), api.clone());
    tasks.spawn_until_cancelled("handover", loops::hand_over(through, kept));
    let served = Arc::clone(clusters);
    let names = move || served.all().iter().map(|cluster| cluster.name.clone()).collect();
    tasks.spawn_until_cancelled("overlays", loops::remove_orphans(api.clone(), Box::new(names)));
    let kept = Arc::clone(&services.own_rights);
    tasks.spawn_until_cancelled("own rights", async move { kept.keep().await });
    let names = {
        let clusters = Arc::clone(clusters);
        move || clusters.names()
    };
    tasks.spawn_until_cancelled("aggregation", loops::aggregate_roles(api.clone(), clusters.roles(), Box::new(names)));
    if let Some(sharing) = services.sharing.clone() {
        let through = api.clone();
        tasks.spawn_until_cancelled("rights", async move { sharing.keep_rights(&through).await });
    }
    let kept = Arc::clone(&services.discovery);
    tasks.spawn_until_cancelled("discovery", async move { kept.keep().await });
    let counted = services.discovery.counted();
    let counting = usage::keep(Arc::clone(&services.usage), api.clone(), counted, Arc::clone(definitions));
    tasks.spawn_until_cancelled("usage", counting);
    tasks.spawn_until_cancelled("limits", loops::declare_limits(api.clone(), Arc::clone(&services.usage)));
    tasks.spawn_until_cancelled("provisioner", loops::provision(provisioner.clone()));
    let (annotating, kept) = (provisioner.clone(), services.admission_policies.clone());
    tasks.spawn_until_cancelled("admission policies", async move {
        // The policies refuse pods in namespaces without annotations, and namespaces of an earlier version have none. A
        // namespace that cannot be annotated must not delay the policies for long.
        let _ = timeout(ANNOTATION_TIMEOUT, annotating.annotated()).await;
        loops::keep_policies(kept).await;
    });
}

// === impl ClusterServices ===

impl ClusterServices {
    /// Checks another list of virtual clusters. It takes effect with [`exchange`](Self::exchange).
    pub(super) fn read<'c>(
        &self,
        clusters: impl IntoIterator<Item = &'c VirtualCluster>,
    ) -> Result<ByName, ClusterError> {
        self.clusters.read(clusters)
    }

    /// Replaces the list of virtual clusters.
    pub(super) fn exchange(&self, clusters: ByName) {
        // In this order, no request finds a cluster whose namespaces and objects are no longer kept up to date.
        self.requests.exchange(clusters.keys());
        self.clusters.exchange(clusters);
        self.namespaces.serve(self.clusters.names());
        self.provisioner.enforce(self.clusters.levels());
        self.provisioner.limit(self.clusters.shares());
        self.usage.limit(self.clusters.shares());
        self.provisioner.serve(self.clusters.annotations());
    }
}
