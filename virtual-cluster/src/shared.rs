//! Objects that virtual clusters share: the host has one object, and each cluster has its own labels and annotations on
//! it.
//!
//! | object | spec is written | is deleted |
//! |---|---|---|
//! | the operator's | never | never |
//! | made by a cluster, which has it alone | by that cluster | with that cluster's delete |
//! | had by several clusters | when all of them have asked for the same | with the last one's delete |
//!
//! An object of a cluster becomes the operator's ([`handover`]) once anybody else manages a part of it, or has custom
//! resources of such a definition.
//!
//! `view` in `rewrite` says how labels and annotations are shown. Those that are too large for the host's object are
//! stored beside it ([`overlays`]).
//!
//! Reading order: [`Rules`], [`HostObject`], [`Agreement`], [`Overlays`].

mod agreement;
pub mod config;
mod definitions;
pub mod handover;
mod instances;
mod kind;
mod merge;
mod object;
pub mod overlays;
mod pending_change;
mod power;

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::shared::config::SharedObjects;
pub use agreement::Agreement;
pub use definitions::{Definitions, Hidden, PATH as DEFINITIONS};
pub use instances::Instances;
pub use kind::{Kind, NotWritable};
pub use merge::merge;
pub use object::{Applied, HostObject, Overlay, Stored};
pub use overlays::{MAX_IN_PLACE, MAX_OVERLAY, Moved, Overlays};
pub use pending_change::{digest, is_same};
pub use power::objection;

/// What the configuration lets virtual clusters write. Clones are the same.
#[derive(Clone, Debug)]
pub struct Rules(Arc<ArcSwap<SharedObjects>>);

// === impl Rules ===

impl Rules {
    /// As configured.
    pub fn new(configured: &SharedObjects) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(configured.clone())))
    }

    /// From now on, these.
    pub fn exchange(&self, configured: &SharedObjects) {
        self.0.store(Arc::new(configured.clone()));
    }

    /// As they are now.
    pub fn load(&self) -> Arc<SharedObjects> {
        self.0.load_full()
    }
}
