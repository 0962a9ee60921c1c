//! Ambiguous requests: each gets the expected Status, and the host does not change.

use anyhow::{Context, ensure};
use atoll_tests::{Kubectl, Route, VirtualSite, eventually, kubectl::CONDITION_TIMEOUT};

use super::{BEIJING, HANGZHOU, namespace};

/// A request and the expected response: code, reason, and a part of the message.
struct Bad<'a> {
    method: &'a str,
    path: String,
    body: &'a str,
    code: u16,
    reason: &'a str,
    says: &'a str,
}

/// Invalid paths. The agent refuses them before it authorizes the request.
const PATHS: [(&str, &str); 11] = [
    ("/api/v1/namespaces/inner%2f..%2finner-ke-hangzhou/secrets", "encoded slash"),
    ("/api/v1/namespaces/..%2fnodes", "encoded slash"),
    ("/api/v1/namespaces/inner/secrets/..%2f..%2f..%2fnodes", "encoded slash"),
    ("/api/v1/namespaces/../namespaces/inner-ke-hangzhou/secrets", "dot segment"),
    ("/api/v1/namespaces/%2e%2e/nodes", "dot segment"),
    ("/../ke-hangzhou/api/v1/nodes", "dot segment"),
    ("/%2e%2e/ke-hangzhou/api/v1/nodes", "dot segment"),
    ("//api/v1/nodes", "empty segment"),
    ("/api/v1/namespaces//inner/secrets", "empty segment"),
    ("/api/v1/namespaces/inner//secrets", "empty segment"),
    ("/api/v1/namespaces/inner%00/secrets", "control characters"),
];

/// Bodies with an ambiguous name, or with a name of another cluster.
const BODIES: [(&str, &str); 9] = [
    (r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"na"#, "unexpected end of JSON input"),
    (r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","name":"b"}}"#, "metadata.name: duplicate field"),
    (
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"inner","namespace":"inner-ke-hangzhou"}}"#,
        "metadata.namespace: duplicate field",
    ),
    (
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"inner","namesp\u0061ce":"inner-ke-hangzhou"}}"#,
        "metadata.namespace: duplicate field",
    ),
    (
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"metadata":{"name":"a","namespace":"inner-ke-hangzhou"}}"#,
        "metadata: duplicate field",
    ),
    (r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namesp\u0061ce":"inner-ke-hangzhou"}}"#, DIFFERS),
    (r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"\u0069nner-ke-hangzhou"}}"#, DIFFERS),
    (r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"inner-ke-beijing"}}"#, DIFFERS),
    (r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"inner/../x"}}"#, DIFFERS),
];
const DIFFERS: &str = "does not match the namespace";

/// Names that would be those of an existing or a new namespace of the host.
const TWO_NAMES: [&str; 2] = [
    r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a","name":"atoll-system"}}"#,
    r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a","name":"not-there"}}"#,
];

/// Namespaces of the host, which do not exist in the virtual cluster.
const HOST_NAMES: [&str; 4] = ["inner-ke-hangzhou", "inner-ke-beijing", "atoll-root-ke-beijing", "atoll-system"];

pub(super) fn change_nothing(site: &VirtualSite) -> anyhow::Result<()> {
    let curl = site.curl(BEIJING, Route::Path)?.with(&["--http1.1"]);
    for cluster in [BEIJING, HANGZHOU] {
        site.administrator(cluster, Route::Proxy)?.ok_with(&["create", "-f", "-"], &namespace("inner"))?;
    }
    let host = site.host().kubectl();
    let admin = site.administrator(BEIJING, Route::Proxy)?;
    admin.ok_with(&["create", "-f", "-"], UNBOUND)?;
    let resources = host.ok(&["api-resources", "--verbs=list", "-o", "name"])?;
    let resources: Vec<&str> = resources.lines().filter(|name| !RESTLESS.contains(name)).collect();
    let before = settled(&host, &resources.join(","))?;

    // Use kubectl, because curl with HTTP/1.1 ignores a response while it sends the body.
    let huge = format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","data":{{"a":"{}"}}}}"#, "a".repeat(10 << 20));
    let refused = admin.run_with(&["create", "--raw", CONFIG_MAPS, "-f", "-"], &huge)?;
    ensure!(
        refused.code != 0 && refused.stderr.contains("entity too large: limit is 3145728"),
        "{:.500}",
        refused.stderr
    );
    let foreign_label = r#"{"apiVersion":"v1","kind":"Namespace",
"metadata":{"name":"taken-over","labels":{"atoll.dev/virtual-cluster":"ke-hangzhou"}}}"#;
    let root = namespace("atoll-root-ke-beijing");
    for bad in requests(foreign_label, &root) {
        let response = curl.send(bad.method, &bad.path, bad.body)?;
        response
            .refused(bad.code, bad.reason, bad.says)
            .with_context(|| format!("{} {} {:.200}", bad.method, bad.path, bad.body))?;
    }
    let unknown = site.curl(BEIJING, Route::Path)?;
    unknown.elsewhere("/clusters/nowhere").get("/version")?.refused(404, "NotFound", "nowhere")?;
    unknown.elsewhere("").get("/version")?.refused(404, "NotFound", "no cluster is named")?;
    unknown.anonymous().send("POST", CONFIG_MAPS, CONFIG_MAP)?.refused(403, "Forbidden", "system:anonymous")?;

    let after = settled(&host, &resources.join(","))?;
    let changed: Vec<&str> = after.lines().filter(|line| !before.contains(line)).collect();
    ensure!(before == after, "the host has changed: {changed:?}");
    Ok(())
}

