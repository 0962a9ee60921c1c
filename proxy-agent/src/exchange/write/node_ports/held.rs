//! Checks whether a Service of the virtual cluster itself has a node port.

use http::StatusCode;
use kube_wire::Status;
use kube_wire::query::Query;
use serde::Deserialize;
use serde_json::Value;

use crate::exchange::call::Call;
use crate::exchange::host::read::{JSON, collected, read_from_host};
use crate::exchange::ports::Ports;
use crate::exchange::upstream;
use crate::refusal::Refusal;

/// The number of Services in a page, so that no response is large.
const PAGE: &str = "500";

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    items: Vec<Value>,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default, rename = "continue")]
    more: String,
}

/// Whether another Service of the virtual cluster has this node port for its clients. Called only if the host has
/// refused the port.
pub(crate) async fn shows_node_port(call: &Call<'_>, port: u16) -> Result<bool, Refusal> {
    let own = call.api.info.resource().and_then(|request| Some((request.namespace()?, request.path_name()?)));
    let mut more = String::new();
    loop {
        let mut query = Query::new("");
        query.set("limit", PAGE);
        if !more.is_empty() {
            query.set("continue", &more);
        }
        let page = page(call, &upstream::target("/api/v1/services", &query)).await?;
        for service in &page.items {
            let metadata = &service["metadata"];
            let namespace = metadata["namespace"].as_str().unwrap_or_default();
            let Some(namespace) = call.api.mapping.member(namespace.as_bytes()) else { continue };
            let is_own = own == Some((namespace.as_str(), metadata["name"].as_str().unwrap_or_default()));
            let ports = Ports::new(Some(service), std::collections::BTreeSet::new(), false);
            if !is_own && ports.shown().any(|shown| shown == port) {
                return Ok(true);
            }
        }
        if page.metadata.more.is_empty() {
            return Ok(false);
        }
        more = page.metadata.more;
    }
}

async fn page(call: &Call<'_>, target: &str) -> Result<Page, Refusal> {
    let response = read_from_host(call, target, JSON).await?;
    if response.status() != StatusCode::OK {
        return Err(Status::service_unavailable("the Services of the host cannot be read").with_retry_after(1).into());
    }
    let body = collected(call, response).await?;
    serde_json::from_slice(&body).map_err(|error| Refusal::Unreadable(error.to_string()))
}
