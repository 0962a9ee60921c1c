//! Follows the VirtualClusters and their sets on the host.

use std::collections::BTreeMap;
use std::sync::Arc;

use host_client::api::{Change, Following, Object};
use tokio::sync::watch;

use super::object::{Declared, Metadata};

/// Objects, by name.
pub type ByName<T> = BTreeMap<String, Arc<T>>;

/// All VirtualClusters.
pub type Objects = ByName<Declared>;

/// An object with metadata.
pub trait Named: Object + PartialEq + Sync {
    /// Its metadata.
    fn metadata(&self) -> &Metadata;
}

impl Named for Declared {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

/// Keeps `objects` up to date forever. It is `None` until the first list is complete: before that, an absent object may exist.
pub async fn follow<T: Named>(mut following: impl Following<T>, objects: &watch::Sender<Option<Arc<ByName<T>>>>) {
    let mut known = BTreeMap::new();
    let mut is_complete = false;
    loop {
        let is_changed = match following.next().await {
            Change::Applied(object) => {
                let name = object.metadata().name.clone();
                let object = Arc::new(object);
                known.insert(name, Arc::clone(&object)).is_none_or(|before| before != object)
            }
            Change::Deleted(object) => known.remove(&object.metadata().name).is_some(),
            Change::Synced => !std::mem::replace(&mut is_complete, true),
        };
        if is_complete && is_changed {
            objects.send_replace(Some(Arc::new(known.clone())));
        }
    }
}
