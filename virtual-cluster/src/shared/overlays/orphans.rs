//! Stored overlays that no object points to, because their object is deleted or a write failed half-way.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use rewrite::ClusterName;
use rewrite::name::OVERLAY_PREFIX;
use rewrite::pointer::Pointer;
use serde::de::IgnoredAny;
use serde_json::json;
use tokio::time::sleep;
use tracing::{debug, warn};

use super::{LABEL, OF};
use host_client::api::HostApi;
use host_client::api::{ApiError, Partial};

/// The interval of searches. A write stores its object far sooner after its overlay, so an overlay without an object in
/// two searches is an orphan.
const SEARCH_INTERVAL: Duration = Duration::from_secs(600);

/// Deletes the orphans of these virtual clusters, forever.
pub async fn keep(api: impl HostApi, clusters: impl Fn() -> Vec<ClusterName>) {
    let mut suspects = HashSet::new();
    loop {
        sleep(SEARCH_INTERVAL).await;
        match sweep(&api, &clusters(), &suspects).await {
            Ok(found) => suspects = found,
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                warn!(error, "cannot look for unused overlays of virtual clusters");
            }
        }
    }
}

/// Deletes the orphans among the suspects, by path, and returns those that are found for the first time. It searches
/// only root namespaces, because only the agent writes there.
async fn sweep(
    api: &impl HostApi,
    clusters: &[ClusterName],
    suspects: &HashSet<String>,
) -> Result<HashSet<String>, ApiError> {
    let mut by_collection: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for cluster in clusters {
        let config_maps = super::collection(cluster);
        api.each(&config_maps, LABEL, |Partial { metadata }| {
            let of = metadata.annotations.get(OF).map_or("", String::as_str);
            let collection = of.rsplit_once('/').map_or("", |(collection, _)| collection);
            let path = format!("{config_maps}/{}", metadata.name);
            by_collection.entry(collection.to_owned()).or_default().push(path);
        })
        .await?;
    }
    let mut found = HashSet::new();
    for (collection, stored) in by_collection {
        let used = if collection.is_empty() { HashSet::new() } else { used(api, &collection).await? };
        let is_used = |path: &str| path.rsplit_once("/overlay-").is_some_and(|(_, id)| used.contains(id));
        for path in stored.into_iter().filter(|path| !is_used(path)) {
            if !suspects.contains(&path) {
                found.insert(path);
                continue;
            }
            match api.delete::<IgnoredAny>(&path, &json!({})).await {
                Err(error) if !error.is_not_found() => return Err(error),
                _ => debug!(path, "deleted an unused overlay"),
            }
        }
    }
    Ok(found)
}

/// The identifiers that the objects of a collection point to.
async fn used(api: &impl HostApi, collection: &str) -> Result<HashSet<String>, ApiError> {
    let mut used = HashSet::new();
    let listed = api.each(collection, "", |object| {
        let overlays = object.metadata.annotations.iter().filter(|(key, _)| key.starts_with(OVERLAY_PREFIX));
        used.extend(overlays.filter_map(|(_, value)| Some(Pointer::parse(value)?.id.to_string())));
    });
    match listed.await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(used),
    }
}

#[cfg(test)]
mod tests {
    use rewrite::pointer::StoredId;

    use super::super::{Overlays, path};
    use super::*;
    use crate::provisioner::testing::FakeHost;
    use crate::shared::overlay::Overlay;

    #[tokio::test(start_paused = true)]
    async fn orphans_are_deleted() {
        let (host, overlays) = (FakeHost::new(), Overlays::default());
        let ke: ClusterName = "ke".parse().unwrap();
        host.put("/api/v1/namespaces/atoll-root-ke", json!({"metadata": {"name": "atoll-root-ke"}}));
        let of = "/apis/scheduling.k8s.io/v1/priorityclasses/x";
        let mut stored = Vec::new();
        for _ in 0..2 {
            stored.push(overlays.store(&host, &ke, of, &Overlay::default()).await.unwrap());
        }
        let other =
            overlays.store(&host, &ke, "/apis/gone.example.com/v1/things/x", &Overlay::default()).await.unwrap();
        // A ConfigMap in any other namespace is not deleted.
        let elsewhere = "/api/v1/namespaces/edge-ke/configmaps/x";
        let metadata = json!({"name": "x", "labels": {"atoll.dev/overlay": ""}});
        host.put(elsewhere, json!({"metadata": metadata}));
        let pointer = |id: &StoredId| format!("stored:{id}");
        host.put(of, json!({"metadata": {"name": "x", "annotations": {"overlay.atoll.dev/ke": pointer(&stored[0])}}}));
        let late = async {
            // An overlay that is in use in the second search stays.
            sleep(SEARCH_INTERVAL + SEARCH_INTERVAL / 2).await;
            assert!(host.lock().objects.contains_key(&path(&ke, &stored[1])), "no second look");
            let annotations = json!({"overlay.atoll.dev/ke": pointer(&stored[1])});
            host.put(of, json!({"metadata": {"name": "x", "annotations": annotations}}));
            host.until(|state| !state.objects.contains_key(&path(&ke, &other))).await;
            host.until(|state| !state.objects.contains_key(&path(&ke, &stored[0]))).await;
            assert!(host.lock().objects.contains_key(&path(&ke, &stored[1])), "it is in use");
            assert!(host.lock().objects.contains_key(elsewhere), "it is somebody else's");
        };
        tokio::select! {
            () = keep(host.clone(), || vec![ke.clone()]) => unreachable!("it looks for ever"),
            () = late => {}
        }
    }
}
