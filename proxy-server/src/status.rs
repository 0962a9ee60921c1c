//! The status of a proxy-server for its operator: the document behind `/status` and `atoll status`.
//!
//! [`ServerStatus`] is for machines, and has a version like configurations. [`text`] is the same
//! for people. What is *not* here: where the figures come from (`app::standing`), and secrets: the document has only
//! names, counts and dates.

mod document;
mod text;

pub use document::{CertificateStatus, ClusterStatus, KIND, ServerStatus, TunnelStatus};
pub use text::text;
