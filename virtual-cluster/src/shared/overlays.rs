//! Overlays that are too large for an annotation.
//!
//! The annotations of an object are limited to 256 KiB in total, which the operator and all virtual clusters share. So
//! a large overlay is a ConfigMap in the root namespace of its virtual cluster, and the annotation is a [pointer](rewrite::pointer) to
//! it. Such a ConfigMap never changes. A new overlay is a new ConfigMap, so a write to the object switches to it
//! atomically.
//!
//! The write that replaces a pointer deletes its ConfigMap; if this fails, [`orphans`] does.

pub mod orphans;

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use rewrite::pointer::StoredId;
use rewrite::{ClusterName, HostNamespace};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::overlay::Overlay;
use host_client::api::ApiError;
use host_client::api::HostApi;

/// The maximum length of an overlay in an annotation, in bytes: 500 virtual clusters then need half of the limit.
pub const MAX_IN_PLACE: usize = 256;

/// The maximum length of an overlay, in bytes. Labels and annotations of one object are rarely longer than 256 KiB, and
/// a ConfigMap has room for them and the keys that each manager applies (`MaxSecretSize` in core/validation).
pub const MAX_OVERLAY: usize = 512 * 1024;

/// The label of the ConfigMaps.
pub const LABEL: &str = "atoll.dev/overlay";
/// The annotation with the path of the overlay's object.
const OF: &str = "atoll.dev/overlay-of";
/// The member of `data`.
const DATA: &str = "overlay";

/// The maximum bytes of cached overlays, so that not every read of an object needs a second read.
const MAX_CACHED: usize = 16 * 1024 * 1024;

/// The cache of recently read or written overlays.
#[derive(Debug, Default)]
pub struct Overlays {
    cache: Mutex<Cache>,
}

/// The key of a cached overlay.
type Key = (String, StoredId);

#[derive(Debug, Default)]
struct Cache {
    shown: HashMap<Key, Bytes>,
    /// The keys, oldest first.
    order: VecDeque<Key>,
    size: usize,
}

/// How a successful write moves an overlay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// The new place. If the write fails, it is not needed.
    pub to: Option<StoredId>,
    /// The previous place, which is no longer used.
    pub from: Option<StoredId>,
}

// === impl Overlays ===

impl Overlays {
    /// An overlay as the value of an annotation in JSON, with its quotes.
    pub async fn shown(&self, api: &impl HostApi, cluster: &ClusterName, id: &StoredId) -> Result<Bytes, ApiError> {
        let key = (cluster.as_str().to_owned(), id.clone());
        if let Some(shown) = self.lock().shown.get(&key) {
            return Ok(shown.clone());
        }
        let overlay = read(api, cluster, id).await?;
        let shown = shown(&overlay.unwrap_or_default());
        self.lock().keep(key, shown.clone());
        Ok(shown)
    }

    /// Stores an overlay of the object at `path`.
    pub async fn store(
        &self,
        api: &impl HostApi,
        cluster: &ClusterName,
        path: &str,
        overlay: &Overlay,
    ) -> Result<StoredId, ApiError> {
        let id = StoredId::new(fastrand::u128(..));
        api.create(&collection(cluster), &config_map(cluster, &id, path, overlay)).await?;
        self.lock().keep((cluster.as_str().to_owned(), id.clone()), shown(overlay));
        Ok(id)
    }

    /// An identifier for the response to a dry run. Nothing is stored.
    pub fn try_out(&self, cluster: &ClusterName, overlay: &Overlay) -> StoredId {
        let id = StoredId::new(fastrand::u128(..));
        self.lock().keep((cluster.as_str().to_owned(), id.clone()), shown(overlay));
        id
    }

    fn lock(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Cache ===

impl Cache {
    fn keep(&mut self, key: Key, shown: Bytes) {
        self.size += shown.len();
        if let Some(before) = self.shown.insert(key.clone(), shown) {
            self.size -= before.len();
        } else {
            self.order.push_back(key);
        }
        while self.size > MAX_CACHED
            && let Some(oldest) = self.order.pop_front()
        {
            self.size -= self.shown.remove(&oldest).map_or(0, |shown| shown.len());
        }
    }
}

/// A stored overlay; `None` if it is deleted. A watch may deliver an older state of an object.
pub async fn read(api: &impl HostApi, cluster: &ClusterName, id: &StoredId) -> Result<Option<Overlay>, ApiError> {
    match api.get(&path(cluster, id)).await {
        Ok(found) => Ok(found["data"][DATA].as_str().and_then(|text| serde_json::from_str(text).ok())),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Deletes a stored overlay.
pub async fn remove(api: &impl HostApi, cluster: &ClusterName, id: &StoredId) -> Result<(), ApiError> {
    match api.delete::<IgnoredAny>(&path(cluster, id), &json!({})).await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

fn collection(cluster: &ClusterName) -> String {
    format!("/api/v1/namespaces/{}/configmaps", HostNamespace::root(cluster))
}

fn path(cluster: &ClusterName, id: &StoredId) -> String {
    format!("{}/{}", collection(cluster), name(id))
}

fn name(id: &StoredId) -> String {
    format!("overlay-{id}")
}

fn config_map(cluster: &ClusterName, id: &StoredId, path: &str, overlay: &Overlay) -> Value {
    let namespace = HostNamespace::root(cluster);
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "immutable": true,
        "metadata": {
            "name": name(id), "namespace": namespace.as_str(), "labels": {LABEL: ""}, "annotations": {OF: path},
        },
        "data": {DATA: overlay.text()},
    })
}

/// The part of an overlay that a view reads.
fn shown(overlay: &Overlay) -> Bytes {
    let Overlay { labels, annotations, .. } = overlay;
    let shown = Overlay { labels: labels.clone(), annotations: annotations.clone(), ..Overlay::default() };
    Value::String(shown.text()).to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provisioner::testing::FakeHost;

    #[tokio::test]
    async fn a_stored_overlay_is_read_until_it_is_removed() {
        let (host, overlays) = (FakeHost::new(), Overlays::default());
        let ke: ClusterName = "ke".parse().unwrap();
        host.put("/api/v1/namespaces/atoll-root-ke", json!({"metadata": {"name": "atoll-root-ke"}}));
        let labels = [("a".to_owned(), "b".to_owned())].into();
        let applied = [("kubectl".to_owned(), crate::shared::overlay::Applied::default())].into();
        let overlay = Overlay { labels, applied, ..Overlay::default() };
        let id = overlays.store(&host, &ke, "/api/v1/things/x", &overlay).await.unwrap();
        assert_eq!(read(&host, &ke, &id).await.unwrap(), Some(overlay));
        for overlays in [overlays, Overlays::default()] {
            assert_eq!(overlays.shown(&host, &ke, &id).await.unwrap(), r#""{\"labels\":{\"a\":\"b\"}}""#);
        }
        remove(&host, &ke, &id).await.unwrap();
        remove(&host, &ke, &id).await.unwrap();
        assert_eq!(read(&host, &ke, &id).await.unwrap(), None);
        assert_eq!(Overlays::default().shown(&host, &ke, &id).await.unwrap(), r#""{}""#);
    }

    #[test]
    fn the_oldest_entries_are_evicted() {
        let mut cache = Cache::default();
        let key = |bits| ("ke".to_owned(), StoredId::new(bits));
        for bits in 0..5 {
            cache.keep(key(bits), Bytes::from(vec![b'a'; MAX_CACHED / 3]));
        }
        assert_eq!(cache.order, [key(2), key(3), key(4)]);
        assert!(cache.size <= MAX_CACHED && cache.shown.len() == 3);
    }
}
