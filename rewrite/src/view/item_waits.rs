//! Items of lists whose namespace is not known yet.
//!
//! The index of namespaces can be behind the state of the host that a list shows. An item that is left out for this reason
//! would be missing in the cache of a client for ever, because no event about it follows. So it waits until its namespace is
//! known, and so does everything after it.

use std::collections::HashSet;
use std::sync::Arc;

use super::settings::Settings;
use crate::Mapping;
use crate::mapping::UnknownNames;

/// The names of the cluster's namespaces on the host.
pub type ExistingNamespaces = HashSet<Box<[u8]>>;

/// Decides which items wait. By default, none does.
#[derive(Debug, Default)]
pub(super) struct ItemWaits {
    unknown: UnknownNames,
    /// The names to wait for, once they are known: no other namespace exists.
    existing: Option<Arc<ExistingNamespaces>>,
    /// The name for which an item waits now.
    awaited: Option<Box<[u8]>>,
}

// === impl ItemWaits ===

impl ItemWaits {
    /// Lets items wait.
    pub(super) fn begin(&mut self, view: &mut Settings) {
        self.unknown = UnknownNames::collecting_hiding();
        view.mapping.namespaces.unknown = self.unknown.clone();
    }

    /// Whether an item that was left out must wait.
    pub(super) fn must_wait(&mut self) -> bool {
        let name = self.unknown.take_hiding();
        self.awaited = name.filter(|name| self.existing.as_ref().is_none_or(|existing| existing.contains(name)));
        self.awaited.is_some()
    }

    /// An item was not left out.
    pub(super) fn forget(&self) {
        self.unknown.take_hiding();
    }

    /// The name of the namespace for which an item waits.
    pub(super) fn awaited(&self) -> Option<&[u8]> {
        self.awaited.as_deref()
    }

    /// Only these namespaces exist.
    pub(super) fn limit(&mut self, existing: Arc<ExistingNamespaces>) {
        self.existing = Some(existing);
        self.awaited = None;
    }

    /// Uses newer names.
    pub(super) fn remap(&mut self, view: &mut Settings, newer: Mapping) {
        view.mapping = view.mapping.clone().renewed(newer);
        self.awaited = None;
    }
}
