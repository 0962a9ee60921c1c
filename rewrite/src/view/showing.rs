//! How a watch shows events.

use super::filter::Filter;
use super::settings::Settings;
use crate::Program;
use crate::same::Same;

/// How a watch shows events: what it hides, and how it maps the rest. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Showing {
    pub(super) settings: Settings,
    pub(super) program: Program,
    pub(super) filter: Filter,
}

// === impl Showing ===

impl Showing {
    /// Whether both have the same indexes of the host's namespaces.
    #[must_use]
    pub fn has_namespaces_of(&self, other: &Self) -> bool {
        self.settings.mapping.namespaces.has_index_of(&other.settings.mapping.namespaces)
    }
}

/// Two watches with the same value show each JSON event as the same bytes.
impl Same for Showing {
    fn is_same(&self, other: &Self) -> bool {
        let Self { settings, program, filter } = self;
        *filter == other.filter && program.is_same(&other.program) && settings.is_same(&other.settings)
    }
}
