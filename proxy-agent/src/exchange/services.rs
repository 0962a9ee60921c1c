//! What requests use of the agent.

use std::sync::Arc;
use std::time::Duration;

use kube_wire::Status;
use ops::drain::Tasks;
use ops::files::Watched;
use request_traces::Traces;
use rewrite::view::Certificate;
use tokio::time::timeout;

use crate::config::{ProxyAgentConfiguration, TakenNodePorts};
use crate::discovery::Discovery;
use crate::exchange::sharing::Sharing;
use crate::nodes::Nodes;
use crate::refusal::Refusal;
use crate::seal::Seal;
use caller::{Authenticator, Authorizer};
use host_client::Host;
use host_client::api::Api;
use virtual_cluster::admission_policies::{Accepted, AdmissionPolicies};
use virtual_cluster::clusters::{ClusterError, VirtualCluster, VirtualClusters, engine_name};
use virtual_cluster::namespaces::Namespaces;
use virtual_cluster::own_rights::OwnRights;
use virtual_cluster::provisioner::Provisioner;
use virtual_cluster::shared::{Definitions, Overlays, Rules};
use virtual_cluster::usage::Usage;

/// The time that a request waits until the agent knows the host's namespaces.
const NAMESPACES_SYNC_TIMEOUT: Duration = Duration::from_secs(5);

/// What requests use of the agent.
pub(crate) struct Services {
    pub(crate) host: Host,
    pub(crate) clusters: Arc<VirtualClusters>,
    /// The owners of the host's namespaces.
    pub(crate) namespaces: Arc<Namespaces>,
    pub(crate) authn: Authenticator,
    pub(crate) authz: Arc<Authorizer>,
    pub(crate) provisioner: Provisioner<Api>,
    /// What each virtual cluster stores on the host.
    pub(crate) usage: Arc<Usage>,
    pub(crate) admission_policies: AdmissionPolicies<Api>,
    pub(crate) discovery: Arc<Discovery>,
    pub(crate) nodes: Nodes,
    pub(crate) shared: Rules,
    pub(crate) definitions: Arc<Definitions>,
    pub(crate) overlays: Arc<Overlays>,
    pub(crate) own_rights: Arc<OwnRights<Api>>,
    /// The authority that clients of the endpoints trust. It replaces that of the host where the host publishes it.
    pub(crate) endpoint_ca: Watched<Certificate>,
    pub(crate) seal: Arc<Seal>,
    /// Begins the spans of requests.
    pub(crate) traces: Traces,
    /// Shares watches of the host. `None` if the configuration does not.
    pub(crate) sharing: Option<Arc<Sharing>>,
    /// Whether a Service gets another node port if the requested one belongs to another virtual cluster.
    pub(crate) replaces_node_ports: bool,
}

/// An agent cannot serve requests.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServicesError {
    /// The configuration of a virtual cluster is invalid.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The operating system provides no random numbers.
    #[error("the operating system has no random bytes for a key")]
    Randomness,
}

// === impl Services ===

impl Services {
    /// The services of an agent with this configuration and host. They know nothing of the host until `app` has started
    /// their loops.
    pub(crate) fn new(
        config: &ProxyAgentConfiguration,
        host: Host,
        endpoint_ca: Watched<Certificate>,
        tasks: &Tasks,
    ) -> Result<Self, ServicesError> {
        let api = Api::new(host.clone());
        let listed = || config.virtual_clusters.iter().map(|cluster| &**cluster);
        let namespaces = Arc::new(Namespaces::new(listed().map(|cluster| engine_name(&cluster.name))));
        let clusters = Arc::new(VirtualClusters::new(listed(), &namespaces, config.reserved())?);
        let definitions = Arc::new(Definitions::default());
        let accepted = config.host.as_ref().map(|host| Accepted {
            unsafe_direct_access: host.unsafe_direct_access,
            unverified_policies: host.unverified_policies,
        });
        let usage = Usage::new(Arc::clone(&namespaces));
        usage.limit(clusters.shares());
        let authz = Arc::new(Authorizer::new(host.clone()));
        Ok(Self {
            usage: Arc::new(usage),
            authn: Authenticator::new(host.clone()),
            provisioner: Provisioner::new(api.clone(), Arc::clone(&namespaces), &clusters),
            admission_policies: AdmissionPolicies::new(
                api.clone(),
                accepted.unwrap_or_default(),
                Arc::clone(&namespaces),
            ),
            discovery: Arc::new(Discovery::new(host.clone(), config.customs(), Arc::clone(&definitions))),
            nodes: Nodes::new(host.clone()),
            shared: Rules::new(&config.shared_objects),
            own_rights: Arc::new(OwnRights::new(api, config.customs(), Arc::clone(&definitions))),
            definitions,
            sharing: Sharing::new(&config.hub, &Api::new(host.clone()), &namespaces, &authz, tasks).map(Arc::new),
            authz,
            overlays: Arc::default(),
            traces: Traces::default(),
            endpoint_ca,
            seal: Arc::new(Seal::new().map_err(|_| ServicesError::Randomness)?),
            replaces_node_ports: config.taken_node_ports == TakenNodePorts::Replace,
            clusters,
            namespaces,
            host,
        })
    }

    /// Refuses requests until the admission policies are in force, and until the owners of all namespaces are known.
    pub(super) async fn admit(&self, cluster: &VirtualCluster) -> Result<(), Refusal> {
        let standing = self.admission_policies.first_state().await;
        let not_yet = |reason: &dyn std::fmt::Display| {
            let message = format!("cluster {} is not served yet: {reason}", cluster.name);
            Refusal::from(Status::service_unavailable(message).with_retry_after(1))
        };
        standing.admits().map_err(|reason| not_yet(&reason))?;
        let known = timeout(NAMESPACES_SYNC_TIMEOUT, cluster.namespaces_known());
        known.await.map_err(|_| not_yet(&"the namespaces of the host are not known yet"))
    }
}
