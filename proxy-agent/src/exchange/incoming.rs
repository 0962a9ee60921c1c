//! A request on its way through the first phases.

use std::sync::Arc;

use ::tunnel::{Inbound, Reservation};
use http::{HeaderMap, Method, Uri};

use crate::exchange::commitment::Commitment;
use crate::exchange::record::Record;
use crate::exchange::services::Services;
use virtual_cluster::clusters::VirtualCluster;

/// A request as the client has sent it.
pub(super) struct Incoming<'a> {
    pub(super) services: &'a Services,
    pub(super) cluster: &'a Arc<VirtualCluster>,
    pub(super) method: &'a Method,
    pub(super) uri: &'a Uri,
    pub(super) headers: HeaderMap,
    pub(super) body: Inbound,
    /// Whether it switches protocols.
    pub(super) is_upgrade: bool,
    /// Whether a reset by the client ends the request.
    pub(super) commitment: &'a Commitment,
    pub(super) record: &'a mut Record,
}

/// What a request holds from the phase `limits` on.
pub(super) struct RequestGuards {
    pub(super) in_flight: Reservation,
    /// The charge for a long head.
    pub(super) _charge: Option<Reservation>,
}

/// A request in the phases after `limits`: `C` is what is known about it, and `B` its body.
pub(super) struct Admitted<'a, C, B> {
    pub(super) call: C,
    pub(super) body: B,
    pub(super) commitment: &'a Commitment,
    pub(super) record: &'a mut Record,
    pub(super) held: RequestGuards,
}
