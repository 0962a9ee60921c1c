//! What an object of a virtual cluster must not say, since it acts on the whole host.

use serde_json::Value;

use super::Kind;
use crate::config::SharedObjects;

/// Groups that kube-apiserver guards (`apihelpers.IsProtectedCommunityGroup` in apiextensions-apiserver), and ours.
const GUARDED: [&str; 3] = ["k8s.io", "kubernetes.io", "atoll.dev"];

/// Why an object of this kind is refused; `None` if it may be.
pub(crate) fn objection(kind: Kind, object: &Value, rules: &SharedObjects) -> Option<String> {
    match kind {
        Kind::CustomResourceDefinition => of_definition(&object["spec"]).map(str::to_owned),
        Kind::PriorityClass if object["globalDefault"] == true => {
            Some("globalDefault would give this priority to pods of the whole host cluster: leave it out".to_owned())
        }
        Kind::StorageClass => of_storage_class(object, rules),
        _ => None,
    }
}

fn of_definition(spec: &Value) -> Option<&'static str> {
    if spec["conversion"]["strategy"] == "Webhook" {
        // The API server of the host would call whatever address is there.
        return Some("spec.conversion.strategy \"Webhook\" is not served by virtual clusters: use \"None\"");
    }
    let group = spec["group"].as_str().unwrap_or_default();
    let is_guarded =
        |guarded: &str| group.strip_suffix(guarded).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    GUARDED.into_iter().any(is_guarded).then_some(
        "spec.group is one of Kubernetes' own, and those belong to the operator of the host cluster, who can install it",
    )
}

fn of_storage_class(class: &Value, rules: &SharedObjects) -> Option<String> {
    let rules = &rules.storage_classes;
    let provisioner = class["provisioner"].as_str().unwrap_or_default();
    if !rules.provisioners.iter().any(|allowed| allowed == provisioner) {
        return Some(format!(
            "the operator of the host cluster does not let virtual clusters use the provisioner {provisioner:?} \
             (sharedObjects.storageClasses.provisioners of the proxy-agent)"
        ));
    }
    let options = class["mountOptions"].as_array().into_iter().flatten().filter_map(Value::as_str);
    if let Some(option) =
        options.into_iter().find(|option| !rules.mount_options.iter().any(|allowed| allowed == option))
    {
        return Some(format!(
            "the operator of the host cluster does not let virtual clusters use the mount option {option:?} \
             (sharedObjects.storageClasses.mountOptions of the proxy-agent)"
        ));
    }
    // `csi.storage.k8s.io/provisioner-secret-namespace` and its like: a driver reads them with rights of its own.
    let mut parameters = class["parameters"].as_object().into_iter().flatten();
    let (secret, _) = parameters.find(|(key, _)| key.to_ascii_lowercase().contains("secret"))?;
    Some(format!("parameters[{secret:?}] would let the driver read a Secret of the host cluster: leave it out"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::StorageClasses;

    fn objects(kind: Kind, object: &Value) -> bool {
        let storage_classes = StorageClasses { provisioners: vec!["p".into()], mount_options: vec!["ro".into()] };
        objection(kind, object, &SharedObjects { storage_classes, ..SharedObjects::default() }).is_some()
    }

    #[test]
    fn definitions_call_nobody_and_take_no_guarded_group() {
        let definition =
            |group: &str, strategy: &str| json!({"spec": {"group": group, "conversion": {"strategy": strategy}}});
        for (group, strategy, refused) in [
            ("example.com", "None", false),
            ("example.com", "Webhook", true),
            ("k8s.io", "None", true),
            ("gateway.networking.k8s.io", "None", true),
            ("x.kubernetes.io", "None", true),
            ("overlay.atoll.dev", "None", true),
            ("notk8s.io", "None", false),
            ("k8s.io.example.com", "None", false),
        ] {
            assert_eq!(
                objects(Kind::CustomResourceDefinition, &definition(group, strategy)),
                refused,
                "{group} {strategy}"
            );
        }
    }

    #[test]
    fn classes_are_for_their_own_cluster() {
        assert!(objects(Kind::PriorityClass, &json!({"globalDefault": true, "value": 1})));
        assert!(!objects(Kind::PriorityClass, &json!({"globalDefault": false, "value": 1})));
        for (class, refused) in [
            (json!({"provisioner": "p"}), false),
            (json!({"provisioner": "p", "mountOptions": ["ro"], "parameters": {"type": "x"}}), false),
            (json!({"provisioner": "q"}), true),
            (json!({}), true),
            (json!({"provisioner": "p", "mountOptions": ["ro", "suid"]}), true),
            (json!({"provisioner": "p", "parameters": {"csi.storage.k8s.io/node-stage-Secret-name": "x"}}), true),
        ] {
            assert_eq!(objects(Kind::StorageClass, &class), refused, "{class}");
        }
    }
}
