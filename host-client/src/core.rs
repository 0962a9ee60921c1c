//! The state that requests and the upkeep share.

use std::sync::Arc;

use arc_swap::ArcSwap;
use ops::drain::Tasks;
use tunnel::Budget;

use super::access::Access;
use super::counters::Counters;

/// What requests use, and the upkeep maintains.
pub(super) struct Core {
    pub(super) access: ArcSwap<Access>,
    pub(super) budget: Arc<Budget>,
    pub(super) counters: Arc<Counters>,
    pub(super) tasks: Tasks,
}
