//! Each class of resources: what the host gets, and what the client sees.

mod cluster_scoped;
mod guarded;
mod namespaced;
mod namespaces;
mod paths;
mod projected;
mod rbac;
mod renamed;
mod reviews;
mod shared;
mod subresources;
