//! Namespaces that this agent's watch has not delivered yet.
//!
//! Several agents may share the requests of a virtual cluster. If one creates a namespace, the next request in it may
//! reach another one, whose watch is some milliseconds behind. So an agent reads an unknown namespace from the host
//! before it returns that the namespace does not exist.

use host_client::api::HostApi;
use rewrite::HostNamespace;
use tracing::debug;

use super::paths;
use crate::namespaces::Namespaces;

/// Reads the namespace from the host, and adds it to the index if it belongs to one of our virtual clusters. Returns
/// whether it does.
pub(super) async fn look_for(api: &impl HostApi, namespaces: &Namespaces, host: &HostNamespace) -> bool {
    match api.get(&paths::namespace(host)).await {
        Ok(found) => matches!(namespaces.learn(&found), Ok(Some(_))),
        Err(error) => {
            debug!(error = &error as &dyn std::error::Error, namespace = %host, "no such namespace");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::FakeHost;
    use super::*;

    #[tokio::test]
    async fn namespaces_of_another_agent_are_found() {
        let host = FakeHost::new();
        let cluster: rewrite::ClusterName = "ke".parse().unwrap();
        let namespaces = Namespaces::new([cluster]);
        let edge: HostNamespace = "edge-ke".parse().unwrap();
        assert!(!look_for(&host, &namespaces, &edge).await);
        let labels = json!({"atoll.dev/virtual-cluster": "ke", "atoll.dev/namespace": "edge"});
        let made = json!({"metadata": {"name": "edge-ke", "uid": "1", "labels": labels}});
        host.put(&paths::namespace(&edge), made);
        assert!(look_for(&host, &namespaces, &edge).await);
        assert!(namespaces.member(&edge).is_some());
        // A namespace of that name without our labels does not belong to our clusters.
        let other: HostNamespace = "other-ke".parse().unwrap();
        host.put(&paths::namespace(&other), json!({"metadata": {"name": "other-ke", "uid": "2"}}));
        assert!(!look_for(&host, &namespaces, &other).await);
    }
}
