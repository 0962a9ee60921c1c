//! Invalid requests: a virtual cluster must respond like an API server.
//!
//! The tests send each request to a namespace of the host, and to a namespace with the same name in a virtual cluster.
//! The status codes and the Statuses must be equal. If a virtual cluster refuses a request that the host accepts, the
//! tests contain the expected message.

use anyhow::{Context, ensure};
use atoll_tests::host::everywhere_kubeedge;
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::{Curl, Route, VirtualSite, eventually};
use serde_json::Value;

use super::{BEIJING, namespace};

/// The namespace on both sides.
const HERE: &str = "errors";

/// An invalid request.
struct Bad {
    method: &'static str,
    path: String,
    media: &'static str,
    body: String,
    options: &'static [&'static str],
}

/// The two sides.
struct Sides {
    host: Curl,
    cluster: Curl,
}

// === impl Bad ===

impl Bad {
    fn new(method: &'static str, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), media: JSON, body: String::new(), options: &[] }
    }

    fn body(self, media: &'static str, body: &str) -> Self {
        Self { media, body: body.to_owned(), ..self }
    }

    fn with(self, options: &'static [&'static str]) -> Self {
        Self { options, ..self }
    }
}

const JSON: &str = "application/json";
const CONFIG_MAPS: &str = "/api/v1/namespaces/errors/configmaps";

// === impl Sides ===

impl Sides {
    fn new(site: &VirtualSite) -> anyhow::Result<Self> {
        for kubectl in [site.host().kubectl(), site.administrator(BEIJING, Route::Proxy)?] {
            // The tests of this module share the namespace.
            if kubectl.run(&["get", "namespace", HERE])?.code != 0 {
                kubectl.run_with(&["create", "-f", "-"], &namespace(HERE))?;
            }
            kubectl.ok(&["get", "namespace", HERE])?;
        }
        let pki = site.host().dir().join("pki");
        let address = site.host().api_servers()?.into_iter().next().context("no API server")?;
        let host = Curl::directly(&address, &pki.join("ca.crt"));
        let host = host.with_certificate(&pki.join("admin.crt"), &pki.join("admin.key"));
        Ok(Self { host, cluster: site.curl(BEIJING, Route::Path)? })
    }

    /// Sends all requests, and reports all differences together.
    fn agree(&self, all: &[Bad]) -> anyhow::Result<()> {
        let mut differences = Vec::new();
        for bad in all {
            let ask = |side: &Curl| {
                let side = side.clone().with(bad.options);
                side.send_as(bad.method, &bad.path, bad.media, &bad.body)
            };
            let (host, cluster) = (ask(&self.host)?, ask(&self.cluster)?);
            let said_there = output(&in_our_words(&host.body));
            let alike = host.code == cluster.code && (host.code < 400 || said_there == output(&cluster.body));
            if !alike {
                let Bad { method, path, media, body, .. } = bad;
                differences.push(format!(
                    "{method} {path} {media} {body:.300}\n- {} {}\n+ {} {}",
                    host.code, host.body, cluster.code, cluster.body
                ));
            }
        }
        ensure!(differences.is_empty(), "{}", differences.join("\n\n"));
        Ok(())
    }
}

/// Messages that changed since Kubernetes 1.32. The agent uses those of the newest version on any host.
const WORDS: [(&str, &str); 2] = [
    ("\"415: Unsupported Media Type\"", "\"415: Unsupported Media Type\\n\\nAvailable representations: \""),
    ("\\\"a/b/c\\\": a qualified name must", "\\\"a/b/c\\\": a valid label key must"),
];

fn in_our_words(body: &str) -> String {
    let words = if everywhere_kubeedge() { &WORDS[..] } else { &[] };
    words.iter().fold(body.to_owned(), |body, (old, new)| body.replace(old, new))
}

/// A Status as JSON, or any other body as text.
fn output(body: &str) -> Value {
    serde_json::from_str(body).unwrap_or_else(|_| Value::from(body))
}

