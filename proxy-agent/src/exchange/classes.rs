//! Decisions about requests: a module for each class of resources.

pub(super) mod cluster_scoped;
pub(super) mod control_plane;
mod mirrors;
pub(super) mod namespaced;
pub(super) mod namespaces;
pub(super) mod non_resource;
mod pass;
mod projected;
pub(super) mod rbac;
mod renamed;
mod reviews;
pub(super) mod shared;
