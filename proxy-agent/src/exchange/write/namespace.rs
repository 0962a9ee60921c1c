//! Writes of existing objects: a Namespace keeps the labels and annotations that clients may not write.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::StatusCode;
use kube_wire::ResourceRequest;
use rewrite::VirtualNamespace;
use rewrite::request::Request;
use serde::Deserialize;

use crate::exchange::host::read::{JSON, collected, read_from_host};
use crate::exchange::undecided::Undecided;
use crate::exchange::write::mapper::mapper;
use crate::refusal::Refusal;
use virtual_cluster::namespaces;

/// A Namespace on the host.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Live {
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
}

/// The mapper for an object that replaces the existing one.
pub(crate) async fn whole_mapper(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    namespace: Option<&VirtualNamespace>,
) -> Result<Request, Refusal> {
    let mapper = mapper(call, namespace);
    let Some(Metadata { labels, annotations }) = live_namespace(call, request).await? else { return Ok(mapper) };
    Ok(mapper.with_namespace_rules(Arc::new(call.api.cluster.namespace_rules.for_existing(labels, annotations))))
}

/// The mapper for an apply.
pub(crate) async fn apply_mapper(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    namespace: Option<&VirtualNamespace>,
) -> Result<Request, Refusal> {
    let mapper = mapper(call, namespace);
    if call.api.cluster.pod_security.is_none() {
        return Ok(mapper);
    }
    let Some(Metadata { labels, .. }) = live_namespace(call, request).await? else { return Ok(mapper) };
    Ok(mapper.with_namespace_rules(Arc::new(call.api.cluster.namespace_rules.for_apply(labels))))
}

/// The host's Namespace of a request; `None` if the request is not about a Namespace, or it does not exist.
async fn live_namespace(call: &Undecided<'_>, request: &ResourceRequest<'_>) -> Result<Option<Metadata>, Refusal> {
    if !request.is_namespace() {
        return Ok(None);
    }
    let name = request.path_name().and_then(|name| VirtualNamespace::new(name).ok());
    let Some(host) = name.and_then(|name| call.api.mapping.host(&name).ok()) else { return Ok(None) };
    let path = format!("{}/{host}", namespaces::PATH);
    let response = read_from_host(call, &path, JSON).await?;
    if response.status() != StatusCode::OK {
        // The host returns the error for the request itself.
        return Ok(None);
    }
    let unreadable = |error: String| Refusal::Unreadable(error);
    let live = collected(call, response).await?;
    let Live { metadata } = serde_json::from_slice(&live).map_err(|error| unreadable(error.to_string()))?;
    Ok(Some(metadata))
}
