//! The custom resources of a definition. Those of a cluster are deleted before the definition, as on any API server
//! (`customResourceDefinitionStorage.Delete` and the finalizer of apiextensions-apiserver).

use std::collections::BTreeSet;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, Method, Request, header};
use kube_wire::{ResourceRequest, Status};
use rewrite::name::CLUSTER_LABEL;
use tokio::time::{Instant, sleep};

use crate::exchange::classes::shared::requests::accepted_body;
use crate::exchange::undecided::Undecided;
use crate::refusal::Refusal;
use caller::HostUser;
use caller::identity::host_user::AUTHENTICATED;
use host_client::api::{ApiError, HostApi as _, Partial};
use host_client::empty;
use virtual_cluster::shared::{HostObject, Instances};

/// The time to wait until they are deleted. After it, the client must try again.
const DELETION_TIMEOUT: Duration = Duration::from_secs(10);
/// The interval between checks in the meantime.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// The refusal to delete a definition while custom resources are left.
const REMAINING: &str =
    "its custom resources are being deleted, and some still have finalizers: try again when those are gone";

/// Whether a definition has custom resources that none of its virtual clusters created, so that another user needs
/// it.
pub(crate) async fn is_used_outside(call: &Undecided<'_>, definition: &HostObject) -> Result<bool, Refusal> {
    let Some(instances) = Instances::of(definition) else { return Ok(false) };
    instances.any_outside(&call.host_api(), definition).await.map_err(|error| unknown(&error))
}

/// Deletes this cluster's instances of a definition, and waits until they are gone.
pub(crate) async fn delete_instances(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    definition: &HostObject,
) -> Result<(), Refusal> {
    let Some(instances) = Instances::of(definition) else { return Ok(()) };
    let until = Instant::now() + DELETION_TIMEOUT;
    let mut requested = BTreeSet::new();
    loop {
        let paths = own_instances(call, &instances).await?;
        if paths.is_empty() {
            return Ok(());
        }
        for path in paths {
            if requested.insert(path.clone()) {
                delete_all(call, request, &path, instances.is_namespaced).await?;
            }
        }
        if Instant::now() >= until {
            let name = definition.text("name");
            return Err(Status::conflict(request.group_resource(), name, REMAINING).into());
        }
        sleep(RETRY_INTERVAL).await;
    }
}

/// The collections that contain instances of this cluster.
async fn own_instances(call: &Undecided<'_>, instances: &Instances) -> Result<BTreeSet<String>, Refusal> {
    let mapping = call.api.cluster.mapping();
    let mut paths = BTreeSet::new();
    let api = call.host_api();
    let (all, label) = (instances.path(), format!("{CLUSTER_LABEL}={}", call.api.cluster.name));
    let listed = if instances.is_namespaced {
        api.each(&all, "", |Partial { metadata }| {
            if mapping.member(metadata.namespace.as_bytes()).is_some() {
                paths.insert(instances.path_in(&metadata.namespace));
            }
        })
        .await
    } else {
        let own = format!("{all}?labelSelector={CLUSTER_LABEL}%3D{}", call.api.cluster.name);
        api.any(&all, &label, |_: Partial| true).await.map(|is_any| paths.extend(is_any.then_some(own)))
    };
    match listed {
        // If the definition is not served, there are no instances.
        Err(error) if !error.is_not_found() => Err(unknown(&error)),
        _ => Ok(paths),
    }
}

/// Deletes all instances at `path`, in namespaces as an administrator of the cluster: on any API server, a client
/// that may delete a definition needs no right to delete its instances.
async fn delete_all(
    call: &Undecided<'_>,
    about: &ResourceRequest<'_>,
    path: &str,
    is_namespaced: bool,
) -> Result<(), Refusal> {
    let mut headers = HeaderMap::new();
    if is_namespaced {
        let groups = ["system:masters".to_owned(), AUTHENTICATED.to_owned()];
        let user = HostUser::impersonated(&call.api.mapping, "system:admin", &groups, None, Vec::new());
        user.expect("constants are visible ASCII").write(&mut headers);
    }
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    let mut request = Request::new(empty());
    *request.method_mut() = Method::DELETE;
    *request.uri_mut() = path.parse().map_err(|_| Refusal::Unreadable("a definition has no path".to_owned()))?;
    *request.headers_mut() = headers;
    match accepted_body(call, about, request).await {
        // The namespace or the definition was deleted in the meantime.
        Err(Refusal::Status(status)) if status.code == 404 => Ok(()),
        accepted => accepted.map(drop),
    }
}

fn unknown(error: &ApiError) -> Refusal {
    let message = format!("cannot list the custom resources on the host: {error}");
    Status::service_unavailable(message).with_retry_after(1).into()
}
