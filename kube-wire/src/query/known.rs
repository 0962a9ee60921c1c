//! The parameters of a list, and which of them must not be repeated.

use super::QueryError;

/// The keys of `ListOptions`.
#[derive(Clone, Copy)]
pub(super) enum Known {
    Watch,
    LabelSelector,
    FieldSelector,
    ShardSelector,
    Continue,
    ResourceVersion,
    ResourceVersionMatch,
    AllowWatchBookmarks,
    SendInitialEvents,
}

/// Which keys have occurred.
#[derive(Default)]
pub(super) struct Seen(u16);

// === impl Known ===

impl Known {
    /// Recognises a decoded key.
    pub(super) fn parse(key: &str) -> Option<Self> {
        Some(match key {
            "watch" => Self::Watch,
            "labelSelector" => Self::LabelSelector,
            "fieldSelector" => Self::FieldSelector,
            "shardSelector" => Self::ShardSelector,
            "continue" => Self::Continue,
            "resourceVersion" => Self::ResourceVersion,
            "resourceVersionMatch" => Self::ResourceVersionMatch,
            "allowWatchBookmarks" => Self::AllowWatchBookmarks,
            "sendInitialEvents" => Self::SendInitialEvents,
            _ => return None,
        })
    }

    /// The spelling of the key.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Watch => "watch",
            Self::LabelSelector => "labelSelector",
            Self::FieldSelector => "fieldSelector",
            Self::ShardSelector => "shardSelector",
            Self::Continue => "continue",
            Self::ResourceVersion => "resourceVersion",
            Self::ResourceVersionMatch => "resourceVersionMatch",
            Self::AllowWatchBookmarks => "allowWatchBookmarks",
            Self::SendInitialEvents => "sendInitialEvents",
        }
    }

    /// Whether the key determines which objects a caller sees, so that two readers must never use different values of it.
    fn decides(self) -> bool {
        matches!(self, Self::Watch | Self::LabelSelector | Self::FieldSelector | Self::ShardSelector | Self::Continue)
    }
}

// === impl Seen ===

impl Seen {
    /// Whether this is the first occurrence of its key. A second one can be an error.
    pub(super) fn first(&mut self, known: Known) -> Result<bool, QueryError> {
        let bit = 1 << known as u16;
        let first = self.0 & bit == 0;
        self.0 |= bit;
        if !first && known.decides() {
            return Err(QueryError::Repeated { key: known.key() });
        }
        Ok(first)
    }
}
