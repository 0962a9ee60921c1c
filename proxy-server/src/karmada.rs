//! Virtual clusters as members of a Karmada control plane, without `karmadactl join`.
//!
//! ```text
//! reconciler  runs one task for each cluster of the configuration
//!   pass      compares all objects of a member with the desired ones, and corrects what differs
//!     member  in the virtual cluster: accounts, tokens, rights      over the tunnel, as any client: api::Tunnelled
//!     plane   in Karmada: Secrets and the Cluster                   over TLS, by a kubeconfig:      api::Direct
//!   leave     removes a member
//! ```
//!
//! Everything is level-triggered and can be written twice: several proxy-servers with one configuration write the same
//! bytes (server-side apply with one field manager). So there is no leader election: the leader might be a proxy-server to
//! which no agent has a tunnel.
//!
//! Names, labels and contents are those of `karmadactl join` ([`objects`]), so that either can take over what the other
//! has created. "Member" is Karmada's word for a cluster, and is used only here.

pub mod api;
mod desired;
mod leave;
pub mod member;
mod memberships;
pub mod objects;
mod orphans;
mod pass;
mod pauses;
mod plane;
mod reconciler;

pub use desired::Desired;
pub use memberships::{Membership, Memberships, State};
pub use objects::Member;
pub use reconciler::{Reconciler, check};

#[cfg(test)]
mod tests;
