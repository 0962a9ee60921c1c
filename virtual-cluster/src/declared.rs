//! Virtual clusters that objects of the kind `VirtualCluster` on the host declare, instead of the configuration file.
//!
//! `configs/kubernetes/virtual-clusters.yaml` defines the kind. The host's API server checks most of an object with it, and the
//! agent checks everything again. A client of a virtual cluster never sees such objects: see
//! [`Customs`](crate::policy::Customs).
//!
//! An object is served once it has our finalizer, so that the agent learns of its deletion even if it does not run at that time.
//! Everything here is level-triggered, and replicas of an agent do the same work at once.
//!
//! Reading order: [`Declared`] (an object), [`spec`] (its content), [`accept`] (which objects are served), [`Facts`] and
//! [`ready`](ready::ready) (how they are), [`Status`] and `next_status` (what is written), [`removal`] (the deletion of what a cluster has on the
//! host), [`Report`] (the loop that writes), [`kubeconfigs`] (Secrets for users), and [`sets`] (what creates objects). What is *not* here: serving the clusters.

mod accept;
mod event;
mod facts;
mod finalizer;
mod follow;
pub mod kubeconfigs;
mod next_status;
mod object;
pub mod ready;
pub mod removal;
mod report;
pub mod sets;
pub mod spec;
mod status;

pub use accept::{Accepted, InForce, Judged, Others, Verdict, accept};
pub use facts::{Facts, Reach};
pub use follow::{ByName, Named, Objects, follow};
pub use object::{Declared, Metadata, OwnerReference};
pub use report::{Observe, Report};
pub use spec::{DeletionPolicy, Spec, SpecError};
pub use status::{Condition, LastError, SecretReference, Status};

/// The path of all VirtualClusters.
pub const PATH: &str = "/apis/atoll.dev/v1alpha1/virtualclusters";
/// The `apiVersion` of a VirtualCluster.
pub const API_VERSION: &str = "atoll.dev/v1alpha1";
/// The `kind` of a VirtualCluster.
pub const KIND: &str = "VirtualCluster";
/// The finalizer of a VirtualCluster that an agent serves.
pub const FINALIZER: &str = "atoll.dev/virtual-cluster";