const CONFIG_MAPS: &str = "/api/v1/namespaces/inner/configmaps";
const CONFIG_MAP: &str = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}"#;

fn requests<'a>(foreign_label: &'a str, root: &'a str) -> Vec<Bad<'a>> {
    let bad =
        |method, path: &str, body, code, reason, says| Bad { method, path: path.to_owned(), body, code, reason, says };
    let mut all = Vec::new();
    for (path, says) in PATHS {
        for method in ["GET", "DELETE"] {
            all.push(bad(method, path, "", 400, "BadRequest", says));
        }
    }
    for (body, says) in BODIES {
        all.push(bad("POST", CONFIG_MAPS, body, 400, "BadRequest", says));
    }
    for name in HOST_NAMES {
        let path = format!("/api/v1/namespaces/{name}");
        all.push(bad("GET", &path, "", 404, "NotFound", name));
        all.push(bad("DELETE", &path, "", 404, "NotFound", name));
        all.push(bad("POST", &format!("{path}/configmaps"), CONFIG_MAP, 404, "NotFound", name));
    }
    all.push(bad("POST", "/api/v1/namespaces", root, 409, "Conflict", "taken"));
    // No response may show whether the host has such a namespace.
    for body in TWO_NAMES {
        all.push(bad("POST", "/api/v1/namespaces", body, 400, "BadRequest", "duplicate field"));
    }
    all.push(bad("POST", "/api/v1/namespaces", foreign_label, 422, "Invalid", "atoll.dev/virtual-cluster"));
    let selector = "/api/v1/namespaces?labelSelector=atoll.dev/virtual-cluster%3Dke-hangzhou";
    all.push(bad("GET", selector, "", 400, "BadRequest", "atoll.dev"));
    all.push(bad("GET", "/api/v1/pods?labelSelector=a%3D%3D%3Db,(((", "", 400, "BadRequest", "unable to parse"));
    for path in ["/api/v1/nodes/beijing-1/proxy/pods", "/api/v1/nodes/hangzhou-1/proxy/pods"] {
        all.push(bad("GET", path, "", 403, "Forbidden", "host cluster"));
    }
    for path in ["/api/v1/namespaces/inner/pods/unbound/binding", "/api/v1/namespaces/inner/bindings"] {
        all.push(bad("POST", path, FOREIGN_BINDING, 422, "Invalid", "not a node of this cluster"));
    }
    all.push(bad("POST", "/api/v1/namespaces/inner/pods", FOREIGN_POD, 422, "Invalid", "spec.nodeName"));
    all.push(bad("GET", "/api/v1/nodes/hangzhou-1", "", 404, "NotFound", "hangzhou-1"));
    all
}

/// A pod that the scheduler ignores.
const UNBOUND: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"unbound","namespace":"inner"},
"spec":{"schedulerName":"nobody","containers":[{"name":"a","image":"a"}]}}"#;
const FOREIGN_POD: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"foreign"},
"spec":{"nodeName":"hangzhou-1","containers":[{"name":"a","image":"a"}]}}"#;
const FOREIGN_BINDING: &str = r#"{"apiVersion":"v1","kind":"Binding","metadata":{"name":"unbound"},
"target":{"kind":"Node","name":"hangzhou-1"}}"#;

/// Fields that change without a request: heartbeats, and computed usage.
const RESTLESS: [&str; 5] =
    ["leases.coordination.k8s.io", "nodes", "events", "events.events.k8s.io", "componentstatuses"];

/// All objects of the host with their versions, when two consecutive lists are equal.
fn settled(host: &Kubectl, resources: &str) -> anyhow::Result<String> {
    let template = "go-template={{range .items}}{{.kind}} {{.metadata.namespace}} {{.metadata.name}} \
                    {{.metadata.resourceVersion}}{{\"\\n\"}}{{end}}";
    let look = || host.ok(&["get", resources, "--all-namespaces", "-o", template]);
    eventually(2 * CONDITION_TIMEOUT, || {
        let first = look()?;
        ensure!(first == look()?, "the host still changes");
        ensure!(first.contains("ConfigMap inner-ke-hangzhou kube-root-ca.crt "), "no namespace");
        Ok(first)
    })
}