pub(super) fn heads_have_no_body(site: &VirtualSite) -> anyhow::Result<()> {
    let sides = Sides::new(site)?;
    let paths = [
        "/api/v1/namespaces/errors/configmaps/kube-root-ca.crt",
        "/api/v1/namespaces/errors/configmaps/none",
        CONFIG_MAPS,
        "/api/v1/namespaces/errors",
        "/api/v1/nodes/beijing-1",
        "/api/v1/pods",
    ];
    for options in [&["--head", "--output", "/dev/null", "--http1.1"], &["--head", "--output", "/dev/null", "--http2"]]
    {
        let all: Vec<Bad> = paths.iter().map(|path| Bad::new("HEAD", *path).with(options)).collect();
        sides.agree(&all)?;
    }
    Ok(())
}

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/errors/deployments";
const NAMESPACES: &str = "/api/v1/namespaces";
const ROLE_BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/errors/rolebindings";
const ROOT_CA: &str = "/api/v1/namespaces/errors/configmaps/kube-root-ca.crt";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Bodies that are not a `ConfigMap`.
const BODIES: [&str; 17] = [
    "",
    "x",
    "7",
    "null",
    "[]",
    "\"a\"",
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a""#,
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}{}"#,
    "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\u{1}\"}}",
    r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}"#,
    r#"{"apiVersion":"v2","kind":"ConfigMap","metadata":{"name":"a"}}"#,
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":7}"#,
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":7}}"#,
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":7}}"#,
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"other"}}"#,
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"Not_a_Name"}}"#,
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":7}}"#,
];

/// YAML documents that are not an object.
const DOCUMENTS: [&str; 7] =
    ["a: b: c", "a:\n\t- b", "hello", "{\"a\":", "- a", "metadata: {name: a", "a: 1\n---\nmetadata: 7"];

/// Invalid Namespaces.
const NAMES: [&str; 7] = [
    r#"{"metadata":{"name":"Bad_Name"}}"#,
    r#"{"metadata":{"name":"a.b"}}"#,
    r#"{"metadata":{"name":"a/b"}}"#,
    r#"{"metadata":{"name":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}}"#,
    r#"{"metadata":{"name":7}}"#,
    r#"{"metadata":{}}"#,
    r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}"#,
];

