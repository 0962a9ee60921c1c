//! An object of the host, and the frames that show it.

use std::ops::Range;

use bytes::Bytes;
use hub::{Change, Key, Labels, NewObject, Object, Place, Shown};
use kube_wire::watch::EventType;
use rewrite::facts::Facts;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::collection::Collection;

/// The approximate number of bytes that a body takes from the hub at a time.
pub(crate) const BATCH: usize = 64 * 1024;

/// The end of a frame.
const END: Bytes = Bytes::from_static(b"}\n");

/// An object, in the frame of a watch event that ends with a line feed. All watches share the bytes of the frame. If a watch
/// needs the same event type, it sends the frame unchanged.
#[derive(Debug)]
pub(crate) struct Stored {
    frame: Bytes,
    event: EventType,
    /// The position of the object.
    object: Range<usize>,
    /// The position of the version in the frame, without its quotes.
    version_at: Range<usize>,
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
    /// The object for the hub. `event` and `object` are its type and its position in the frame.
    pub(crate) fn object(
        frame: Bytes,
        event: EventType,
        object: Range<usize>,
        facts: &Facts<'_>,
        place: Place,
    ) -> Result<NewObject<Self>, StoreError> {
        let version = facts
            .resource_version
            .parse()
            .map_err(|_| StoreError::Version { version: facts.resource_version.clone().into_owned() })?;
        let Range { start, end } = facts.resource_version_at;
        let version_at = object.start + start..object.start + end;
        Ok(NewObject {
            key: Key { namespace: (*facts.namespace).into(), name: (*facts.name).into() },
            version,
            labels: Labels::new(facts.labels.iter().map(|label| (&*label.key, &*label.value)))?,
            place,
            size: frame.len(),
            data: Self { frame, event, object, version_at },
        })
    }

    /// The frame of an initial event, in pieces.
    pub(crate) fn initial(object: &Object<Self>) -> Vec<Bytes> {
        object.data.shown_as(EventType::Added)
    }

    /// The frame of an event, in pieces.
    pub(crate) fn frame(change: &Change<Self>) -> Vec<Bytes> {
        let stored = &change.object().data;
        match change.shown() {
            Shown::Added => stored.shown_as(EventType::Added),
            Shown::Modified => stored.shown_as(EventType::Modified),
            Shown::Deleted => stored.shown_as(EventType::Deleted),
            // The former object, with the version of the event (`convertToWatchEvent` in `cache_watcher.go`).
            Shown::DeletedAsBefore => {
                let (frame, at) = (&stored.frame, &stored.version_at);
                let before = frame.slice(stored.object.start..at.start);
                let after = frame.slice(at.end..stored.object.end);
                vec![head(EventType::Deleted), before, change.version().to_string().into(), after, END]
            }
        }
    }

    /// The item of a list of a built-in kind, in pieces, without its [`type_meta`].
    pub(crate) fn item(object: &Object<Self>, type_meta: &str) -> Vec<Bytes> {
        let stored = &object.data;
        let item = stored.frame.slice(stored.object.clone());
        if !item.starts_with(type_meta.as_bytes()) {
            return vec![item];
        }
        vec![Bytes::from_static(b"{"), item.slice(type_meta.len()..)]
    }

    fn shown_as(&self, event: EventType) -> Vec<Bytes> {
        if event == self.event {
            return vec![self.frame.clone()];
        }
        vec![head(event), self.frame.slice(self.object.clone()), END]
    }
}

/// The start of a frame.
fn head(event: EventType) -> Bytes {
    Bytes::from(format!(r#"{{"type":"{}","object":"#, event.as_str()))
}

/// The `kind` and `apiVersion` with which the host begins an object in a watch event. The items of a list of a built-in kind do
/// not have them.
pub(crate) fn type_meta(collection: &Collection) -> String {
    let Collection { kind, api_version, .. } = collection;
    format!(r#"{{"kind":"{kind}","apiVersion":"{api_version}","#)
}

/// An item of a list, as the frame of an initial event. Adds `kind` and `apiVersion`, which items of built-in kinds do not have.
pub(crate) fn initial_frame(item: &RawValue, collection: &Collection) -> Bytes {
    #[derive(serde::Deserialize)]
    struct Typed {
        kind: Option<IgnoredAny>,
    }
    let item = item.get();
    let has_kind = serde_json::from_str(item).is_ok_and(|typed: Typed| typed.kind.is_some());
    let head = head(EventType::Added);
    // An object has a name, so a member follows.
    let members = item.strip_prefix('{').filter(|_| !has_kind);
    let Some(members) = members else { return [&head, item.as_bytes(), &END].concat().into() };
    [&head, type_meta(collection).as_bytes(), members.as_bytes(), &END].concat().into()
}
