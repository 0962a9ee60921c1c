//! The loops of this crate on a real host.
//!
//! They are generic, so that tests can run them on a host in memory. A generic function is compiled with the crate that uses it. This
//! crate is compiled for size, and the agent for speed. So the agent uses these functions, which are not generic.

use std::pin::Pin;
use std::sync::Arc;

use host_client::api::Api;
use rewrite::ClusterName;
use tokio::sync::watch;

use crate::admission_policies::AdmissionPolicies;
use crate::clusters::VirtualClusters;
use crate::declared::sets::{ClusterSet, Sets};
use crate::declared::{ByName, Objects};
use crate::node_labels::{NodeLabelFailure, NodeLabeller};
use crate::provisioner::Provisioner;
use crate::roles::{Roles, aggregation};
use crate::shared::overlays::orphans;
use crate::shared::{Definitions, handover};
use crate::usage::{self, Usage};

/// A loop that runs until it is dropped.
pub type Loop = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The names of the virtual clusters that are served.
pub type Names = Box<dyn Fn() -> Vec<ClusterName> + Send + Sync>;

/// [`Provisioner::run`].
pub fn provision(provisioner: Provisioner<Api>) -> Loop {
    Box::pin(provisioner.run())
}

/// [`AdmissionPolicies::run`].
pub fn keep_policies(policies: AdmissionPolicies<Api>) -> Loop {
    Box::pin(policies.run())
}

/// [`NodeLabeller::run`].
pub fn label_nodes(api: Api, clusters: &Arc<VirtualClusters>, failure: NodeLabelFailure) -> Loop {
    Box::pin(NodeLabeller::new(api, clusters, failure).run())
}

/// [`aggregation::keep`].
pub fn aggregate_roles(api: Api, roles: Arc<Roles>, names: Names) -> Loop {
    Box::pin(aggregation::keep(api, roles, names))
}

/// [`orphans::keep`].
pub fn remove_orphans(api: Api, names: Names) -> Loop {
    Box::pin(orphans::keep(api, names))
}

/// [`handover::keep`].
pub fn hand_over(api: Api, definitions: Arc<Definitions>) -> Loop {
    Box::pin(async move { handover::keep(api, &definitions).await })
}

/// [`usage::declare`].
pub fn declare_limits(api: Api, usage: Arc<Usage>) -> Loop {
    Box::pin(usage::declare(usage, api))
}

/// [`Sets::run`].
pub fn keep_sets(
    sets: Sets<Api>,
    all: watch::Receiver<Option<Arc<ByName<ClusterSet>>>>,
    objects: watch::Receiver<Option<Arc<Objects>>>,
) -> Loop {
    Box::pin(sets.run(all, objects))
}
