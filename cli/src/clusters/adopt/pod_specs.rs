//! The pods that an object describes.
//!
//! Custom resources have pod templates, too, in places that only their controllers know. So every object with a list of containers
//! counts as the spec of a pod. A controller may also create pods for a custom resource without a template.

use serde_json::Value;

use crate::clusters::kinds::Resource;

/// Whether the host, or a controller, may create pods for the object.
pub(super) fn describes_pods(resource: &Resource, object: &Value) -> bool {
    let may_run = match resource.group.as_str() {
        "" => matches!(resource.name.as_str(), "pods" | "podtemplates" | "replicationcontrollers"),
        "apps" | "batch" => true,
        // The schema of a definition is not a pod.
        "apiextensions.k8s.io" => return false,
        _ => resource.is_namespaced && resource.is_custom(),
    };
    may_run || any(object, &|_| true)
}

/// Whether one of the pods names its node, so that no scheduler would check it.
pub(super) fn names_a_node(object: &Value) -> bool {
    // The spec of a Pod is one without containers, too.
    let is_named = |spec: &Value| spec["nodeName"].as_str().is_some_and(|name| !name.is_empty());
    (object["kind"] == "Pod" && is_named(&object["spec"])) || any(object, &is_named)
}

/// Whether `is_one` accepts the spec of any pod in it. Documents have a maximum depth.
fn any(value: &Value, is_one: &impl Fn(&Value) -> bool) -> bool {
    match value {
        Value::Object(members) => {
            let is_spec = members.get("containers").is_some_and(Value::is_array);
            (is_spec && is_one(value)) || members.values().any(|member| any(member, is_one))
        }
        Value::Array(items) => items.iter().any(|item| any(item, is_one)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_node_of_a_pod_is_found_in_each_template() {
        let free = json!({"containers": [{"name": "a"}]});
        let named = json!({"containers": [{"name": "a"}], "nodeName": "n"});
        let forms: [fn(&Value) -> Value; 6] = [
            |spec| json!({"kind": "Pod", "spec": spec}),
            |spec| json!({"kind": "Deployment", "spec": {"template": {"spec": spec}}}),
            |spec| json!({"kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": {"spec": spec}}}}}),
            |spec| json!({"kind": "PodTemplate", "template": {"spec": spec}}),
            |spec| json!({"kind": "ControllerRevision", "data": {"spec": {"template": {"spec": spec}}}}),
            |spec| json!({"kind": "Other", "spec": {"groups": [{"template": {"spec": spec}}]}}),
        ];
        let other = Resource::for_tests("example.com", "others", false);
        for form in forms {
            assert!(names_a_node(&form(&named)), "{}", form(&named));
            assert!(!names_a_node(&form(&free)), "{}", form(&free));
            assert!(describes_pods(&other, &form(&free)), "{}", form(&free));
        }
        assert!(names_a_node(&json!({"kind": "Pod", "spec": {"nodeName": "n"}})));
    }

    #[test]
    fn workloads_and_custom_resources_may_run_pods() {
        let describes = |group: &str, name: &str| {
            describes_pods(&Resource::for_tests(group, name, true), &json!({"data": {"containers": "x"}, "spec": {}}))
        };
        assert!(describes("", "pods") && describes("apps", "deployments") && describes("batch", "cronjobs"));
        assert!(!describes("", "services") && !describes("", "configmaps"));
        assert!(!describes("networking.k8s.io", "ingresses") && describes("example.com", "gears"));
        let schema = json!({"default": {"containers": []}});
        assert!(!describes_pods(&Resource::for_tests("apiextensions.k8s.io", "x", false), &schema));
    }
}
