//! Waits until a virtual cluster works: until requests on each route get the responses of a complete cluster.

use std::collections::HashSet;
use std::io::Write;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::Value;
use tokio::time::sleep;

use super::client::Client;
use super::clusters::DemoCluster;
use super::files::{Files, Route};
use super::output;

/// The time between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// The namespaces that every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Waits until the cluster works, and prints each new reason why it does not yet. Returns the number of its nodes.
pub(super) async fn wait(files: &Files, cluster: DemoCluster, out: &mut dyn Write) -> anyhow::Result<usize> {
    let [proxy, direct] = [Route::Proxy, Route::Direct].map(|route| Client::administrator(files, cluster, route));
    let clients = [proxy?, direct?];
    let mut printed = String::new();
    loop {
        match check(&clients).await {
            Ok(nodes) => return Ok(nodes),
            Err(error) => {
                let why = format!("{error:#}");
                if why != printed {
                    output::waiting(cluster, &why, out)?;
                    printed = why;
                }
            }
        }
        sleep(RETRY_INTERVAL).await;
    }
}

async fn check(clients: &[Client]) -> anyhow::Result<usize> {
    let mut nodes = 0;
    for client in clients {
        client.get("/readyz").await?;
        let namespaces = names(&client.get("/api/v1/namespaces").await?)?;
        let missing: Vec<&str> = NAMESPACES.into_iter().filter(|name| !namespaces.contains(*name)).collect();
        ensure!(missing.is_empty(), "namespace {} does not exist yet", missing.join(", "));
        // The agent grants rights in a namespace after it has created the namespace.
        for name in NAMESPACES {
            client.get(&format!("/api/v1/namespaces/{name}/configmaps?limit=1")).await?;
        }
        nodes = names(&client.get("/api/v1/nodes").await?)?.len();
    }
    Ok(nodes)
}

/// The names of the objects in a list.
fn names(list: &[u8]) -> anyhow::Result<HashSet<String>> {
    let list: Value = serde_json::from_slice(list).context("the response is not JSON")?;
    let items = list["items"].as_array().context("the response is not a list")?;
    Ok(items.iter().filter_map(|item| Some(item["metadata"]["name"].as_str()?.to_owned())).collect())
}
