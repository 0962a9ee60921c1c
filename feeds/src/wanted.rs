//! The versions from which watches want to continue when a feed opens.

use std::sync::{Mutex, MutexGuard, PoisonError};

use hub::ResourceVersion;

/// The versions from which watches want to continue, and what follows from them.
#[derive(Debug, Default)]
pub(crate) struct Wanted(Mutex<Versions>);

#[derive(Debug, Default)]
struct Versions {
    oldest: Option<ResourceVersion>,
    first_state: ResourceVersion,
}

// === impl Wanted ===

impl Wanted {
    /// A watch wants to continue from this version. Has an effect only before the first list.
    pub(crate) fn add(&self, version: ResourceVersion) {
        let mut versions = self.lock();
        versions.oldest = Some(versions.oldest.map_or(version, |oldest| oldest.min(version)));
    }

    /// The oldest version from which a watch wants to continue.
    pub(crate) fn oldest(&self) -> Option<ResourceVersion> {
        self.lock().oldest
    }

    /// The first list is of an older version. States are served from this version on, which the host has told.
    pub(crate) fn set_first_state(&self, version: ResourceVersion) {
        self.lock().first_state = version;
    }

    /// The version of the first state that may be served.
    pub(crate) fn first_state(&self) -> ResourceVersion {
        self.lock().first_state
    }

    fn lock(&self) -> MutexGuard<'_, Versions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
