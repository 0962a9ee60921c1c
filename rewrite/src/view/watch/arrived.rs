//! What a watch reports to its caller about the frames of a chunk.

use std::collections::HashSet;

use bytes::Bytes;

use crate::Mapping;
use crate::mapping::UnknownNames;

/// What a chunk of a watch contained, besides events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrived {
    /// The bookmarks of the host, in their order. The client gets them too.
    pub bookmarks: Vec<Bookmark>,
    /// Namespaces of the host that the mapping does not know, in a frame that waits. If it is empty, no frame waits.
    pub unknown: Vec<Box<[u8]>>,
    /// Whether a frame contained names that the mapping does not know, even if the frame does not wait for
    /// them.
    pub has_unknown: bool,
    /// The one of `unknown` that decides whether the client sees the event.
    pub hiding: Option<Box<[u8]>>,
}

/// An event of the host that contains only a resource version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bookmark {
    /// Its resource version, as the host writes it. Empty if there is none.
    pub resource_version: Bytes,
    /// Whether the state, with which the watch began, is complete (KEP-3157).
    pub ends_initial_events: bool,
}

/// Decides which frames wait.
#[derive(Debug)]
pub(in crate::view) struct FrameWaits {
    unknown: UnknownNames,
    /// Names for which the caller has given up.
    unresolved: HashSet<Box<[u8]>>,
    /// The names for which a frame waits now.
    awaited: Vec<Box<[u8]>>,
    /// Whether that frame waits no longer.
    has_given_up: bool,
}

/// The maximum number of names that a watch remembers, because nothing else limits how many names its events contain.
const MAX_UNRESOLVED: usize = 256;

// === impl FrameWaits ===

impl Default for FrameWaits {
    fn default() -> Self {
        let unknown = UnknownNames::collecting();
        Self { unknown, unresolved: HashSet::new(), awaited: Vec::new(), has_given_up: false }
    }
}

impl FrameWaits {
    /// The same mapping, in a watch.
    pub(in crate::view) fn collecting(&self, mut mapping: Mapping) -> Mapping {
        mapping.namespaces.unknown = self.unknown.clone();
        mapping
    }

    /// A frame begins.
    pub(in crate::view) fn begin(&mut self) {
        self.unknown.clear();
    }

    /// Whether the current frame must wait, and for which names.
    pub(in crate::view) fn must_wait(&mut self, arrived: &mut Arrived) -> bool {
        let (awaited, hiding) = self.unknown.take();
        arrived.has_unknown |= !awaited.is_empty();
        self.awaited = awaited;
        if std::mem::take(&mut self.has_given_up) {
            self.awaited.clear();
        }
        self.awaited.retain(|name| !self.unresolved.contains(name));
        arrived.unknown.clone_from(&self.awaited);
        arrived.hiding = hiding.filter(|name| self.awaited.contains(name));
        !self.awaited.is_empty()
    }

    /// Does not wait for these names any more.
    pub(in crate::view) fn give_up(&mut self) {
        self.has_given_up = true;
        let room = MAX_UNRESOLVED.saturating_sub(self.unresolved.len());
        self.unresolved.extend(self.awaited.drain(..).take(room));
    }
}

#[cfg(test)]
mod tests;
