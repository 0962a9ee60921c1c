//! The components of a virtual cluster on its host, and the loops that reconcile them.
//!
//! Reading order: [`config`] (with [`mistakes`]), [`clusters`] (the virtual clusters of an agent, with their limits in [`share`]),
//! [`namespaces`], [`nodes`] and [`roles`] (caches of objects on the host), [`node_labels`] (labels nodes), [`provisioner`] (provisions a virtual
//! cluster and reconciles it), [`admission_policies`] (the admission policies on the host), [`shared`] (objects that
//! several virtual clusters see), [`usage`] (what each virtual cluster stores), [`policy`] (how each cluster-scoped resource is served), [`own_rights`] (the agent's
//! own rights), [`belongings`] (what a virtual cluster has outside its
//! namespaces), [`declared`] (virtual clusters that objects on the host declare), [`loops`]. What is *not* here: requests of clients.

pub mod admission_policies;
pub mod belongings;
pub mod clusters;
pub mod config;
pub mod declared;
pub mod loops;
pub mod mistakes;
pub mod namespaces;
pub mod node_labels;
pub mod nodes;
pub mod own_rights;
pub mod pod_security;
pub mod policy;
pub mod provisioner;
pub mod roles;
pub mod share;
pub mod shared;
pub mod usage;
