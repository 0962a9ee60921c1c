//! The copies of the API server's aggregated roles in each virtual cluster.
//!
//! A copy is an ordinary role of the virtual cluster, with the labels and the `aggregationRule` of the original.
//! [Aggregation](super::aggregation) keeps its rules up to date. They consist of the rules of the shared roles that the
//! original selects, and of the rules of the cluster's own roles.

use host_client::api::{ApiError, HostApi};
use kube_wire::status::Reason;
use rewrite::ClusterName;
use rewrite::name::CLUSTER_LABEL;
use rewrite::parked::{AUTO_UPDATE, parked};
use rewrite::request::AGGREGATION_ANNOTATION;
use serde_json::{Map, Value, json};

use super::all_roles::AllRoles;
use super::path::PATH;
use super::role::Rule;

/// Creates these copies.
pub(super) async fn create(api: &impl HostApi, missing: &[Value]) -> Result<(), ApiError> {
    for copy in missing {
        match api.create(PATH, copy).await {
            // Another agent has created it at the same time.
            Err(error) if error.status().is_none_or(|status| status.reason != Reason::AlreadyExists) => {
                return Err(error);
            }
            _ => {}
        }
    }
    Ok(())
}

/// The copies to create for this cluster.
pub(super) fn missing(all: &AllRoles, cluster: &ClusterName) -> Vec<Value> {
    let has = |name: &String| all.own.get(cluster).is_some_and(|own| own.roles.contains_key(name));
    let mut missing: Vec<_> = all.copied.iter().filter(|(name, _)| !has(name)).collect();
    // A role has the rules of those that it aggregates. So they are created, and their events come, before it is
    // aggregated, and its rules are complete.
    missing.sort_by_key(|(_, role)| role.rules.len());
    let copies = missing.into_iter().map(|(name, role)| {
        let mut labels: Map<_, _> = role.labels.iter().map(|(key, value)| (parked(key), json!(value))).collect();
        labels.insert(CLUSTER_LABEL.to_owned(), json!(cluster.as_str()));
        let mut annotations = json!({AGGREGATION_ANNOTATION: role.aggregation});
        if let Some(auto_update) = &role.auto_update {
            // It must have no effect on the host. Clients see it as in the original.
            annotations[parked(AUTO_UPDATE)] = json!(auto_update);
        }
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {
                "name": format!("vc:{cluster}:{name}"),
                "labels": labels,
                "annotations": annotations,
            },
            "rules": role.rules.iter().map(Rule::value).collect::<Value>(),
        })
    });
    copies.collect()
}

#[cfg(test)]
mod tests {
    use host_client::api::Change;

    use super::*;
    use crate::roles::Roles;

    #[test]
    fn a_copy_is_created_once_with_the_content_of_the_original() {
        let roles = Roles::default();
        let labels = json!({"kubernetes.io/bootstrapping": "rbac-defaults", "a/b": "c"});
        let rule = json!({"clusterRoleSelectors": [{"matchLabels": {"d": "e"}}]});
        let annotations = json!({"rbac.authorization.kubernetes.io/autoupdate": "true", "else": ""});
        let metadata = json!({"name": "view", "labels": labels, "annotations": annotations});
        let host = json!({"metadata": metadata, "aggregationRule": rule, "rules": [{"verbs": ["get"]}]});
        roles.take(&Change::Applied(host.clone()));
        assert!(roles.shared().is_empty());

        let ke = "ke".parse().unwrap();
        let copy = missing(&roles.lock(), &ke).pop().unwrap();
        assert_eq!(copy["metadata"]["name"], "vc:ke:view");
        assert_eq!(copy["metadata"]["labels"]["kubernetes.io.parked.atoll.dev/bootstrapping"], "rbac-defaults");
        assert_eq!(copy["metadata"]["labels"]["a.parked.atoll.dev/b"], "c");
        let annotations = json!({
            "atoll.dev/aggregation-rule": rule.to_string(),
            "rbac.authorization.kubernetes.io.parked.atoll.dev/autoupdate": "true",
        });
        assert_eq!(copy["metadata"]["annotations"], annotations);
        assert!(copy["aggregationRule"].is_null());
        assert_eq!(copy["rules"], host["rules"]);

        roles.take(&Change::Applied(copy));
        assert!(missing(&roles.lock(), &ke).is_empty());
        assert_eq!(missing(&roles.lock(), &"hz".parse().unwrap()).len(), 1);
        roles.take(&Change::Deleted(host));
        assert!(missing(&roles.lock(), &"hz".parse().unwrap()).is_empty());
    }

    #[test]
    fn a_copy_is_created_after_those_that_it_aggregates() {
        let roles = Roles::default();
        let rule = json!({"clusterRoleSelectors": [{"matchLabels": {"d": "e"}}]});
        for (name, verbs) in
            [("admin", &["get", "update", "delete"][..]), ("edit", &["get", "update"]), ("view", &["get"])]
        {
            let rules: Vec<_> = verbs.iter().map(|verb| json!({"verbs": [verb]})).collect();
            let metadata = json!({"name": name, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}});
            let role = json!({"metadata": metadata, "aggregationRule": rule, "rules": rules});
            roles.take(&Change::Applied(role));
        }
        let missing = missing(&roles.lock(), &"ke".parse().unwrap());
        let names: Vec<_> = missing.iter().map(|copy| copy["metadata"]["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["vc:ke:view", "vc:ke:edit", "vc:ke:admin"]);
    }
}
