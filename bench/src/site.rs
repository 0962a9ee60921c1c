//! What a measurement needs besides itself: a real host cluster, both halves of Atoll, and clients of them.
//!
//! Reading order: [`host`] (a Kubernetes of `tests/kube/up`), [`halves`] (proxy-server and agent), [`member`] (requests to
//! either), [`etcd`] (writes that bypass the API server).

mod etcd;
mod halves;
mod host;
mod member;

pub(crate) use etcd::Etcd;
pub(crate) use halves::{Ready, Site};
pub(crate) use host::Host;
pub(crate) use member::{JSON, MERGE_PATCH, Member, excerpt};
