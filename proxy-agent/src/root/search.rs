//! A namespace that this agent has not heard of yet.
//!
//! Agents of one identity share a virtual cluster's requests: one creates a namespace, and the next request, which goes
//! into it, may reach another, whose watch is some milliseconds behind. So who is asked about an unknown namespace looks
//! for it on the host before saying that it does not exist.

use rewrite::HostNamespace;
use tracing::debug;

use super::{Root, paths};
use crate::clusters::host_api::HostApi;

// === impl Root ===

impl<A: HostApi> Root<A> {
    /// Takes the namespace into the index if the host has it by now and it is a virtual cluster's of ours. Says whether
    /// there is something new in the index.
    pub async fn look_for(&self, host: &HostNamespace) -> bool {
        match self.shared.api.get(&paths::namespace(host)).await {
            Ok(found) => matches!(self.shared.namespaces.learn(&found), Ok(Some(_))),
            Err(error) => {
                debug!(error = &error as &dyn std::error::Error, namespace = %host, "no such namespace");
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use serde_json::json;

    use super::super::testing::FakeHost;
    use super::*;
    use crate::namespaces::{Annotations, Namespaces};

    #[tokio::test]
    async fn what_another_agent_made_is_found() {
        let host = FakeHost::new();
        let cluster: rewrite::ClusterName = "ke".parse().unwrap();
        let namespaces = Arc::new(Namespaces::new([cluster.clone()]));
        let root = Root::of(
            host.clone(),
            Arc::clone(&namespaces),
            Arc::default(),
            HashMap::from([(cluster, Annotations::default())]),
        );
        let edge: HostNamespace = "edge-ke".parse().unwrap();
        assert!(!root.look_for(&edge).await);
        let labels = json!({"atoll.dev/virtual-cluster": "ke", "atoll.dev/namespace": "edge"});
        let made = json!({"metadata": {"name": "edge-ke", "uid": "1", "labels": labels}});
        host.put(&paths::namespace(&edge), made);
        assert!(root.look_for(&edge).await);
        assert!(namespaces.member(&edge).is_some());
        // What somebody else calls so is nobody's of ours.
        let other: HostNamespace = "other-ke".parse().unwrap();
        host.put(&paths::namespace(&other), json!({"metadata": {"name": "other-ke", "uid": "2"}}));
        assert!(!root.look_for(&other).await);
    }
}
