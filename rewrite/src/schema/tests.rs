use super::*;
use crate::protobuf::{Inside, Message};

#[path = "../../schema/generate.rs"]
mod generate;
#[path = "../../schema/generate_messages.rs"]
mod generate_messages;

#[test]
fn the_generated_tables_are_up_to_date() {
    let references = include_str!("../../schema/kubernetes-1.36-references.tsv");
    let messages = include_str!("../../schema/kubernetes-1.36-messages.tsv");
    let remedy = "run `cargo run -p rewrite --example generate-schema`";
    assert!(include_str!("generated.rs") == generate::generate(references), "{remedy}");
    assert!(include_str!("messages.rs") == generate_messages::generate(messages), "{remedy}");
}

#[test]
fn every_kind_has_a_message() {
    for row in KINDS.iter().filter(|row| row.group != "metrics.k8s.io") {
        for version in row.versions {
            for name in [row.kind, row.resource] {
                assert!(proto_program_for(row.group, version, name).is_some(), "{} {version} {name}", row.group);
            }
        }
    }
    assert_eq!(MESSAGES.len(), messages::KINDS.len());
    assert!(proto_program_for("example.com", "v1", "widgets").is_none());
    assert!(proto_program_for("apps", "v9", "deployments").is_none());
}

#[test]
fn every_message_is_one_that_can_be_mapped() {
    fn check(message: &Message) {
        let holds = |keys: &[&str]| assert!(keys.iter().all(|key| message.number(key).is_some()), "{keys:?}");
        match message.place {
            None | Some(Place::NamespaceSelector | Place::Tolerations | Place::AggregationRule) => {}
            Some(Place::RoleMeta | Place::BindingMeta) => holds(&["name", "labels", "annotations"]),
            Some(Place::RoleRef | Place::BoundObject) => holds(&["kind", "name"]),
            Some(Place::NamespaceMeta) => holds(&["name", "generateName", "labels", "annotations"]),
            Some(Place::PodSpec) => holds(&["nodeSelector", "tolerations", "nodeName"]),
            Some(Place::Reference | Place::Claim | Place::EventObject) => assert!(message.number("name").is_some()),
            Some(Place::ParentReference) => holds(&["namespace", "name"]),
            Some(Place::BindingTarget | Place::Subject) => holds(&["kind", "name", "namespace"]),
            Some(Place::Rule) => {
                holds(&["verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs"]);
            }
            Some(Place::ResourceAttributes) => holds(&["resource", "name", "namespace"]),
            Some(place) => panic!("{place:?}"),
        }
        for field in &message.fields {
            match &field.inside {
                Inside::Message(message) => check(message),
                Inside::Text(place) => assert!(matches!(
                    place,
                    Place::OwnNamespace
                        | Place::Namespace
                        | Place::OwnName
                        | Place::RoleName
                        | Place::NoNamespace
                        | Place::OwnGenerateName
                        | Place::OwnUid
                        | Place::ReviewNamespace
                        | Place::Identity
                        | Place::IdentityElement
                        | Place::NodeName
                        | Place::SecretType
                        | Place::ConfigMapName
                )),
                Inside::Entries(place, values) => {
                    assert!(matches!(
                        place,
                        None | Some(
                            Place::NodeSelector
                                | Place::OwnLabels
                                | Place::OwnAnnotations
                                | Place::RoleLabels
                                | Place::RoleAnnotations
                                | Place::BindingLabels
                                | Place::HiddenKeys
                        )
                    ));
                    assert!(values.iter().all(|(_, place)| matches!(
                        place,
                        Place::SecretNamespace | Place::SecretCertificate | Place::ConfigMapCertificate
                    )));
                }
                Inside::Json(_) => {}
                Inside::Number(place) => panic!("{place:?}"),
            }
        }
    }
    for kind in &*MESSAGES {
        check(ProtoProgram::of(kind).root());
    }
}

#[test]
fn every_place_of_a_response_has_its_number() {
    fn check(message: &Message) {
        for field in &message.fields {
            match &field.inside {
                Inside::Message(message) => {
                    assert!(matches!(
                        message.place,
                        None | Some(
                            Place::NamespaceMeta
                                | Place::PodSpec
                                | Place::NamespaceSelector
                                | Place::NamespaceConditions
                                | Place::Tolerations
                                | Place::Rule
                                | Place::ShownRule
                                | Place::Reference
                                | Place::BindingTarget
                                | Place::BoundObject
                                | Place::Subject
                                | Place::Claim
                                | Place::ParentReference
                                | Place::EventObject
                                | Place::ResourceAttributes
                                | Place::RoleRef
                                | Place::ServicePort
                        )
                    ));
                    if message.place == Some(Place::ServicePort) {
                        assert!(["port", "protocol", "nodePort"].iter().all(|key| message.number(key).is_some()));
                    }
                    check(message);
                }
                Inside::Text(place) => assert!(matches!(
                    place,
                    Place::OwnNamespace
                        | Place::OwnName
                        | Place::OwnGenerateName
                        | Place::OwnUid
                        | Place::Namespace
                        | Place::ReviewNamespace
                        | Place::Identity
                        | Place::IdentityElement
                        | Place::Message
                        | Place::OfNode
                        | Place::ProjectedName
                        | Place::NodeName
                        | Place::SecretType
                        | Place::ConfigMapName
                )),
                Inside::Number(place) => assert_eq!(*place, Place::HealthCheckNodePort),
                Inside::Entries(..) | Inside::Json(_) => {}
            }
        }
    }
    for message in messages::KINDS {
        let (group, version, kind, _) = message;
        let program = program_for(group, version, kind);
        assert_eq!(program.has_protobuf(), !matches!(*kind, "ClusterRole" | "ClusterRoleBinding"), "{kind}");
        if !program.has_protobuf() {
            continue;
        }
        let shown = KindProgram::of_responses(message, &program).unwrap_or_else(|error| panic!("{kind}: {error:?}"));
        check(shown.root());
        // This kind has the places of every object.
        let Some((_, metadata)) = shown.root().field(1) else { panic!("{kind} has no metadata") };
        let Inside::Message(metadata) = &metadata.inside else { panic!("{kind} has no metadata") };
        assert!([3, 12, 13].iter().all(|number| metadata.field(*number).is_some()), "{kind}");
    }
}

