//! An object of the host, and the frames that show it.

use bytes::Bytes;
use hub::{Change, Key, Labels, NewObject, Object, Place, Shown};
use rewrite::facts::Facts;

/// The end of a frame.
const END: Bytes = Bytes::from_static(b"}\n");

/// An object, as the host has written it in a frame of a watch. Its bytes are shared by all watches.
#[derive(Debug)]
pub(crate) struct Stored {
    json: Bytes,
    /// The position of the version, without its quotes.
    version_at: std::ops::Range<usize>,
}

/// The host's object cannot be stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StoreError {
    /// The version is not a number.
    #[error("the resourceVersion {version:?} is not a number")]
    Version {
        /// The version.
        version: String,
    },
    /// A label is invalid.
    #[error(transparent)]
    Labels(#[from] hub::InvalidLabels),
}

// === impl Stored ===

impl Stored {
    /// The object for the hub.
    pub(crate) fn object(json: Bytes, facts: &Facts<'_>, place: Place) -> Result<NewObject<Self>, StoreError> {
        let version = facts
            .resource_version
            .parse()
            .map_err(|_| StoreError::Version { version: facts.resource_version.clone().into_owned() })?;
        Ok(NewObject {
            key: Key { namespace: (*facts.namespace).into(), name: (*facts.name).into() },
            version,
            labels: Labels::new(facts.labels.iter().map(|label| (&*label.key, &*label.value)))?,
            place,
            size: json.len(),
            data: Self { json, version_at: facts.resource_version_at.clone() },
        })
    }

    /// The frame of an initial event.
    pub(crate) fn initial(object: &Object<Self>) -> [Bytes; 3] {
        [Bytes::from_static(br#"{"type":"ADDED","object":"#), object.data.json.clone(), END]
    }

    /// The frame of an event, in pieces.
    pub(crate) fn frame(change: &Change<Self>) -> Vec<Bytes> {
        let head: &[u8] = match change.shown() {
            Shown::Added => br#"{"type":"ADDED","object":"#,
            Shown::Modified => br#"{"type":"MODIFIED","object":"#,
            Shown::Deleted | Shown::DeletedAsBefore => br#"{"type":"DELETED","object":"#,
        };
        let head = Bytes::from_static(head);
        let Self { json, version_at } = &change.object().data;
        if change.shown() != Shown::DeletedAsBefore {
            return vec![head, json.clone(), END];
        }
        // The former object, with the version of the event (`convertToWatchEvent` in `cache_watcher.go`).
        let version = change.version().to_string().into();
        vec![head, json.slice(..version_at.start), version, json.slice(version_at.end..), END]
    }
}
