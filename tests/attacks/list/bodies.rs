//! Requests that cost much more than their length suggests.

use atoll_tests::costly::{
    TEST, aliases, aliases_of_a_text, containers, copied, deployment_of_empty_messages, empty_messages, groups, grown,
    labels, moved, nested, quoted,
};
use serde_json::{Value, json};

use super::paths::{JSON, MERGE_PATCH, RBAC};
use super::repeat::{elements, texts};
use crate::attack::Attack;
use crate::site::AttackSite;
use crate::traffic::{CONFIG_MAPS, Credential, RequestTemplate, Traffic};

const JSON_PATCH: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/default/deployments/costly";
const APPLIED: &str = "/apis/apps/v1/namespaces/default/deployments/costly?fieldManager=a&force=true";
const PODS: &str = "/api/v1/namespaces/default/pods";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1";

pub(super) static ATTACKS: &[Attack] = &[
    Attack::new("json-patches", "8 JSON patches/s that copy, nest and move", json_patches).after(deployment),
    Attack::new("small-parts", "8 bodies/s of as many small values as Atoll accepts, or more", small_parts)
        .after(deployment),
    Attack::new("yaml", "10 documents/s of aliases, of many nodes and of nested ones", yaml).after(deployment),
    Attack::new("aliases", "20 applies/s of 480 aliases of a text of 17 KB", || {
        let path = format!("{CONFIG_MAPS}/a?fieldManager=a");
        Traffic::Requests(
            20,
            vec![RequestTemplate::new(Credential::Admin, "PATCH", &path).with(APPLY, aliases_of_a_text(480))],
        )
    }),
    Attack::new("empty-containers", "4 Pods/s of 87,000 empty containers, in JSON of 256 KB", || {
        Traffic::Requests(
            4,
            vec![RequestTemplate::new(Credential::Admin, "POST", PODS).with(JSON, containers("{}", 87_000))],
        )
    }),
    Attack::new("few-empty-containers", "4 Pods/s of 5,000 empty containers, in JSON of 15 KB", || {
        Traffic::Requests(
            4,
            vec![RequestTemplate::new(Credential::Admin, "POST", PODS).with(JSON, containers("{}", 5_000))],
        )
    }),
    Attack::new("invalid-labels", "4 ConfigMaps/s of 10,000 labels that are not valid, in JSON of 120 KB", || {
        Traffic::Requests(
            4,
            vec![RequestTemplate::new(Credential::Admin, "POST", CONFIG_MAPS).with(JSON, labels(10_000))],
        )
    }),
    Attack::new(
        "invalid-groups",
        "4 Pods/s of 50,000 groups that are not valid, in protobuf, in one field or many",
        || {
            let of =
                |packed| RequestTemplate::new(Credential::Admin, "POST", PODS).with(PROTOBUF, groups(50_000, packed));
            Traffic::Requests(4, [false, true].map(of).into())
        },
    ),
    Attack::new(
        "field-managers",
        "4 ConfigMaps/s with a field manager of 10,000 characters that are not printable",
        || {
            let object = |managed: Value| {
                let metadata = json!({"name": "a", "managedFields": managed});
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}).to_string()
            };
            let in_query = format!("{CONFIG_MAPS}?fieldManager={}", "%01".repeat(10_000));
            let in_body = json!([{"manager": "\u{1}".repeat(10_000), "operation": "Update", "apiVersion": "v1",
            "fieldsType": "FieldsV1", "fieldsV1": {}}]);
            let of =
                |path: &str, managed| RequestTemplate::new(Credential::Admin, "POST", path).with(JSON, object(managed));
            Traffic::Requests(4, vec![of(&in_query, Value::Null), of(CONFIG_MAPS, in_body)])
        },
    ),
    Attack::new(
        "quoted-lists",
        "4 objects/s in which the host finds many errors in one text or quotes a list in each",
        || {
            let of = |(path, object): (&str, String)| {
                RequestTemplate::new(Credential::Admin, "POST", path).with(JSON, object)
            };
            Traffic::Requests(4, quoted().map(of).into())
        },
    ),
    Attack::new("null-containers", "4 Pods/s of 33,000 containers that are null, in JSON of 165 KB", || {
        Traffic::Requests(
            4,
            vec![RequestTemplate::new(Credential::Admin, "POST", PODS).with(JSON, containers("null", 33_000))],
        )
    }),
    Attack::new("empty-messages", "4 Pods/s of 100,000 empty containers in protobuf, or of 1.5 million", || {
        let of = |count| RequestTemplate::new(Credential::Admin, "POST", PODS).with(PROTOBUF, empty_messages(count));
        Traffic::Requests(4, [100_000, 1_500_000].map(of).into())
    }),
    Attack::new(
        "empty-messages-in-templates",
        "8 Deployments/s of 15,000 empty containers, in protobuf of 30 KB",
        || {
            let body = deployment_of_empty_messages(15_000);
            Traffic::Requests(
                8,
                vec![RequestTemplate::new(Credential::Admin, "POST", DEPLOYMENTS).with(PROTOBUF, body)],
            )
        },
    ),
    Attack::new("delete-options", "8 deletes/s with DeleteOptions of 1.4 million nodes, in YAML of 3 MB", || {
        let options = format!("kind: DeleteOptions\napiVersion: v1\nx:\n{}", "-\n".repeat(1_400_000));
        Traffic::Requests(
            8,
            vec![RequestTemplate::new(Credential::Admin, "DELETE", &format!("{CONFIG_MAPS}/none")).with(YAML, options)],
        )
    }),
    Attack::new("names", "4 bodies/s of nothing but short names of namespaces", || {
        let of_account = r#"{"kind":"ServiceAccount","name":"a","namespace":"b"}"#;
        binding(4, "namespaces/default/rolebindings", &elements(of_account, 55_000))
    }),
    Attack::new("field-errors", "2 bindings/s with 60,000 invalid subjects each", || {
        binding(2, "clusterrolebindings", &elements(r#"{"kind":"Wrong","name":"a"}"#, 60_000))
    }),
    Attack::new("queries", "20 URLs/s with 10,000 parameters, or with selectors of 60 KB", || {
        let paths = ["/api/v1/namespaces/default/pods", "/api/v1/pods", "/api/v1/nodes"];
        let queries = ["&".repeat(10_000), "a=b&".repeat(5_000), format!("labelSelector={}", "a,".repeat(30_000))];
        let of = |query: &String| {
            paths.map(|path| RequestTemplate::new(Credential::Admin, "GET", &format!("{path}?{query}")))
        };
        Traffic::Requests(20, queries.iter().flat_map(of).collect())
    }),
    Attack::new("reviews", "4 access reviews/s of 250,000 groups, or of 1,000", || {
        let attributes = json!({"verb": "get", "resource": "pods"});
        let of = |credential, kind: &str, groups| {
            let spec = json!({"user": "somebody", "groups": texts("g", groups), "resourceAttributes": attributes});
            RequestTemplate::new(credential, "POST", &format!("{REVIEWS}/{kind}"))
                .with(JSON, json!({"spec": spec}).to_string())
        };
        let (own, others) = ("selfsubjectaccessreviews", "subjectaccessreviews");
        let reviews = [
            (Credential::User, own, 250_000),
            (Credential::Admin, others, 250_000),
            (Credential::Admin, others, 1_000),
        ];
        Traffic::Requests(4, reviews.map(|(credential, kind, groups)| of(credential, kind, groups)).into())
    }),
    Attack::new(
        "refused-roles",
        "10 ClusterRoles/s with 9,900 or 4 million rights to paths that their writer lacks",
        || {
            let of = |verbs, paths| json!([{"verbs": texts("v", verbs), "nonResourceURLs": texts("/p", paths)}]);
            let roles = [of(99, 100), of(2_000, 2_000)];
            Traffic::Requests(10, roles.map(|rules| role(Credential::User, "clusterroles", &rules)).into())
        },
    )
    .after(writer_of_roles),
    Attack::new("permissions", "8 roles/s that grant 9,261 or 125 million permissions", || {
        let of = |count| json!([{"verbs": texts("v", count), "apiGroups": texts("g", count), "resources": texts("r", count)}]);
        let paths = ["clusterroles?dryRun=All", "namespaces/default/roles?dryRun=All"];
        let both = |rules: Value| paths.map(|path| role(Credential::Admin, path, &rules));
        Traffic::Requests(8, [of(21), of(500)].map(both).concat())
    }),
];

fn json_patches() -> Traffic {
    let at = "/metadata/annotations";
    let patches = [copied(at, 22), copied(at, 9), grown(at), moved(&elements("0", 300_000))];
    // The administrator may patch the Deployment. The user may only read it.
    let of = |credential| {
        patches.clone().map(|patch| RequestTemplate::new(credential, "PATCH", DEPLOYMENT).with(JSON_PATCH, patch))
    };
    Traffic::Requests(8, [of(Credential::Admin), of(Credential::User)].concat())
}

fn small_parts() -> Traffic {
    let object = r#"{"":0}"#;
    let all = [
        elements(object, 80_000),
        elements(object, 370_000),
        elements("0", 500_000),
        elements("[]", 230_000),
        nested(20_000),
    ];
    let of = |parts: &String| {
        let object = format!(
            r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"costly","annotations":{{"a":"b"}}}},"spec":{{"template":{{"spec":{{"x":{parts}}}}}}}}}"#
        );
        let patch = format!(r#"[{TEST},{{"op":"add","path":"/metadata/x","value":{parts}}}]"#);
        [
            RequestTemplate::new(Credential::Admin, "PATCH", DEPLOYMENT).with(MERGE_PATCH, object.clone()),
            RequestTemplate::new(Credential::Admin, "PUT", DEPLOYMENT).with(JSON, object.clone()),
            RequestTemplate::new(Credential::Admin, "PATCH", APPLIED).with(APPLY, object),
            RequestTemplate::new(Credential::Admin, "PATCH", DEPLOYMENT).with(JSON_PATCH, patch),
        ]
    };
    Traffic::Requests(8, all.iter().flat_map(of).collect())
}