#[test]
fn every_row_is_a_program() {
    assert_eq!(PROGRAMS.len(), KINDS.len());
}

#[test]
fn resources_have_the_names_of_kubernetes() {
    // From `kubectl api-resources`, the irregular ones and some others.
    for (group, resource, kind) in [
        ("", "pods", "Pod"),
        ("", "endpoints", "Endpoints"),
        ("apps", "controllerrevisions", "ControllerRevision"),
        ("networking.k8s.io", "ingresses", "Ingress"),
        ("networking.k8s.io", "ingressclasses", "IngressClass"),
        ("networking.k8s.io", "networkpolicies", "NetworkPolicy"),
        ("networking.k8s.io", "ipaddresses", "IPAddress"),
        ("storage.k8s.io", "storageclasses", "StorageClass"),
        ("storage.k8s.io", "csistoragecapacities", "CSIStorageCapacity"),
        ("scheduling.k8s.io", "priorityclasses", "PriorityClass"),
        ("metrics.k8s.io", "pods", "PodMetrics"),
        ("policy", "poddisruptionbudgets", "PodDisruptionBudget"),
    ] {
        let row = KINDS.iter().find(|row| row.group == group && row.kind == kind);
        assert_eq!(row.map(|row| row.resource), Some(resource), "{kind}");
    }
}

#[test]
fn every_kind_with_a_pod_template_is_guarded() {
    for (group, kind, path) in [
        ("", "Pod", "spec"),
        ("", "PodTemplate", "template.spec"),
        ("", "ReplicationController", "spec.template.spec"),
        ("apps", "Deployment", "spec.template.spec"),
        ("apps", "ReplicaSet", "spec.template.spec"),
        ("apps", "StatefulSet", "spec.template.spec"),
        ("apps", "DaemonSet", "spec.template.spec"),
        ("apps", "ControllerRevision", "data.spec.template.spec"),
        ("batch", "Job", "spec.template.spec"),
        ("batch", "CronJob", "spec.jobTemplate.spec.template.spec"),
    ] {
        let row = KINDS.iter().find(|row| row.group == group && row.kind == kind).unwrap();
        assert!(row.places.contains(&(path, Place::PodSpec)), "{kind}");
    }
}

#[test]
fn only_namespaces_are_namespaces() {
    assert!(program_for("", "v1", "namespaces").is_of_namespaces());
    assert!(program_for("", "v1", "Namespace").is_of_namespaces());
    assert!(!program_for("example.com", "v1", "namespaces").is_of_namespaces());
    assert!(!program_for("", "v1", "pods").is_of_namespaces());
}

#[test]
fn kinds_and_their_node_fields() {
    for (group, name, kind, field) in [
        ("", "pods", "Pod", Some("spec.nodeName")),
        ("", "Binding", "Binding", Some("target.name")),
        ("apps", "deployments", "Deployment", Some("spec.template.spec.nodeName")),
        ("batch", "cronjobs", "CronJob", Some("spec.jobTemplate.spec.template.spec.nodeName")),
        ("", "podtemplates", "PodTemplate", Some("template.spec.nodeName")),
        ("", "configmaps", "ConfigMap", None),
    ] {
        assert_eq!(kind_of(group, name), Some(kind));
        assert_eq!(program_for(group, "v1", name).node_field().as_deref(), field, "{name}");
    }
    assert_eq!(kind_of("example.com", "widgets"), None);
}

#[test]
fn pointers_touch_places() {
    for (group, name, pointer, touched) in [
        ("", "configmaps", "", true),
        ("", "configmaps", "/data/a", false),
        ("", "configmaps", "/data", true),
        ("", "configmaps", "/data/ca.crt", true),
        ("", "configmaps", "/metadata/labels/a~1b", false),
        ("", "configmaps", "/metadata/namespace", true),
        ("", "configmaps", "metadata/namespace", false),
        ("", "configmaps", "x/metadata/namespace", true),
        ("", "configmaps", "/metadata/ownerReferences/0/name", true),
        ("", "configmaps", "/metadata/ownerReferences/-", true),
        ("apps", "deployments", "/spec/replicas", false),
        ("apps", "deployments", "/spec/template/spec/containers/0/image", false),
        ("apps", "deployments", "/spec/template/spec", true),
        ("apps", "deployments", "/spec/template/spec/nodeSelector/disk", true),
        ("apps", "deployments", "/spec/template/metadata/labels", false),
        ("", "namespaces", "/metadata/labels/a", true),
        ("", "namespaces", "/spec/finalizers", false),
        ("example.com", "widgets", "/spec", false),
        ("example.com", "widgets", "/metadata", true),
    ] {
        assert_eq!(program_for(group, "v1", name).touches(pointer), touched, "{name} {pointer}");
    }
}
