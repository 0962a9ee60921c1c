//! Writes of existing objects: a Namespace keeps the labels and annotations that clients may not write.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::StatusCode;
use kube_wire::ResourceRequest;
use rewrite::VirtualNamespace;
use rewrite::request::Request;
use serde::Deserialize;

use super::ApiRequest;
use super::read::JSON;
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

impl ApiRequest<'_> {
    /// The mapper for an object that replaces the existing one.
    pub(super) async fn whole_mapper(
        &self,
        request: &ResourceRequest<'_>,
        namespace: Option<&VirtualNamespace>,
    ) -> Result<Request, Refusal> {
        let mapper = self.mapper(namespace);
        let Some(Metadata { labels, annotations }) = self.live_namespace(request).await? else { return Ok(mapper) };
        Ok(mapper.ruled_by(Arc::new(self.cluster.namespace_rules.given(labels, annotations))))
    }

    /// The mapper for an apply.
    pub(super) async fn apply_mapper(
        &self,
        request: &ResourceRequest<'_>,
        namespace: Option<&VirtualNamespace>,
    ) -> Result<Request, Refusal> {
        let mapper = self.mapper(namespace);
        if self.cluster.pod_security.is_none() {
            return Ok(mapper);
        }
        let Some(Metadata { labels, .. }) = self.live_namespace(request).await? else { return Ok(mapper) };
        Ok(mapper.ruled_by(Arc::new(self.cluster.namespace_rules.standing(labels))))
    }

    /// The host's Namespace of a request; `None` if the request is not about a Namespace, or it does not exist.
    async fn live_namespace(&self, request: &ResourceRequest<'_>) -> Result<Option<Metadata>, Refusal> {
        if !request.is_namespace() {
            return Ok(None);
        }
        let name = request.path_name().and_then(|name| VirtualNamespace::new(name).ok());
        let Some(host) = name.and_then(|name| self.mapping.host(&name).ok()) else { return Ok(None) };
        let path = format!("{}/{host}", namespaces::PATH);
        let response = self.read_from_host(&path, JSON).await?;
        if response.status() != StatusCode::OK {
            // The host returns the error for the request itself.
            return Ok(None);
        }
        let unreadable = |error: String| Refusal::Unreadable(error);
        let live = self.collected(response).await?;
        let Live { metadata } = serde_json::from_slice(&live).map_err(|error| unreadable(error.to_string()))?;
        Ok(Some(metadata))
    }
}
