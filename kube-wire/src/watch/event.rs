//! The events of a watch (apimachinery's `pkg/watch`).

use crate::status::Status;

/// What an event says about its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    /// It came, or came into what is watched.
    Added,
    /// It changed.
    Modified,
    /// It went, or went out of what is watched.
    Deleted,
    /// Nothing happened; the object holds a resource version only (KEP-956).
    Bookmark,
    /// The watch is over; the object is a `Status`.
    Error,
}

/// The JSON frame of an ERROR event, with the newline that ends it. It is the last frame of a watch.
pub fn error_event(status: &Status) -> Vec<u8> {
    let mut frame = br#"{"type":"ERROR","object":"#.to_vec();
    frame.extend_from_slice(status.to_json().trim_ascii_end());
    frame.extend_from_slice(b"}\n");
    frame
}

// === impl EventType ===

impl EventType {
    /// Recognises the `type` of a frame.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Added, Self::Modified, Self::Deleted, Self::Bookmark, Self::Error]
            .into_iter()
            .find(|event_type| event_type.as_str() == text)
    }

    /// As it stands in a frame.
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
