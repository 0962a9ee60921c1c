//! Virtual clusters as members of a Karmada control plane, without `karmadactl join`.
//!
//! ```text
//! keeper      what the configuration wants, one task for each cluster
//!   pass      one look at everything that a member consists of, and what is missing made
//!     member  in the virtual cluster: accounts, tokens, rights      over the tunnel, as any client: api::Tunnelled
//!     plane   in Karmada: Secrets and the Cluster                   over TLS, by a kubeconfig:      api::Direct
//!   leave     the way back
//! ```
//!
//! Everything is level-driven and written so that it may be written twice: several proxy-servers with one configuration
//! write the same bytes (server-side apply by one field manager), so there is no leader. A lease would be worse: its
//! holder may be the one to which no agent has a tunnel just now.
//!
//! Names, labels and contents are those of `karmadactl join` ([`objects`]), so each can take over what the other made.
//! "Member" is Karmada's word for a cluster, and used only here.

pub mod api;
mod backoff;
mod keeper;
mod leave;
pub mod member;
pub mod objects;
mod pass;
mod plane;
mod standing;
mod strays;
mod wanted;

pub use keeper::{Keeper, check};
pub use objects::Member;
pub use standing::{Membership, Memberships, State};
pub use wanted::Wanted;

#[cfg(test)]
mod tests;
