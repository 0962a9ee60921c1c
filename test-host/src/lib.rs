//! Hosts in memory, for the tests of other crates. Nothing that ships depends on this crate.
//!
//! - [`Script`] is a host that follows a script: it expects requests in an order, and sends the response of each. A
//!   request that is not expected fails the test, with a message that says what differs.
//! - [`DevHost`] is `dev-apiserver` in the same process. It behaves as an API server does, so a test of a class of
//!   resources needs no script.
//!
//! Both are reached through [`Host`](host_client::Host), with the code that reaches a real host. Only dialling differs.
//!
//! Reading order: [`Script`], [`Expected`], [`Reply`], [`Received`], [`standing`] (what a script answers at any time),
//! [`DevHost`].
#![expect(clippy::unwrap_used, reason = "only tests use this crate")]

mod dev_host;
mod expected;
mod http1;
mod received;
mod reply;
mod script;
pub mod standing;

pub use dev_host::DevHost;
pub use expected::{Expected, expect};
pub use received::Received;
pub use reply::Reply;
pub use script::Script;
