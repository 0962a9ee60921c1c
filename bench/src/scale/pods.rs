//! The time to create a pod on the host.

use http::Method;
use serde_json::json;
use tokio::time::Instant;

use crate::latencies::{Latencies, Summary};
use crate::site::{JSON, Member};

/// Creations before the measurement, to open the connection and fill caches.
const WARM_UP: u32 = 50;

/// Creates pods one after the other, and deletes them. `location` is the value of the label of their nodes. No scheduler
/// and no kubelet handles them.
pub(super) async fn create(host: &Member, namespace: &str, location: &str, count: u32) -> anyhow::Result<Summary> {
    let path = format!("/api/v1/namespaces/{namespace}/pods");
    let mut latencies = Latencies::new();
    for number in 0..WARM_UP + count {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("bench-scale-{number}"), "labels": {"bench": "scale"}},
            "spec": {
                "schedulerName": "bench-scale",
                "nodeSelector": {"location": location},
                "containers": [{"name": "main", "image": "example.com/none:1"}],
            },
        });
        let sent = Instant::now();
        host.succeed(Method::POST, &path, pod.to_string()).await?;
        if number >= WARM_UP {
            latencies.record(sent.elapsed());
        }
    }
    let path = format!("{path}?labelSelector=bench%3Dscale&gracePeriodSeconds=0");
    host.call(Method::DELETE, &path, JSON, String::new()).await?;
    Ok(latencies.summary())
}
