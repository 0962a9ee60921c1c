//! The cache of the host's ClusterRoles that virtual clusters see: the default roles of its API server, which all
//! virtual clusters share, and the roles of virtual clusters.
//!
//! Some default roles are aggregated: `admin`, `edit`, `view`. A virtual cluster's own roles must be aggregated only
//! within that cluster, so each cluster has a copy of them.
//!
//! One watch serves all clusters. What is *not* here: the check whether a client may write a role (`exchange` in the
//! agent).
//!
//! Reading order: [`Role`], `texts` (rules share memory), `all_roles` (the roles by their owners), [`Roles`] (the
//! cache), `sum` (computes aggregated rules), [`aggregation`] (writes them to the host), `copies`, `room` (the quota).

pub mod aggregation;
mod all_roles;
mod cache;
mod copies;
mod path;
mod role;
mod room;
mod sum;
mod texts;
mod version;

pub use cache::Roles;
pub use path::PATH;
pub use role::{Role, Rule};
pub use room::NoRoom;
