//! The contract between proxy-server and proxy-agent, without any I/O.
//!
//! An agent dials the proxy-server over TLS 1.3 and sends one HTTP/1.1 upgrade request whose body is a
//! [`Registration`]. The response is `101` with an [`Acceptance`] in a header, or a [`Refusal`]. Then the roles are
//! reversed (RFC 9113 assigns no role to the side that dialled): the proxy-server is the HTTP/2 client, the agent is the
//! server, and each API request is one stream.
//!
//! What is *not* here: sockets, TLS, clocks, and the HTTP/2 implementation. They are in `tunnel` and the binaries.
//!
//! Reading order: [`version`], [`name`], [`registration`], [`upgrade`] (the first exchange), [`stream`] (the kinds
//! of streams), [`destination`] (where bytes may go), [`identity`] (the caller), [`audit`] (facts for an audit log), [`audit_id`]
//! (a short form of the host's audit ID), [`fault`] (why a stream failed), [`encoding`] and [`blocks`] (how bodies are
//! compressed), [`digest`] (bodies that are not sent again), [`prefetch`] (requests that are not sent), [`field_table`] and
//! [`numbers`] (long header fields and targets that recur), [`detached`] (copies of headers), [`sampled`] (traces), [`offers`] (changes while a tunnel is up),
//! [`settings`] (HTTP/2 settings on which both sides must agree). [`enrolment`] and [`user_certificate`] are requests of their
//! own, without a tunnel.

pub mod audit;
pub mod audit_id;
pub mod authority;
pub mod blocks;
pub mod destination;
pub mod detached;
pub mod digest;
pub mod encoding;
pub mod enrolment;
pub mod fault;
pub mod field_table;
pub mod identity;
pub mod json_body;
pub mod member;
pub mod name;
pub mod numbers;
pub mod offers;
pub mod prefetch;
pub mod registration;
pub mod sampled;
pub mod settings;
pub mod stream;
pub mod upgrade;
pub mod user_certificate;
pub mod version;

pub use authority::Authority;
pub use destination::{Destination, InvalidDestination};
pub use encoding::Encoding;
pub use fault::{Fault, NotConnected};
pub use identity::Identity;
pub use json_body::JsonBody;
pub use member::MemberSettings;
pub use name::{AgentId, ClusterName};
pub use offers::{RefusedClusters, Verdict};
pub use registration::{Acceptance, Offer, Refusal, RefusalReason, Registration};
pub use version::ProtocolVersion;
