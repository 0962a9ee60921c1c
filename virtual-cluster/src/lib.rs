//! What a virtual cluster consists of on its host, and how it is kept there.
//!
//! Reading order: [`config`], [`clusters`] (the virtual clusters of an agent, with their limits in [`share`]), [`namespaces`],
//! [`nodes`] and [`roles`] (what is known of the host), [`root`] (what provisions a virtual cluster and reconciles it),
//! [`gate`] (the admission policies on the host), [`shared`] (objects that several virtual clusters see), [`policy`] (how
//! each cluster-scoped resource is served), [`own_rights`] (the agent's own rights). What is *not* here: requests of
//! clients.

pub mod clusters;
pub mod config;
pub mod gate;
pub mod namespaces;
pub mod nodes;
pub mod own_rights;
pub mod pod_security;
pub mod policy;
pub mod roles;
pub mod root;
pub mod share;
pub mod shared;
