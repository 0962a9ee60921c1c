//! The status of a proxy-server for its operator: the document behind `/status` and `atoll status`.
//!
//! [`ServerStatus`] is for machines, and has a version like configurations. [`report`] is the
//! same for people. What is *not* here: where the figures come from (`app::standing`), and secrets: the document has only
//! names, counts and dates.

mod document;
mod report;

pub use document::{
    CertificateStatus, ClusterStatus, KIND, LinkStatus, RefusedOfferStatus, RevocationsStatus, ServerStatus,
    TokenStatus, TunnelStatus,
};
pub use report::report;
