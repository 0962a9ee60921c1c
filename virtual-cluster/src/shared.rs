//! Objects that virtual clusters share: the host has one object, and each cluster has its own labels and annotations on
//! it.
//!
//! | object | when its spec is written | when it is deleted |
//! |---|---|---|
//! | belongs to the operator | never | never |
//! | used only by the cluster that created it | when that cluster writes it | when that cluster deletes it |
//! | used by several clusters | when all of them have requested the same change | when the last of them deletes it |
//!
//! An object of a cluster becomes the operator's ([`handover`]) once another field manager owns a part of it, or
//! another user has custom resources of such a definition.
//!
//! `view` in `rewrite` defines which labels and annotations a cluster sees. If they are too large for the object on the
//! host, they are stored separately ([`overlays`]).
//!
//! Reading order: [`Rules`], [`HostObject`], [`Agreement`], [`Overlays`].

mod agreement;
mod attached;
pub mod config;
mod definitions;
pub mod handover;
mod instances;
mod kind;
mod merge;
mod object;
mod overlay;
pub mod overlays;
mod pending_change;
mod power;

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::shared::config::SharedObjects;
pub use agreement::Agreement;
pub use attached::Attached;
pub use definitions::{CustomResourceDefinition, Definitions, Hidden, PATH as DEFINITIONS, Revision, Storage};
pub use instances::Instances;
pub use kind::{Kind, NotWritable};
pub use merge::merge;
pub use object::HostObject;
pub use overlay::{Applied, Keys, Overlay, OwnKeys, Stored};
pub use overlays::{LABEL as OVERLAY_LABEL, MAX_IN_PLACE, MAX_OVERLAY, Moved, Overlays};
pub use pending_change::{digest, is_same};
pub use power::objection;

/// What the configuration lets virtual clusters write. Clones share their state.
#[derive(Clone, Debug)]
pub struct Rules(Arc<ArcSwap<SharedObjects>>);

// === impl Rules ===

impl Rules {
    /// As configured.
    pub fn new(configured: &SharedObjects) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(configured.clone())))
    }

    /// Replaces the configuration.
    pub fn exchange(&self, configured: &SharedObjects) {
        self.0.store(Arc::new(configured.clone()));
    }

    /// The current configuration.
    pub fn load(&self) -> Arc<SharedObjects> {
        self.0.load_full()
    }
}
