//! The keys of a struct.

/// Keys of a document that belong to no type: `parse` has read them already.
const HEADER: [&str; 2] = ["apiVersion", "kind"];

/// The keys that a struct knows.
#[derive(Clone, Copy)]
pub(super) struct Keys {
    pub(super) fields: &'static [&'static str],
    /// Whether this is the document itself, which has the two header keys besides its own.
    pub(super) root: bool,
}

// === impl Keys ===

impl Keys {
    /// Whether the struct itself reads this key.
    pub(super) fn know(&self, key: &str) -> bool {
        self.fields.contains(&key)
    }

    /// Whether the key belongs to the document and not to the struct.
    pub(super) fn pass_over(&self, key: &str) -> bool {
        self.root && HEADER.contains(&key)
    }
}
