//! Volumes and StorageClasses of the host.

use ops::config::Location;
use serde_json::Value;

use crate::check::weakness::{Check, Weakness, shorten};

/// Parameters of a StorageClass that name a Secret (kubernetes-csi/external-provisioner, `pkg/controller`): a prefix,
/// and the endings for its name and its namespace.
const SECRET_PREFIX: &str = "csi.storage.k8s.io/";
const SECRET_NAME: &str = "secret-name";
const SECRET_NAMESPACE: &str = "secret-namespace";

/// PersistentVolumes that any claim can bind.
pub(super) fn free(location: Option<Location>, volumes: &[Value]) -> Option<Weakness> {
    let is_free = |volume: &&Value| volume["status"]["phase"] == "Available" && volume["spec"]["claimRef"].is_null();
    let names: Vec<_> =
        volumes.iter().filter(is_free).filter_map(|volume| volume["metadata"]["name"].as_str()).collect();
    if names.is_empty() {
        return None;
    }
    Some(Weakness::at(
        Check::FreeVolume,
        location,
        format_args!(
            "host: a claim of any virtual cluster can bind these PersistentVolumes, by name or by class: {}",
            shorten(&names)
        ),
        "reserve each with spec.claimRef (the host namespace and the name of its claim), or let a provisioner create \
         volumes on demand",
    ))
}

/// A StorageClass with which the creator of a claim can choose a Secret in a fixed namespace.
pub(super) fn secrets_of_claims(location: Option<Location>, class: &Value) -> Option<Weakness> {
    let parameters = class["parameters"].as_object()?;
    let is_chosen = |(key, name): (&String, &Value)| {
        let purpose = key.strip_prefix(SECRET_PREFIX)?.strip_suffix(SECRET_NAME)?;
        let namespace = parameters.get(&format!("{SECRET_PREFIX}{purpose}{SECRET_NAMESPACE}"))?.as_str()?;
        let by_claim = name.as_str()?.contains("${pvc.") && !namespace.contains("${pvc.namespace}");
        by_claim.then(|| format!("{key} in namespace {namespace}"))
    };
    let chosen = parameters.iter().find_map(is_chosen)?;
    let name = class["metadata"]["name"].as_str().unwrap_or_default();
    Some(Weakness::at(
        Check::StorageSecret,
        location,
        format_args!("host: StorageClass {name} lets claims of virtual clusters choose a Secret: {chosen}"),
        "name a fixed Secret, or set the namespace of the Secret to `${pvc.namespace}`",
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn volumes_that_any_claim_can_bind_are_reported() {
        let volume = |name: &str, phase: &str, claim: Value| json!({"metadata": {"name": name}, "spec": {"claimRef": claim}, "status": {"phase": phase}});
        let claim = json!({"name": "c", "namespace": "n"});
        let taken = [
            volume("bound", "Bound", claim.clone()),
            volume("kept", "Available", claim),
            volume("old", "Released", json!({})),
        ];
        assert_eq!(free(None, &taken), None);
        let weakness = free(None, &[taken[0].clone(), volume("a", "Available", Value::Null), json!({})]).unwrap();
        assert!(weakness.problem.message().ends_with("by class: a"), "{weakness:?}");
    }

    #[test]
    fn classes_that_let_claims_choose_secrets_are_reported() {
        let class = |name: &str, namespace: &str| {
            let parameters = json!({
                "csi.storage.k8s.io/node-publish-secret-name": name,
                "csi.storage.k8s.io/node-publish-secret-namespace": namespace,
                "type": "${pvc.name}",
            });
            secrets_of_claims(None, &json!({"metadata": {"name": "c"}, "parameters": parameters}))
        };
        let weakness = class("${pvc.annotations['secret']}", "storage").unwrap();
        assert!(weakness.problem.message().contains("node-publish-secret-name in namespace storage"), "{weakness:?}");
        assert!(class("${pvc.name}", "storage").is_some());
        assert_eq!(class("fixed", "storage"), None);
        assert_eq!(class("${pv.name}", "storage"), None);
        assert_eq!(class("${pvc.name}", "${pvc.namespace}"), None);
        assert_eq!(secrets_of_claims(None, &json!({"metadata": {"name": "c"}})), None);
    }
}
