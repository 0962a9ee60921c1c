//! The events of a watch (apimachinery's `pkg/watch`).

use crate::status::Status;

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    /// The object was created, or now matches the watch.
    Added,
    /// The object changed.
    Modified,
    /// The object was deleted, or no longer matches the watch.
    Deleted,
    /// Nothing happened. The object has only a resource version (KEP-956).
    Bookmark,
    /// The watch ends. The object is a `Status`.
    Error,
}

/// The JSON frame of an ERROR event, with a newline at the end. It is the last frame of a watch.
pub fn error_event(status: &Status) -> Vec<u8> {
    let mut frame = br#"{"type":"ERROR","object":"#.to_vec();
    frame.extend_from_slice(status.to_json().trim_ascii_end());
    frame.extend_from_slice(b"}\n");
    frame
}

// === impl EventType ===

impl EventType {
    /// Parses the `type` of a frame.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Added, Self::Modified, Self::Deleted, Self::Bookmark, Self::Error]
            .into_iter()
            .find(|event_type| event_type.as_str() == text)
    }

    /// The text in a frame.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
            Self::Bookmark => "BOOKMARK",
            Self::Error => "ERROR",
        }
    }
}
