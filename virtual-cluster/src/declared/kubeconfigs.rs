//! The kubeconfigs of declared virtual clusters: a Secret on the host for each VirtualCluster that asks for one.
//!
//! The agent creates the key, and a proxy-server issues the certificate ([`protocol::user_certificate`]). The Secret belongs to the
//! VirtualCluster, so Kubernetes deletes it with the VirtualCluster. The agent replaces it at two thirds of the life of its
//! certificate, when somebody changes what the VirtualCluster asks for, and when somebody deletes it.
//!
//! Reading order: [`Issuer`], [`KubeconfigSecret`] (what is stored), `step` (what must be done), `reconcile` (which does it),
//! [`Kubeconfigs`] (the loop), [`KubeconfigState`] (what the status tells).

mod failure;
mod issuer;
mod reconcile;
mod run;
mod secret;
mod state;
mod step;

pub use failure::{IssueError, Reason};
pub use issuer::{Issued, Issuer};
pub use run::Kubeconfigs;
pub use secret::{KubeconfigSecret, path};
pub use state::{KubeconfigState, KubeconfigStates, SeenKubeconfig};

/// The label of the Secrets.
pub const LABEL: &str = "atoll.dev/kubeconfig";
/// The key of the kubeconfig in a Secret, which Cluster API and Flux read.
pub const DATA_KEY: &str = "value";
