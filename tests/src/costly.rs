//! Request bodies that need much more time or memory than their length suggests.

use std::fmt::Write as _;

use serde_json::json;

/// A `test` operation. With it, the agent applies the patch itself.
pub const TEST: &str = r#"{"op":"test","path":"/spec/template/spec/nodeSelector","value":null}"#;

/// Adds values of 110 levels, and moves the previous value into the leaf of each.
pub fn grown(at: &str) -> String {
    let deep = format!("{}{{}}{}", r#"{"x":"#.repeat(110), "}".repeat(110));
    let leaf = "/x".repeat(110);
    let mut patch = format!(r#"[{{"op":"add","path":"{at}/grown","value":{{}}}}"#);
    for _ in 0..600 {
        let _ = write!(
            patch,
            r#",{{"op":"add","path":"{at}/new","value":{deep}}},{{"op":"move","from":"{at}/grown","path":"{at}/new{leaf}/x"}},{{"op":"move","from":"{at}/new","path":"{at}/grown"}}"#
        );
    }
    let _ = write!(patch, ",{TEST}]");
    patch
}

/// Copies the value at a path into itself. Each copy doubles its size.
pub fn copied(at: &str, times: usize) -> String {
    let text = "x".repeat(1000);
    let mut patch = format!(r#"[{TEST},{{"op":"add","path":"{at}/text","value":"{text}"}}"#);
    for number in 0..times {
        let _ = write!(patch, r#",{{"op":"copy","from":"{at}","path":"{at}/c{number}"}}"#);
    }
    patch.push(']');
    patch
}

/// Adds this array, and then inserts elements at its beginning. Each insertion moves all other elements.
pub fn moved(elements: &str) -> String {
    let mut patch = format!(r#"[{TEST},{{"op":"add","path":"/metadata/x","value":[{elements}]}}"#);
    for _ in 0..9000 {
        patch.push_str(r#",{"op":"add","path":"/metadata/x/0","value":0}"#);
    }
    patch.push(']');
    patch
}

/// Nested arrays with this number of levels.
pub fn nested(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

/// Nine levels with nine aliases each.
pub fn aliases() -> String {
    let mut yaml = String::from("{a0: &a0 [x,x,x,x,x,x,x,x,x]");
    for level in 1..9 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(",");
        let _ = write!(yaml, ", a{level}: &a{level} [{aliases}]");
    }
    yaml.push('}');
    yaml
}

/// A Pod with this number of containers in JSON. Each container is this value, for example `{}` or `null`.
pub fn containers(value: &str, count: usize) -> String {
    let containers = vec![value; count].join(",");
    format!(r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"a"}},"spec":{{"containers":[{containers}]}}}}"#)
}

/// A Pod with this number of empty containers in protobuf. Each has two bytes.
pub fn empty_messages(count: usize) -> Vec<u8> {
    envelope(b"v1", b"Pod", &pod_of_empty_messages(count))
}

/// A Deployment of such Pods.
pub fn deployment_of_empty_messages(count: usize) -> Vec<u8> {
    let spec = field(3, &pod_of_empty_messages(count));
    envelope(b"apps/v1", b"Deployment", &[field(1, &field(1, b"a")), field(2, &spec)].concat())
}

fn pod_of_empty_messages(count: usize) -> Vec<u8> {
    [field(1, &field(1, b"a")), field(2, &field(2, b"").repeat(count))].concat()
}

/// A ConfigMap with this number of keys, each with this value.
pub fn keys(count: usize, value: &str) -> String {
    let keys: Vec<_> = (0..count).map(|key| format!(r#""k{key}":"{value}""#)).collect();
    format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"costly"}},"data":{{{}}}}}"#, keys.join(","))
}

/// A ConfigMap with this number of labels with invalid values.
pub fn labels(count: usize) -> String {
    let labels: Vec<_> = (0..count).map(|label| format!(r#""k{label}":"!""#)).collect();
    let labels = labels.join(",");
    format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"costly","labels":{{{labels}}}}}}}"#)
}

