//! Checks whether a node belongs to a virtual cluster.

use http::{Request, StatusCode, header};
use kube_wire::Status;
use kube_wire::name::SegmentName;
use kube_wire::query::Query;

use crate::refusal::Refusal;
use host_client::collect::collect;
use host_client::{Host, empty};
use virtual_cluster::clusters::VirtualCluster;

/// The maximum length of a response, in bytes: it has the metadata of one node.
const MAX: usize = 1024 * 1024;

/// Sends the checks to the host.
pub(crate) struct Nodes {
    host: Host,
}

/// A list of which the agent reads only the length.
#[derive(serde::Deserialize)]
struct Found {
    /// `null` in a metadata list without items.
    items: Option<Vec<serde::de::IgnoredAny>>,
}

// === impl Nodes ===

impl Nodes {
    pub(crate) fn new(host: Host) -> Self {
        Self { host }
    }

    /// Whether the host now has a node with this name that the cluster's selector matches.
    pub(crate) async fn belongs(&self, cluster: &VirtualCluster, node: &str) -> Result<bool, Refusal> {
        if SegmentName::new(node.to_owned()).is_err() {
            return Ok(false);
        }
        let mut query = Query::new("limit=1");
        query.append("fieldSelector", &format!("metadata.name={node}"));
        query.append("labelSelector", &cluster.node_selector.text);
        let request = Request::get(format!("/api/v1/nodes?{}", query.as_str()))
            .header(header::ACCEPT, "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
            .body(empty())
            .map_err(|error| Refusal::from(Status::bad_request(error.to_string())))?;
        let response = self.host.send(request).await?;
        if response.status() != StatusCode::OK {
            return Err(Refusal::Unreadable(format!("listing nodes is {}", response.status())));
        }
        let body = collect(response.into_body(), MAX).await;
        let body = body.map_err(|error| Refusal::Unreadable(error.to_string()))?;
        let found: Found = serde_json::from_slice(&body).map_err(|error| Refusal::Unreadable(error.to_string()))?;
        Ok(found.items.is_some_and(|items| !items.is_empty()))
    }
}
