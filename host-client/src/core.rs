//! The state that requests and the upkeep share.

use std::sync::Arc;

use arc_swap::ArcSwap;
use ops::drain::Tasks;
use tunnel::Budget;

use super::counters::Counters;
use super::upstream::Upstream;

/// What requests use, and the upkeep maintains.
pub(super) struct Core {
    pub(super) upstream: ArcSwap<Upstream>,
    pub(super) budget: Arc<Budget>,
    pub(super) counters: Arc<Counters>,
    pub(super) tasks: Tasks,
}
