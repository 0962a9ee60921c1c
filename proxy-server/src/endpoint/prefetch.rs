//! Answers requests for documents after a health check, without a request to the agent ([`protocol::prefetch`]).
//!
//! ```text
//! /readyz   --> agent: the client may read /version, /api and /apis, and they are unchanged
//! /version  <-- from the documents that this process stores
//! /api      <--
//! /apis     <--
//! ```
//!
//! The agent decides about each document for the client of the health check. So a document is sent without the agent only on the
//! connection of the health check, once, within [`LIFETIME`](protocol::prefetch::LIFETIME), and only if the request has the same
//! headers as the health check, apart from `accept`. Any other request on the connection ends the permission.
//!
//! Reading order: `expected` (which documents clients request after a health check), `round` (what the agent has decided on a
//! connection), `service` (the phase that answers).

mod expected;
mod round;
mod service;

pub(crate) use expected::Expectations;
pub(super) use round::{Decision, LastCheck, Prefetched, Prefetching, Stores};
pub(super) use service::{Forward, Prefetch, Reply};

#[cfg(test)]
mod tests;
