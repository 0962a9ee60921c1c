//! What a dependency is used for.

use serde::Deserialize;

/// What a dependency is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Use {
    Normal,
    Build,
    Dev,
}

/// The name that cargo uses. Absent means normal.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Build,
    Dev,
}

// === impl Use ===

impl From<Option<Kind>> for Use {
    fn from(kind: Option<Kind>) -> Self {
        match kind {
            None => Self::Normal,
            Some(Kind::Build) => Self::Build,
            Some(Kind::Dev) => Self::Dev,
        }
    }
}