/// A Pod with this number of invalid supplemental groups in protobuf, in one packed field or in many fields.
pub fn groups(count: usize, packed: bool) -> Vec<u8> {
    let group = [&[0xff; 9][..], &[1]].concat(); // -1
    let groups = if packed { field(4, &group.repeat(count)) } else { [&[4 << 3], &group[..]].concat().repeat(count) };
    let container = [field(1, b"a"), field(2, b"a")].concat();
    let spec = [field(2, &container), field(14, &groups)].concat();
    envelope(b"v1", b"Pod", &[field(1, &field(1, b"a")), field(2, &spec)].concat())
}

/// Objects in which the host finds many errors in one value, or quotes a list in many errors. Each has the path of its
/// collection.
pub fn quoted() -> [(&'static str, String); 5] {
    let metadata = |annotation: &str, value: String| json!({"name": "a", "annotations": {annotation: value}});
    let ranges = (0..25_000).map(|range| format!("a{range:x}")).collect::<Vec<_>>().join(",");
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 80}]},
        "metadata": metadata("service.beta.kubernetes.io/load-balancer-source-ranges", ranges),
    });
    let scaler = json!({
        "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
        "metadata": metadata("autoscaling.alpha.kubernetes.io/metrics", format!("[{}]", vec!["{}"; 33_000].join(","))),
        "spec": {"maxReplicas": 1, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}},
    });
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
        "spec": {
            "containers": [{"name": "a", "image": "a"}],
            "volumes": [{"name": "a", "quobyte": {"volume": "a", "registry": ",".repeat(20_000)}}],
        },
    });
    let owner = |uid: String| json!({"apiVersion": "v1", "kind": "A", "name": "a", "uid": uid, "controller": true});
    let uid = |owner: usize| if owner == 0 { "u".repeat(100_000) } else { format!("u{owner}") };
    let owners: Vec<_> = (0..340).map(|number| owner(uid(number))).collect();
    let owned = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "ownerReferences": owners}});
    let scopes: Vec<_> = (0..2_000).map(|scope| format!("{scope}{}", "s".repeat(20))).collect();
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "a"},
        "spec": {"hard": {"pods": "1"}, "scopes": scopes},
    });
    [
        ("/api/v1/namespaces/default/services", service.to_string()),
        ("/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers", scaler.to_string()),
        ("/api/v1/namespaces/default/pods", pod.to_string()),
        ("/api/v1/namespaces/default/resourcequotas", quota.to_string()),
        ("/api/v1/namespaces/default/configmaps", owned.to_string()),
    ]
}

/// Valid objects that are so large that the agent sends samples of them to the host, with the paths of their
/// collections.
pub fn valid() -> [(&'static str, String); 4] {
    let backend = json!({"service": {"name": "a", "port": {"number": 80}}});
    let paths: Vec<_> =
        (0..10).map(|path| json!({"path": format!("/{path}"), "pathType": "Prefix", "backend": backend})).collect();
    let rules: Vec<_> =
        (0..100).map(|host| json!({"host": format!("h{host}.example.com"), "http": {"paths": paths}})).collect();
    let ingress = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "a"}, "spec": {"rules": rules},
    });
    let peers: Vec<_> = (0..40).map(|peer| json!({"ipBlock": {"cidr": format!("10.0.{peer}.0/24")}})).collect();
    let port = json!({"protocol": "TCP", "port": 80});
    let policy = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "a"},
        "spec": {"podSelector": {}, "egress": vec![json!({"to": peers, "ports": [port]}); 60]},
    });
    let env: Vec<_> = (0..250).map(|name| json!({"name": format!("N{name}"), "value": "v"})).collect();
    let mounts: Vec<_> =
        (0..60).map(|name| json!({"name": format!("v{name}"), "mountPath": format!("/{name}")})).collect();
    let containers: Vec<_> = (0..10)
        .map(|name| {
            let args = ["a".repeat(3_000), "b".to_owned()];
            json!({"name": format!("c{name}"), "image": "a", "env": env, "volumeMounts": mounts, "args": args})
        })
        .collect();
    let volumes: Vec<_> = (0..60).map(|name| json!({"name": format!("v{name}"), "emptyDir": {}})).collect();
    let labels = json!({"a": "b"});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers, "volumes": volumes}},
        },
    });
    let endpoints: Vec<_> = (0..1_000)
        .map(|address| {
            let addresses = [format!("10.1.{}.{}", address / 250, address % 250)];
            json!({"addresses": addresses, "conditions": {"ready": true}, "hints": {"forZones": [{"name": "a"}]}})
        })
        .collect();
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": "a"}, "addressType": "IPv4",
        "endpoints": endpoints, "ports": [{"name": "a", "port": 80}],
    });
    [
        ("/apis/networking.k8s.io/v1/namespaces/default/ingresses", ingress.to_string()),
        ("/apis/networking.k8s.io/v1/namespaces/default/networkpolicies", policy.to_string()),
        ("/apis/apps/v1/namespaces/default/deployments", deployment.to_string()),
        ("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", slice.to_string()),
    ]
}

