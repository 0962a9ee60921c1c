//! The audit log of a virtual cluster: one event for each stage of a request, in the format of kube-apiserver
//! (`audit.k8s.io/v1`), to a file and to a webhook.
//!
//! ```text
//! request --> Audited --(policy)--> event --> queue --> a task --> file, rotated
//!                                         \-> queue --> a task --> webhook, in batches
//! ```
//!
//! A request never waits for a file or a webhook. The queues have a limit, and what does not fit is dropped and counted.
//!
//! What is *not* here: the path of a request, and where the facts about it come from. **Invariant:** this crate sees no body
//! of a request or a response, so a policy that needs bodies is refused.
//!
//! Reading order: [`config`] (the keys), [`policy`] (what is recorded), [`Audited`] (one request), `event` (its JSON),
//! [`Auditor`] (one cluster), `queue` and `budget`, `log`, `webhook`, and [`Auditors`] (all clusters, and reloads).

mod audited;
mod auditor;
mod auditors;
mod budget;
pub mod config;
mod event;
mod log;
mod lost;
mod metrics;
pub mod policy;
mod queue;
mod source_ips;
mod webhook;

pub use audited::{Audited, Received};
pub use auditor::Auditor;
pub use auditors::{Auditors, OpenError, Opened, check};
