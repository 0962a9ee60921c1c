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
//! `view` in `rewrite` says how labels and annotations are shown. Those that are too large for the host's object are stored
//! beside it ([`overlays`]).
//!
//! Reading order: [`Rules`], [`HostObject`], [`Consent`], [`Overlays`].

mod advertised;
mod consent;
mod definitions;
pub(crate) mod handover;
mod instances;
mod kind;
mod merge;
mod object;
pub(crate) mod overlays;
mod power;
mod wish;

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::config::SharedObjects;
pub(crate) use advertised::{Document, Hidden};
pub(crate) use consent::Consent;
pub(crate) use definitions::{Definitions, PATH as DEFINITIONS};
pub(crate) use instances::Instances;
pub(crate) use kind::Kind;
pub(crate) use merge::merge;
pub(crate) use object::HostObject;
pub(crate) use overlays::{MAX_IN_PLACE, MAX_OVERLAY, Moved, Overlays};
pub(crate) use power::objection;
pub(crate) use wish::{digest, is_same};

/// What the configuration lets virtual clusters write. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Rules(Arc<ArcSwap<SharedObjects>>);

// === impl Rules ===

impl Rules {
    pub(crate) fn new(configured: &SharedObjects) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(configured.clone())))
    }

    /// From now on, these.
    pub(crate) fn exchange(&self, configured: &SharedObjects) {
        self.0.store(Arc::new(configured.clone()));
    }

    /// As they are now.
    pub(crate) fn load(&self) -> Arc<SharedObjects> {
        self.0.load_full()
    }
}
