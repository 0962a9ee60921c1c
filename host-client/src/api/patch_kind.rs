//! How a patch is written.

/// The type of a patch (`apimachinery/pkg/types/patch.go`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    /// JSON merge patch (RFC 7396).
    Merge,
    /// JSON patch (RFC 6902).
    Json,
    /// Strategic merge patch of Kubernetes, for built-in kinds.
    Strategic,
    /// Server-side apply. The query must have a `fieldManager`.
    Apply,
}

// === impl PatchKind ===

impl PatchKind {
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Merge => "application/merge-patch+json",
            Self::Json => "application/json-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
            // JSON is YAML. The media type for JSON is newer than the oldest supported host (1.26).
            Self::Apply => "application/apply-patch+yaml",
        }
    }
}
