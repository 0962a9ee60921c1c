//! Virtual clusters as members of a Karmada control plane, without `karmadactl join`.
//!
//! ```text
//! reconciler      controls one task for each cluster of the configuration
//!   pass      compares everything that makes a member, and corrects what differs
//!     member  in the virtual cluster: accounts, tokens, rights      over the tunnel, as any client: api::Tunnelled
//!     plane   in Karmada: Secrets and the Cluster                   over TLS, by a kubeconfig:      api::Direct
//!   leave     removes a member
//! ```
//!
//! Everything is level-triggered and can be written twice: several proxy-servers with one configuration write the same
//! bytes (server-side apply with one field manager), so there is no leader. A lease would be worse: its holder may be a
//! proxy-server to which no agent has a tunnel.
//!
//! Names, labels and contents are those of `karmadactl join` ([`objects`]), so that either can take over what the other
//! has created. "Member" is Karmada's word for a cluster, and is used only here.

pub mod api;
mod leave;
pub mod member;
pub mod objects;
mod orphans;
mod pass;
mod pauses;
mod plane;
mod reconciler;
mod standing;
mod wanted;

pub use objects::Member;
pub use reconciler::{Reconciler, check};
pub use standing::{Membership, Memberships, State};
pub use wanted::Wanted;

#[cfg(test)]
mod tests;
