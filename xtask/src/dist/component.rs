//! A part of the programs.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// A library or a program of ours.
#[derive(Clone, Debug)]
pub(crate) struct Component {
    pub(crate) name: String,
    pub(crate) version: String,
    /// An SPDX expression, if it is known.
    pub(crate) license: Option<String>,
    /// The package URL (<https://github.com/package-url/purl-spec>). None for our own crates.
    pub(crate) purl: Option<String>,
    /// The SHA-256 checksum of its source, if it is known.
    pub(crate) checksum: Option<String>,
    /// A directory with its licence.
    pub(crate) folder: Option<PathBuf>,
    /// The components that it uses.
    pub(crate) uses: BTreeSet<usize>,
}

// === impl Component ===

impl Component {
    pub(crate) fn is_ours(&self) -> bool {
        self.purl.is_none()
    }
}
