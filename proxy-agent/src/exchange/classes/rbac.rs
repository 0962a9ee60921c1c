//! The RBAC of a virtual cluster's own scope: ClusterRoles and ClusterRoleBindings.
//!
//! | object | on the host | written by | if |
//! |---|---|---|---|
//! | ClusterRole `X` | ClusterRole `vc:<cluster>:X` | the agent | the caller holds what it grants |
//! | ClusterRoleBinding `B` | RoleBinding `B` in the root namespace | the agent | the caller may bind that role |
//!
//! A write is first a dry run, which returns the object that the host would store. The agent then [tries](attempt) this
//! object as the caller, so that the host's own rules decide what the caller may grant. The agent writes exactly this
//! object, over the version that was tried. After a concurrent write, it repeats everything.

mod as_tried;
mod attempt;
pub(super) mod bindings;
pub(crate) mod in_force;
pub(super) mod roles;
mod try_write;
