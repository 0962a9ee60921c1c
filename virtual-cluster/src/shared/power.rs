//! Fields that an object of a virtual cluster must not set, because they act on the whole host.

use serde_json::Value;

use super::Kind;
use crate::shared::config::SharedObjects;

/// The maximum number of versions of a definition. The documents of discovery and OpenAPI, which all clients read, contain each
/// version, and all names of the kind in each version.
const MAX_VERSIONS: usize = 10;
/// The maximum number of categories and of short names of a definition. Each one has at most 63 characters.
const MAX_NAMES: usize = 10;

/// Why an object of this kind is refused; `None` if it is allowed.
pub fn objection(kind: Kind, object: &Value, rules: &SharedObjects) -> Option<String> {
    match kind {
        Kind::CustomResourceDefinition => of_definition(&object["spec"], rules),
        Kind::PriorityClass if object["globalDefault"] == true => {
            Some("globalDefault would give this priority to pods of the whole host cluster: leave it out".to_owned())
        }
        Kind::StorageClass => of_storage_class(object, rules),
        _ => None,
    }
}

fn of_definition(spec: &Value, rules: &SharedObjects) -> Option<String> {
    if spec["conversion"]["strategy"] == "Webhook" {
        // The API server of the host would call any address that the client chooses.
        let why = "spec.conversion.strategy \"Webhook\" is not served by virtual clusters: use \"None\"";
        return Some(why.to_owned());
    }
    let length = |list: &Value| list.as_array().map_or(0, Vec::len);
    if length(&spec["versions"]) > MAX_VERSIONS {
        return Some(format!("a definition may have at most {MAX_VERSIONS} versions"));
    }
    if let Some(field) = ["categories", "shortNames"].iter().find(|field| length(&spec["names"][*field]) > MAX_NAMES) {
        return Some(format!("spec.names.{field} may have at most {MAX_NAMES} items"));
    }
    let group = spec["group"].as_str().unwrap_or_default();
    rules.custom_resource_definitions.reserves(group).then(|| {
        format!(
            "the operator of the host cluster reserves API group {group:?} (sharedObjects.customResourceDefinitions \
             of the proxy-agent), but can install the definition on the host"
        )
    })
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
    // For example `csi.storage.k8s.io/provisioner-secret-namespace`: a driver reads the Secret with its own rights.
    let mut parameters = class["parameters"].as_object().into_iter().flatten();
    let (secret, _) = parameters.find(|(key, _)| key.to_ascii_lowercase().contains("secret"))?;
    Some(format!("parameters[{secret:?}] would let the driver read a Secret of the host cluster: leave it out"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::shared::config::{CustomResourceDefinitions, StorageClasses};

    fn objects(kind: Kind, object: &Value) -> bool {
        let storage_classes = StorageClasses { provisioners: vec!["p".into()], mount_options: vec!["ro".into()] };
        objection(kind, object, &SharedObjects { storage_classes, ..SharedObjects::default() }).is_some()
    }

    #[test]
    fn definitions_are_short_in_discovery() {
        let rules = SharedObjects::default();
        let why = |versions: usize, names: &Value| {
            let spec = json!({"group": "example.com", "versions": vec![json!({}); versions], "names": names});
            objection(Kind::CustomResourceDefinition, &json!({"spec": spec}), &rules)
        };
        let few = json!({"categories": vec!["a"; 10], "shortNames": vec!["a"; 10]});
        assert_eq!(why(10, &few), None);
        assert_eq!(why(11, &few).as_deref(), Some("a definition may have at most 10 versions"));
        let many = json!({"categories": vec!["a"; 11]});
        assert_eq!(why(1, &many).as_deref(), Some("spec.names.categories may have at most 10 items"));
    }

    #[test]
    fn definitions_have_no_webhook_and_no_reserved_group() {
        let definition =
            |group: &str, strategy: &str| json!({"spec": {"group": group, "conversion": {"strategy": strategy}}});
        let allowed_groups = vec!["gateway.networking.k8s.io".to_owned().into(), "atoll.dev".to_owned().into()];
        let allowing = CustomResourceDefinitions { allowed_groups, ..CustomResourceDefinitions::default() };
        let allowing = SharedObjects { custom_resource_definitions: allowing, ..SharedObjects::default() };
        for (group, strategy, refused, refused_all_the_same) in [
            ("example.com", "None", false, false),
            ("example.com", "Webhook", true, true),
            ("k8s.io", "None", true, true),
            ("gateway.networking.k8s.io", "None", true, false),
            ("x.gateway.networking.k8s.io", "None", true, false),
            ("networking.k8s.io", "None", true, true),
            ("x.kubernetes.io", "None", true, true),
            ("cluster.x-k8s.io", "None", true, true),
            ("operations.kubeedge.io", "None", true, true),
            ("overlay.atoll.dev", "None", true, true),
            ("notk8s.io", "None", false, false),
            ("k8s.io.example.com", "None", false, false),
        ] {
            let definition = definition(group, strategy);
            let objects =
                |rules: &SharedObjects| objection(Kind::CustomResourceDefinition, &definition, rules).is_some();
            assert_eq!(objects(&SharedObjects::default()), refused, "{definition}");
            assert_eq!(objects(&allowing), refused_all_the_same, "{definition}");
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
