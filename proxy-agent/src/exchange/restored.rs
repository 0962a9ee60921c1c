//! Watches that continue from a version of the host on which the virtual cluster was before a restore.
//!
//! Resource versions of two hosts cannot be compared. If the version is higher than that of this host, an API server delivers no
//! event until its own version is higher (`watchCacheInterval` in apiserver's `storage/cacher`), so the caches of clients would
//! stay as they are for hours. A 410 makes a client list again, as after a compaction. etcd offers the same for restored
//! snapshots (`etcdutl snapshot restore --bump-revision --mark-compacted`).

use kube_wire::query::ListOptions;
use kube_wire::{Status, Verb};
use virtual_cluster::namespaces::{NOBODYS, PATH};

use crate::exchange::call::Call;
use crate::refusal::Refusal;

/// Refuses a watch of a restored virtual cluster from a version that this host does not have yet.
pub(super) async fn known_version(call: &Call<'_>) -> Result<(), Refusal> {
    let Some(request) = call.api.info.resource().filter(|request| request.verb() == Verb::Watch) else { return Ok(()) };
    let namespaces = &call.services.namespaces;
    if namespaces.index().identity(call.api.mapping.cluster()).is_none() {
        return Ok(());
    }
    let options = ListOptions::parse(call.api.info.query())?;
    let Ok(version) = options.resource_version.parse::<u64>() else { return Ok(()) };
    if namespaces.has_seen(version) {
        return Ok(());
    }
    // Boxed, because most requests do not need its state.
    call.outside(Box::pin(compare(call, version, request.resource()))).await
}

async fn compare(call: &Call<'_>, version: u64, resource: &str) -> Result<(), Refusal> {
    // The watch of Namespaces lags behind other resources, so the host decides.
    let newest = call.host_api().newest_version(PATH, &format!("metadata.name={NOBODYS}")).await;
    // If the host does not respond, it refuses the watch itself.
    let newest = newest.ok().and_then(|newest| newest.parse::<u64>().ok());
    if newest.is_some_and(|newest| newest < version) {
        let message =
            format!("too old resource version: {version} of {resource} is from before the cluster was restored");
        return Err(Status::expired(message).into());
    }
    Ok(())
}
