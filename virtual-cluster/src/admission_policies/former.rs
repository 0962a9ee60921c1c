//! Policies of earlier versions, which had separate policies for each virtual cluster.

use serde::de::IgnoredAny;
use tracing::info;

use super::policy::{Kind, LABEL};
use super::served::Served;
use host_client::api::ApiError;
use host_client::api::HostApi;

/// Removes them. Call this only once the current policies are in force.
pub(super) async fn remove(api: &impl HostApi, served: Served) -> Result<(), ApiError> {
    let kinds = [(served.validating, Kind::Validating), (served.mutating, Kind::Mutating)];
    for (version, kind) in kinds.into_iter().filter_map(|(version, kind)| Some((version?, kind))) {
        for collection in kind.collections(version) {
            let mut former = Vec::new();
            api.each(&collection, LABEL, |policy| former.push(policy.metadata.name)).await?;
            former.retain(|name| is_of_one_cluster(name));
            for name in former {
                match api.delete::<IgnoredAny>(&format!("{collection}/{name}"), &serde_json::json!({})).await {
                    Ok(_) => info!(name, "removed an admission policy of an earlier version"),
                    // Another agent was faster.
                    Err(error) if error.is_not_found() => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }
    Ok(())
}

/// `pods.CLUSTER.atoll.dev`.
fn is_of_one_cluster(name: &str) -> bool {
    let cluster = name.strip_prefix("pods.").and_then(|rest| rest.strip_suffix(".atoll.dev"));
    cluster.is_some_and(|cluster| !cluster.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_policies_of_one_cluster_are_former_ones() {
        assert!(is_of_one_cluster("pods.ke-beijing.atoll.dev"));
        for present in ["pods.atoll.dev", "namespaces.atoll.dev", "probe.atoll.dev", "pods..atoll.dev"] {
            assert!(!is_of_one_cluster(present), "{present}");
        }
    }
}