/// A valid Deployment in protobuf that is so large that the agent sends samples of it to the host. Its containers mount
/// 40 volumes.
pub fn valid_deployment() -> Vec<u8> {
    let text = |number, text: &str| field(number, text.as_bytes());
    let item = |item: u32| field(2, &[text(1, &format!("k{item}")), text(2, &format!("p{item}"))].concat());
    let items: Vec<u8> = (0..4).flat_map(item).collect();
    let source = field(2, &field(19, &[field(1, &text(1, "a")), items].concat()));
    let volume = |volume: u32| field(1, &[text(1, &format!("v{volume}")), source.clone()].concat());
    let volumes: Vec<u8> = (0..40).flat_map(volume).collect();
    let variables: Vec<u8> =
        (0..20).flat_map(|name| field(7, &[text(1, &format!("N{name}")), text(2, "v")].concat())).collect();
    let container = |container: u32| {
        let mount = |volume: u32| field(9, &[text(1, &format!("v{volume}")), text(3, &format!("/{volume}"))].concat());
        let mounts: Vec<u8> = (0..10).flat_map(|volume| mount((container + 4 * volume) % 40)).collect();
        field(2, &[text(1, &format!("c{container}")), text(2, "a"), variables.clone(), mounts].concat())
    };
    let containers: Vec<u8> = (0..40).flat_map(container).collect();
    let label = [text(1, "a"), text(2, "b")].concat();
    let template = [field(1, &field(11, &label)), field(2, &[volumes, containers].concat())].concat();
    let spec = [field(2, &field(1, &label)), field(3, &template)].concat();
    envelope(b"apps/v1", b"Deployment", &[field(1, &text(1, "a")), field(2, &spec)].concat())
}

/// Wraps a message in `Unknown` of apimachinery's `pkg/runtime/generated.proto`.
fn envelope(api_version: &[u8], kind: &[u8], message: &[u8]) -> Vec<u8> {
    let of_type = [field(1, api_version), field(2, kind)].concat();
    [&b"k8s\0"[..], &field(1, &of_type), &field(2, message)].concat()
}

/// A field of a protobuf message, with a length.
fn field(number: u8, value: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    let mut length = value.len();
    while length >= 0x80 {
        field.push(u8::try_from(length % 0x80).unwrap_or_default() | 0x80);
        length /= 0x80;
    }
    field.push(u8::try_from(length).unwrap_or_default());
    field.extend_from_slice(value);
    field
}

/// A ClusterRoleBinding with this number of invalid subjects, in YAML without flow style.
pub fn wrong_subjects(count: usize) -> String {
    let subjects = "- kind: W\n".repeat(count);
    format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata:\n  name: a\nroleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: ClusterRole\n  name: view\nsubjects:\n{subjects}"
    )
}

/// A ConfigMap with a text of 17 KB and this number of aliases of it, as in `kubectl apply`. The agent also reads its
/// annotation in the live object.
pub fn aliases_of_a_text(count: usize) -> String {
    let (text, aliases) = ("x".repeat(17_000), vec!["*a"; count].join(", "));
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a, annotations: {{kubectl.kubernetes.io/last-applied-configuration: \"x\"}}}}\na: &a \"{text}\"\nb: [{aliases}]\n"
    )
}
