//! What an agent observes of a virtual cluster that it serves.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::kubeconfigs::SeenKubeconfig;
use super::status::LastError;
use crate::provisioner::ProvisionState;

/// What an agent observes of a virtual cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// How far it is provisioned.
    pub provisioned: ProvisionState,
    /// Why the admission policies do not admit clients, if they do not.
    pub not_admitted: Option<String>,
    /// A weakness that the configuration accepts.
    pub weakness: Option<String>,
    /// Whether proxy-servers serve it.
    pub reach: Reach,
    /// The URL of its endpoint, if a proxy-server has sent its domain.
    pub endpoint: Option<String>,
    /// The label selector of its nodes.
    pub node_selector: String,
    /// Why nodes could not be labelled.
    pub node_label_failure: Option<Arc<str>>,
    /// The number of its nodes.
    pub nodes: usize,
    /// The number of its namespaces.
    pub namespaces: usize,
    /// The other virtual clusters that have nodes of it, with the name of one such node.
    pub shared_with: BTreeMap<String, String>,
    /// The last error in a response to its clients.
    pub last_error: Option<LastError>,
    /// The state of its kubeconfig, if it asks for one.
    pub kubeconfig: Option<SeenKubeconfig>,
}

/// Whether proxy-servers serve a cluster of this agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// At least one does.
    Served {
        /// Why others do not.
        refused: Option<Arc<str>>,
    },
    /// All to which there is a tunnel refuse it, for this reason.
    Refused(Arc<str>),
    /// There is no tunnel, for this reason.
    Nowhere(Arc<str>),
}
