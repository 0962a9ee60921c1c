//! Follows the VirtualClusters of the host.

use std::collections::BTreeMap;
use std::sync::Arc;

use host_client::api::{Change, Following};
use tokio::sync::watch;

use super::object::Declared;

/// All VirtualClusters, by name.
pub type Objects = BTreeMap<String, Arc<Declared>>;

/// Keeps `objects` up to date forever. It is `None` until the first list is complete: before that, an absent object may exist.
pub async fn follow(mut following: impl Following<Declared>, objects: &watch::Sender<Option<Arc<Objects>>>) {
    let mut known = Objects::new();
    let mut is_complete = false;
    loop {
        let is_changed = match following.next().await {
            Change::Applied(object) => {
                let name = object.metadata.name.clone();
                let object = Arc::new(object);
                known.insert(name, Arc::clone(&object)).is_none_or(|before| before != object)
            }
            Change::Deleted(object) => known.remove(&object.metadata.name).is_some(),
            Change::Synced => !std::mem::replace(&mut is_complete, true),
        };
        if is_complete && is_changed {
            objects.send_replace(Some(Arc::new(known.clone())));
        }
    }
}
