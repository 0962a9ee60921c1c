//! The contract between proxy-server and proxy-agent, without any I/O.
//!
//! An agent dials the proxy-server over TLS 1.3 and sends one HTTP/1.1 upgrade request whose body is a
//! [`Registration`]. The answer is `101` with an [`Acceptance`] in a header, or a [`Refusal`]. Then the roles turn
//! (RFC 9113 gives no role to the side that dialled): the proxy-server speaks HTTP/2 as the client, the agent as
//! the server, and one API request is one stream.
//!
//! What is *not* here: sockets, TLS, clocks, the HTTP/2 implementation. Those are in `tunnel` and the binaries.
//!
//! Reading order: [`version`], [`name`], [`registration`], [`upgrade`] (the first exchange), [`stream`] (what a stream
//! asks for), [`identity`] (who asks), [`offers`] (what changes while a tunnel is up), [`settings`] (HTTP/2 numbers both
//! sides must agree on).

pub mod authority;
pub mod identity;
pub mod name;
pub mod offers;
pub mod registration;
pub mod settings;
pub mod stream;
pub mod upgrade;
pub mod version;

pub use authority::Authority;
pub use identity::Identity;
pub use name::{AgentId, ClusterName};
pub use registration::{Acceptance, Offer, Refusal, RefusalReason, Registration};
pub use version::ProtocolVersion;