pub(super) fn bodies_are_read_as_go_reads_them(site: &VirtualSite) -> anyhow::Result<()> {
    let sides = Sides::new(site)?;
    let mut all = Vec::new();
    for body in BODIES {
        all.push(Bad::new("POST", CONFIG_MAPS).body(JSON, body));
        all.push(Bad::new("PUT", ROOT_CA).body(JSON, body));
        all.push(Bad::new("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").body(JSON, body));
    }
    let strict = format!("{CONFIG_MAPS}?fieldValidation=Strict");
    let twice = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","name":"b"}}"#;
    all.push(Bad::new("POST", strict).body(JSON, twice));
    for body in DOCUMENTS {
        all.push(Bad::new("POST", CONFIG_MAPS).body(YAML, body));
        all.push(Bad::new("POST", NAMESPACES).body(YAML, body));
    }
    for body in ["k8s\0nonsense", "{}", "k8s\0"] {
        all.push(Bad::new("POST", CONFIG_MAPS).body(PROTOBUF, body));
    }
    for media in ["text/plain", "application/cbor", "nonsense"] {
        all.push(Bad::new("POST", CONFIG_MAPS).body(media, "{}"));
        all.push(Bad::new("PUT", CONFIG_MAPS).body(media, "{}"));
    }
    for field in [r#""nodeSelector":"beijing""#, r#""tolerations":{}"#, r#""containers":7"#, ""] {
        let spec = format!(r#"{{"metadata":{{"name":"a"}},"spec":{{"template":{{"spec":{{{field}}}}}}}}}"#);
        all.push(Bad::new("POST", DEPLOYMENTS).body(JSON, &spec));
    }
    for body in ["", "[]", "{", r#"{"metadata":{"name":7}}"#] {
        all.push(Bad::new("POST", ROLE_BINDINGS).body(JSON, body));
    }
    sides.agree(&all)
}

pub(super) fn names_of_namespaces_are_labels(site: &VirtualSite) -> anyhow::Result<()> {
    let sides = Sides::new(site)?;
    let mut all = Vec::new();
    for body in ["", "[]", "{\"metadata\":"].into_iter().chain(NAMES) {
        all.push(Bad::new("POST", NAMESPACES).body(JSON, body));
        all.push(Bad::new("PUT", format!("{NAMESPACES}/errors")).body(JSON, body));
    }
    all.push(Bad::new("PUT", format!("{NAMESPACES}/errors")).body(JSON, r#"{"metadata":{"name":"none"}}"#));
    all.push(Bad::new("PATCH", format!("{NAMESPACES}/errors")).body(MERGE_PATCH, r#"{"metadata":{"name":"none"}}"#));
    for (method, path) in [
        ("GET", "/api/v1/namespaces/Not_a_Name"),
        ("GET", "/api/v1/namespaces/Not_a_Name/pods"),
        ("GET", "/api/v1/namespaces/Not_a_Name/pods/a"),
        ("DELETE", "/api/v1/namespaces/Not_a_Name/pods/a"),
        ("DELETE", "/api/v1/namespaces/none/pods"),
        ("DELETE", "/api/v1/namespaces/none/pods/a"),
        ("DELETE", "/api/v1/namespaces/none"),
        // Methods that no resource supports.
        ("PUT", "/api/v1/pods"),
        ("POST", "/api/v1/pods"),
        ("DELETE", "/api/v1/pods"),
        ("DELETE", "/api/v1/namespaces"),
        ("PUT", CONFIG_MAPS),
        ("OPTIONS", CONFIG_MAPS),
        ("FROB", CONFIG_MAPS),
    ] {
        all.push(Bad::new(method, path));
    }
    sides.agree(&all)
}

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// JSON patches of a `ConfigMap` that are invalid, or that cannot be applied.
const JSON_PATCHES: [&str; 20] = [
    "",
    "{}",
    "x",
    r#"[{"op":"#,
    "[7]",
    r#"[{"op":7,"path":"/data/a"}]"#,
    r#"[{"op":"add","path":7}]"#,
    r#"[{"op":"frob","path":"/data/a"}]"#,
    r#"[{"path":"/data/a"}]"#,
    r#"[{"op":"remove"}]"#,
    r#"[{"op":"test","path":"/data/a","value":"b"}]"#,
    r#"[{"op":"test","path":"/metadata/namespace","value":"errors-ke-beijing"}]"#,
    r#"[{"op":"remove","path":"/data/none"}]"#,
    r#"[{"op":"add","path":"/a/b/c","value":1}]"#,
    r#"[{"op":"move","from":"/data/none","path":"/data/a"}]"#,
    r#"[{"op":"test","path":"","value":{}}]"#,
    r#"[{"op":"replace","path":"","value":7}]"#,
    r#"[{"op":"replace","path":"/metadata/namespace","value":"other"}]"#,
    r#"[{"op":"replace","path":"/metadata/name","value":"other"}]"#,
    r#"[{"op":"remove","path":"/metadata"}]"#,
];

/// Merge patches that are invalid, or whose result is not a `ConfigMap`.
const MERGE_PATCHES: [&str; 8] = [
    "",
    "[]",
    "x",
    r#"{"a":"#,
    "\"a\"",
    r#"{"metadata":{"namespace":"other"}}"#,
    r#"{"metadata":{"name":"other"}}"#,
    r#"{"metadata":{"namespace":7}}"#,
];

pub(super) fn patches_fail_alike(site: &VirtualSite) -> anyhow::Result<()> {
    let sides = Sides::new(site)?;
    let one = format!("{CONFIG_MAPS}/patched");
    for side in [&sides.host, &sides.cluster] {
        let body = r#"{"metadata":{"name":"patched"},"data":{"a":"1"}}"#;
        let made = side.send("POST", CONFIG_MAPS, body)?;
        ensure!(made.code == 201, "{}", made.body);
    }
    let mut all = Vec::new();
    // Kubernetes 1.32 regards this as no change.
    let is_taken = |body: &&str| everywhere_kubeedge() && body.contains(r#""replace","path":"""#);
    for body in JSON_PATCHES.into_iter().filter(|body| !is_taken(body)) {
        all.push(Bad::new("PATCH", &*one).body(JSON_PATCH, body));
    }
    for body in MERGE_PATCHES {
        for media in [STRATEGIC_PATCH, APPLY] {
            all.push(Bad::new("PATCH", format!("{one}?fieldManager=a")).body(media, body));
        }
    }
    for body in &MERGE_PATCHES[..7] {
        all.push(Bad::new("PATCH", &*one).body(MERGE_PATCH, body));
    }
    for media in ["", "text/plain", JSON, "application/apply-patch+cbor"] {
        for path in [&*one, "/api/v1/namespaces/errors/configmaps/none", CONFIG_MAPS, "/api/v1/pods"] {
            all.push(Bad::new("PATCH", path).body(media, "{}"));
        }
    }
    for media in [JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY] {
        for parameter in ["dryRun=a", "fieldValidation=a", "fieldManager=%00", "force=true"] {
            let body = match media {
                JSON_PATCH => r#"[{"op":"add","path":"/metadata/namespace","value":"errors"}]"#,
                APPLY => r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"patched"}}"#,
                _ => "{}",
            };
            all.push(Bad::new("PATCH", format!("{one}?{parameter}")).body(media, body));
        }
    }
    let apply = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}"#;
    all.push(Bad::new("PATCH", "/api/v1/namespaces/none/configmaps/a?fieldManager=a").body(APPLY, apply));
    sides.agree(&all)
}

/// Requests that only a virtual cluster refuses.
pub(super) fn its_own_refusals_look_like_an_api_servers(site: &VirtualSite) -> anyhow::Result<()> {
    let Sides { cluster, .. } = Sides::new(site)?;
    let template = |spec: &str| {
        let pods = r#""selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":"#;
        format!(
            r#"{{"metadata":{{"name":"own"}},"spec":{{{pods}{{{spec}"containers":[{{"name":"a","image":"a"}}]}}}}}}}}"#
        )
    };
    let made = cluster.send("POST", DEPLOYMENTS, &template(""))?;
    ensure!(made.code == 201, "{}", made.body);
    let elsewhere = template(r#""nodeSelector":{"location":"shanghai"},"#);
    let add = r#"[{"op":"add","path":"/spec/template/spec/nodeSelector","value":{"location":"shanghai"}}]"#;
    let selector = r#"Deployment.apps "own" is invalid: spec.template.spec.nodeSelector[location]: Invalid value: "shanghai": this cluster's nodes have "beijing""#;
    let own = format!("{DEPLOYMENTS}/own");
    for (method, path, media, body) in [
        ("POST", DEPLOYMENTS, JSON, &*elsewhere),
        ("PUT", &own, JSON, &elsewhere),
        ("PATCH", &own, MERGE_PATCH, &elsewhere),
        ("PATCH", &own, STRATEGIC_PATCH, &elsewhere),
        ("PATCH", &own, JSON_PATCH, add),
    ] {
        let status = cluster.send_as(method, path, media, body)?.refused(422, "Invalid", "")?;
        ensure!(status["message"] == selector, "{method} {media}: {status}");
        let cause = &status["details"]["causes"][0];
        ensure!(cause["field"] == "spec.template.spec.nodeSelector[location]", "{method} {media}: {status}");
    }
    for (path, body, message) in [
        (
            "/api/v1/namespaces/errors/pods",
            r#"{"metadata":{"name":"a"},"spec":{"nodeName":"hangzhou-1","containers":[{"name":"a","image":"a"}]}}"#,
            r#"Pod "a" is invalid: spec.nodeName: Invalid value: "hangzhou-1": not a node of this cluster"#,
        ),
        (
            "/api/v1/namespaces/errors/pods/a/binding",
            r#"{"metadata":{"name":"a"},"target":{"name":"hangzhou-1"}}"#,
            r#"Binding "a" is invalid: target.name: Invalid value: "hangzhou-1": not a node of this cluster"#,
        ),
        (
            ROLE_BINDINGS,
            r#"{"metadata":{"name":"atoll:crb:a"},"roleRef":{"kind":"Role","name":"a"}}"#,
            r#"RoleBinding.rbac.authorization.k8s.io "atoll:crb:a" is invalid: metadata.name: Invalid value: "atoll:crb:a": names that begin with "atoll:crb:" are reserved"#,
        ),
        (
            NAMESPACES,
            r#"{"metadata":{"name":"a","labels":{"atoll.dev/namespace":"b"}}}"#,
            r#"Namespace "a" is invalid: metadata.labels[atoll.dev/namespace]: Forbidden: managed by the operator of the host cluster"#,
        ),
    ] {
        let status = cluster.send("POST", path, body)?.refused(422, "Invalid", "")?;
        ensure!(status["message"] == message, "{status}");
    }
    // A user without the right to write gets no error about the body.
    let eve = site.user(BEIJING, "eve")?;
    let refused = eve.run_with(&["create", "--raw", DEPLOYMENTS, "-f", "-"], &elsewhere)?;
    ensure!(refused.code != 0 && refused.stderr.contains("Forbidden"), "{}", refused.stderr);
    // The response to a patch with an invalid result contains the object without hidden fields.
    let nonsense = cluster.send_as("PATCH", &own, MERGE_PATCH, r#"{"spec":{"replicas":"x"}}"#)?;
    nonsense.refused(422, "Invalid", r#"\"namespace\":\"errors\""#)?;
    ensure!(!nonsense.body.contains("nodeSelector") && !nonsense.body.contains(BEIJING), "{}", nonsense.body);
    Ok(())
}

/// Invalid parameters of lists and watches, and invalid combinations.
const LIST_PARAMETERS: [&str; 30] = [
    "continue=nonsense",
    "continue=!!!",
    "continue=AAAA",
    "continue=nonsense&resourceVersion=1",
    "watch=1&continue=nonsense",
    "limit=",
    "limit=x",
    "limit=99999999999999999999",
    "timeoutSeconds=x",
    "watch=1&timeoutSeconds=",
    "resourceVersion=x",
    "resourceVersion=-1",
    "resourceVersionMatch=Exact",
    "resourceVersionMatch=x&resourceVersion=1",
    "resourceVersionMatch=Exact&resourceVersion=0",
    "sendInitialEvents=true",
    "watch=1&sendInitialEvents=true",
    "watch=1&sendInitialEvents=true&resourceVersionMatch=Exact",
    "watch=1&resourceVersion=x",
    "labelSelector=a%20b%20c",
    "labelSelector=a%3D-b-",
    "labelSelector=a%20in%20()",
    "labelSelector=a%3Eb",
    "labelSelector=%28",
    "labelSelector=a%2Fb%2Fc",
    "fieldSelector=nothing%3Da",
    "fieldSelector=nothing",
    "fieldSelector=%5C",
    "fieldSelector=spec.nodeName%3Da",
    "fieldSelector=metadata.namespace%3DBad_Name",
];

/// Invalid parameters of writes and deletes.
const WRITE_PARAMETERS: [&str; 8] = [
    "dryRun=x",
    "dryRun=",
    "dryRun=All&dryRun=x",
    "fieldValidation=x",
    "fieldManager=%00",
    "propagationPolicy=x&dryRun=All",
    "gracePeriodSeconds=x&dryRun=All",
    "propagationPolicy=Orphan&orphanDependents=true&dryRun=All",
];

pub(super) fn parameters_are_judged_alike(site: &VirtualSite) -> anyhow::Result<()> {
    let sides = Sides::new(site)?;
    let mut all = Vec::new();
    for parameter in LIST_PARAMETERS {
        for path in [CONFIG_MAPS, "/api/v1/configmaps", NAMESPACES, "/api/v1/nodes"] {
            all.push(Bad::new("GET", format!("{path}?{parameter}")));
        }
        all.push(Bad::new("DELETE", format!("{CONFIG_MAPS}?{parameter}&dryRun=All")));
    }
    for parameter in WRITE_PARAMETERS {
        let body = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"kube-root-ca.crt"}}"#;
        all.push(Bad::new("POST", format!("{CONFIG_MAPS}?{parameter}")).body(JSON, "{"));
        all.push(Bad::new("POST", format!("{CONFIG_MAPS}?{parameter}")).body(JSON, body));
        all.push(Bad::new("POST", format!("{NAMESPACES}?{parameter}")).body(JSON, r#"{"metadata":{"name":"errors"}}"#));
        // A delete ignores unknown parameters.
        if parameter.contains("dryRun") {
            all.push(Bad::new("DELETE", format!("{ROOT_CA}?{parameter}")));
            all.push(Bad::new("DELETE", format!("{NAMESPACES}/errors?{parameter}")));
        }
    }
    for body in ["{", "[]", r#"{"propagationPolicy":"x"}"#] {
        all.push(Bad::new("DELETE", ROOT_CA).body(JSON, body));
    }
    sides.agree(&all)?;

    // A continue token has expired, so that the client lists again.
    let page = sides.cluster.get("/api/v1/configmaps?limit=1")?.json()?;
    let token = page["metadata"]["continue"].as_str().context("no second page")?;
    let elsewhere = sides.cluster.get(&format!("/api/v1/secrets?continue={token}"))?;
    elsewhere.refused(
        410,
        "Expired",
        "The provided continue parameter is too old to display a consistent list result",
    )?;
    Ok(())
}

const TABLE: &str = "Accept: application/json;as=Table;g=meta.k8s.io;v=v1";

pub(super) fn what_is_not_acceptable(site: &VirtualSite) -> anyhow::Result<()> {
    let sides = Sides::new(site)?;
    let mut all = Vec::new();
    for options in [
        &["--header", "Accept: text/html"],
        &["--header", "Accept: application/cbor"],
        &["--header", "Accept: nonsense"],
        &["--header", "Accept: application/json;as=Table;g=meta.k8s.io;v=v9"],
        &["--header", "Accept: application/json;as=Nothing;g=meta.k8s.io;v=v1"],
        &["--header", "Accept: application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1"],
    ] {
        let watch = format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=1");
        for path in [ROOT_CA, CONFIG_MAPS, &watch, NAMESPACES, "/api/v1/namespaces/errors", "/api/v1/nodes"] {
            all.push(Bad::new("GET", path).with(options));
        }
        all.push(Bad::new("POST", CONFIG_MAPS).body(JSON, "{").with(options));
        all.push(Bad::new("DELETE", "/api/v1/namespaces/errors/configmaps/none").with(options));
    }
    all.push(Bad::new("GET", format!("{ROOT_CA}?includeObject=x")).with(&["--header", TABLE]));
    sides.agree(&all)?;

    // Tables without objects have the same rows.
    let bare = |side: &Curl, path: &str| {
        let side = side.clone().with(&["--header", TABLE]);
        let table =
            side.get(&format!("{path}{}includeObject=None", if path.contains('?') { '&' } else { '?' }))?.json()?;
        let rows = table["rows"].as_array().with_context(|| format!("{table}"))?;
        ensure!(rows.iter().all(|row| row.get("object") == Some(&Value::Null)), "{table}");
        Ok(rows.len())
    };
    let one = "?fieldSelector=metadata.name%3Dkube-root-ca.crt";
    for path in [ROOT_CA, &format!("{CONFIG_MAPS}{one}"), "/api/v1/namespaces/errors", "/api/v1/nodes/beijing-1"] {
        let (host, cluster) = (bare(&sides.host, path)?, bare(&sides.cluster, path)?);
        ensure!((host, cluster) == (1, 1), "{path}: {host} rows on the host, {cluster} in the cluster");
    }
    ensure!(bare(&sides.cluster, "/api/v1/nodes")? == 2, "the cluster has two nodes");
    Ok(())
}

pub(super) fn a_missing_name_hides_no_other(site: &VirtualSite) -> anyhow::Result<()> {
    let kubectl = site.administrator(BEIJING, Route::Proxy)?;
    let shown = kubectl.run(&["get", "node", "beijing-1", "hangzhou-1", "--no-headers"])?;
    ensure!(shown.code == 1 && shown.stdout.starts_with("beijing-1 "), "{}{}", shown.stdout, shown.stderr);
    ensure!(shown.stderr.trim() == r#"Error from server (NotFound): nodes "hangzhou-1" not found"#, "{}", shown.stderr);
    Ok(())
}

/// A namespace that cannot be deleted, and its conditions.
pub(super) fn a_stuck_namespace_counts_what_is_the_clients(site: &VirtualSite) -> anyhow::Result<()> {
    let kubectl = site.administrator(BEIJING, Route::Proxy)?;
    kubectl.ok_with(&["create", "-f", "-"], &namespace("counted"))?;
    let held = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"held","namespace":"counted",
"finalizers":["example.com/hold"]}}"#;
    kubectl.ok_with(&["create", "-f", "-"], held)?;
    kubectl.ok(&["delete", "namespace", "counted", "--wait=false"])?;
    let conditions = "jsonpath={range .status.conditions[*]}{.type}: {.message}{\"\\n\"}{end}";
    eventually(2 * CONDITION_TIMEOUT, || {
        let output = kubectl.ok(&["get", "namespace", "counted", "-o", conditions])?;
        ensure!(
            output.contains(
                "NamespaceContentRemaining: Some resources are remaining: configmaps. has 1 resource instances\n"
            ) && output.contains("finalizers remaining: example.com/hold in 1 resource instances\n"),
            "{output}"
        );
        Ok(())
    })?;
    kubectl.ok(&[
        "patch",
        "configmap",
        "held",
        "-n",
        "counted",
        "--type=json",
        "-p",
        r#"[{"op":"remove","path":"/metadata/finalizers"}]"#,
    ])?;
    kubectl.ok(&["wait", "--for=delete", "namespace/counted", "--timeout=60s"])?;
    Ok(())
}

/// A client with a body that is too large gets the error, even if it reads the response only after sending the body.
pub(super) fn too_large_a_body_is_answered(site: &VirtualSite) -> anyhow::Result<()> {
    let Sides { cluster, .. } = Sides::new(site)?;
    let huge = format!(r#"{{"metadata":{{"name":"huge"}},"data":{{"a":"{}"}}}}"#, "a".repeat(10 << 20));
    for version in ["--http1.1", "--http2"] {
        let patient = cluster.clone().with(&[version, "--header", "Expect:"]);
        let response = patient.send("POST", CONFIG_MAPS, &huge)?;
        response.refused(413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728")?;
    }
    Ok(())
}
