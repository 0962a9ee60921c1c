//! HTTP/2 streams of a tunnel: as bodies, as byte pipes, and under one memory budget.
//!
//! This crate uses `h2` directly and not through a client library, because it must control the HTTP/2 settings
//! ([`protocol::settings`]) and the time at which a frame is read. What is *not* here: dialling, TLS, registration, routing,
//! Kubernetes. This crate spawns no tasks.
//!
//! Reading order: [`settings`] (both ends' builders), [`batched`] (what they write to), [`budget`], [`owner`] and
//! [`inbound`] (receiving), [`outbound`] (sending), [`pipe`] (both, for layer 4 and upgrades), [`keepalive`] (a dead
//! peer), [`link`] (how fast the network is), [`metered`] (how many bytes it carries), [`encoded`] (compressed bodies), [`fair`]
//! (what clusters share).

pub mod batched;
pub mod budget;
pub mod encoded;
pub mod fair;
pub mod inbound;
pub mod keepalive;
pub mod link;
pub mod metered;
pub mod outbound;
pub mod owner;
pub mod pipe;
pub mod settings;
mod slot;

pub use batched::{Batched, Turns};
pub use budget::Budget;
pub use fair::{FairBudget, Reservation, Share};
pub use inbound::Inbound;
pub use link::{Compression, Link};
pub use metered::Metered;
pub use outbound::Outbound;
pub use owner::Owner;
