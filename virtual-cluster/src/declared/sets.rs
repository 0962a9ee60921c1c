//! VirtualClusterSets: each creates a VirtualCluster for every value of a label of nodes, or for every NodeGroup of KubeEdge.
//!
//! A set only writes VirtualCluster objects, as kubectl would. The rest of [`declared`](super) serves them.
//!
//! Reading order: [`ClusterSet`] (an object), `spec` (its content), [`plan`] (what must be written and deleted), [`Sets`] (the loop).

mod apply;
mod object;
mod plan;
mod run;
mod spec;

pub use object::ClusterSet;
pub use plan::{Plan, plan};
pub use run::Sets;
pub use spec::{SetSpec, SetSpecError, Source};

/// The path of all VirtualClusterSets.
pub const PATH: &str = "/apis/atoll.dev/v1alpha1/virtualclustersets";
/// The `kind` of a VirtualClusterSet.
pub const KIND: &str = "VirtualClusterSet";
/// The label of a VirtualCluster with the name of the set that has created it.
pub const SET_LABEL: &str = "atoll.dev/virtual-cluster-set";