fn yaml() -> Traffic {
    let of = |yaml: &str| {
        format!("apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: costly, namespace: default}}\nx: {yaml}\n")
    };
    let all = [
        of(&aliases()),
        of(&elements("a", 400_000)),
        of(&elements("{a}", 700_000)),
        of(&"[".repeat(1_000_000)),
        "- ".repeat(1_000_000),
    ];
    let sent = |body: &String| {
        [Credential::None, Credential::Admin].map(|credential| {
            [("PUT", DEPLOYMENT, YAML), ("PATCH", APPLIED, APPLY)]
                .map(|(method, path, media)| RequestTemplate::new(credential, method, path).with(media, body.clone()))
        })
    };
    Traffic::Requests(10, all.iter().flat_map(sent).flatten().collect())
}

fn binding(rate: u32, path: &str, subjects: &str) -> Traffic {
    let body = format!(
        r#"{{"metadata":{{"name":"costly"}},"roleRef":{{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"}},"subjects":{subjects}}}"#
    );
    Traffic::Requests(
        rate,
        vec![RequestTemplate::new(Credential::Admin, "POST", &format!("{RBAC}/{path}")).with(JSON, body)],
    )
}

fn role(credential: Credential, path: &str, rules: &Value) -> RequestTemplate {
    let role = json!({"metadata": {"name": "costly"}, "rules": rules});
    RequestTemplate::new(credential, "POST", &format!("{RBAC}/{path}")).with(JSON, role.to_string())
}

/// Creates the Deployment that requests patch. The user may read it.
fn deployment(site: &AttackSite) -> anyhow::Result<()> {
    site.create("/apis/apps/v1/namespaces/default/deployments", &json!({"metadata": {"name": "costly", "annotations": {"a": "b"}},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "a", "image": "a"}]}}}}))?;
    site.bind_user("view")
}

fn writer_of_roles(site: &AttackSite) -> anyhow::Result<()> {
    site.admin.ok(&["create", "clusterrole", "writer", "--verb=create", "--resource=clusterroles"])?;
    site.bind_user("writer")
}
