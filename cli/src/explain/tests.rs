use std::fs;

use clap::Parser;

use super::*;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

const CONFIG: &str = "\
apiVersion: atoll.dev/v1alpha1
kind: ProxyAgentConfiguration
servers: [proxy:8091]
identity: {certificate: a.crt, key: a.key, serverCA: s.crt}
host: {kubeconfig: h}
virtualClusters:
- name: ke-beijing
  nodeSelector: {location: beijing}
  tolerations: [{key: location, operator: Exists}]
physicalClusters: [{name: branch-7, apiServer: 10.2.0.1:6443}]
";

const OBJECTS: &str = "\
apiVersion: v1
kind: Namespace
metadata: {name: edge}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: edge}
spec: {template: {spec: {containers: [{name: web, image: nginx}]}}}
---
apiVersion: v1
kind: List
items:
- apiVersion: rbac.authorization.k8s.io/v1
  kind: RoleBinding
  metadata: {name: b, namespace: edge}
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}
  subjects: [{kind: User, name: jane, apiGroup: rbac.authorization.k8s.io}, {kind: ServiceAccount, name: s, namespace: other}]
";

fn explain(arguments: &[&str]) -> anyhow::Result<(String, bool)> {
    let dir = tempfile::tempdir()?;
    let (config, objects) = (dir.path().join("agent.yaml"), dir.path().join("objects.yaml"));
    fs::write(&config, CONFIG)?;
    fs::write(&objects, OBJECTS)?;
    let [config, objects] = [&config, &objects].map(|path| path.to_str().unwrap());
    let arguments = arguments.iter().map(|word| if *word == "OBJECTS" { objects } else { word });
    let line = Line::try_parse_from(["explain", "--config", config].into_iter().chain(arguments))?;
    let mut out = Vec::new();
    let code = run(&line.args, &mut out)?;
    Ok((String::from_utf8(out)?, code == ExitCode::SUCCESS))
}

#[test]
fn a_list_is_explained_completely() {
    let url = "https://x/clusters/ke-beijing/api/v1/pods?fieldSelector=metadata.namespace%3Dedge";
    let (text, sent) = explain(&["--cluster", "ke-beijing", "--user", "jane", "GET", url]).unwrap();
    let expected = "\
GET /api/v1/pods?fieldSelector=metadata.namespace%3Dedge to ke-beijing, by user jane
  request:      list pods in all namespaces
  check:        SubjectAccessReview: can vc:ke-beijing:jane list pods in atoll-root-ke-beijing, the cluster scope of \
ke-beijing?
  check:        discovery, usually cached: does the host serve the resource? It is namespaced
  sends:        GET /api/v1/pods?fieldSelector=metadata.namespace%3Dedge-ke-beijing
  as:           the agent, which has checked the rights of the caller
  response:     the list, with names of ke-beijing: objects in its namespaces
";
    assert_eq!((text.as_str(), sent), (expected, true));
}

#[test]
fn a_watch_or_list_says_whether_the_hub_serves_it() {
    for (url, expected) in [
        (
            "/api/v1/pods?watch=1",
            "serves this watch instead of the host if another virtual cluster watches the resource, or if many watches of it are open at the host",
        ),
        ("/api/v1/namespaces/edge/pods?watch=1", "serves this watch instead of the host"),
        (
            "/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Da",
            "does not serve this watch: the hub does not support the selector",
        ),
        ("/api/v1/nodes?watch=1", "serves this watch instead of the host"),
        ("/api/v1/events?watch=1", "does not serve this watch"),
        (
            "/api/v1/pods?resourceVersion=0&limit=500",
            "answers this list instead of the host while it watches the resource",
        ),
        ("/api/v1/services?resourceVersion=0", "does not serve this list"),
    ] {
        let (text, _) = explain(&["--cluster", "ke-beijing", "GET", url]).unwrap();
        let line = text.lines().find(|line| line.trim_start().starts_with("hub:")).unwrap_or_else(|| panic!("{text}"));
        assert!(line.contains(expected), "{url}: {line}");
    }
    for url in ["/api/v1/pods", "/api/v1/services?limit=500", "/api/v1/pods/a"] {
        let (text, _) = explain(&["--cluster", "ke-beijing", "GET", url]).unwrap();
        assert!(!text.contains("hub:"), "{text}");
    }
}

#[test]
fn a_url_without_a_slash_is_refused() {
    for url in ["bar", "pods?limit=5", "api.example.com:443"] {
        let error = explain(&["--cluster", "ke-beijing", "GET", url]).unwrap_err();
        assert!(error.to_string().contains("the path must begin with a slash"), "{url}: {error:#}");
    }
    let (text, _) = explain(&["--cluster", "ke-beijing", "GET", "https://a:1/clusters/ke-beijing/api"]).unwrap();
    assert!(text.starts_with("GET /api to ke-beijing"), "{text}");
}

#[test]
fn objects_are_explained_field_by_field() {
    let (text, sent) = explain(&["--cluster", "ke-beijing", "-f", "OBJECTS"]).unwrap();
    assert!(sent, "{text}");
    for line in [
        "  field:        metadata.name: edge -> edge-ke-beijing   (a namespace of the virtual cluster, under its name on the host)",
        "  field:        metadata.labels[atoll.dev/namespace]: + edge   (identifies the namespace on the host; hidden from clients)",
        "  field:        spec.template.spec.nodeSelector.location: + beijing   (keeps pods on the nodes of ke-beijing; hidden \
         from clients)",
        "  field:        subjects[0].name: jane -> vc:ke-beijing:jane   (a user or group of the virtual cluster, under its \
         name on the host)",
        "  field:        subjects[1].namespace: other -> other-ke-beijing   (a namespace of the virtual cluster, under its \
         name on the host)",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert!(text.contains("spec.template.spec.tolerations"), "{text}");
}

#[test]
fn a_refusal_is_explained_and_exits_with_one() {
    let url = "/api/v1/nodes/beijing-1";
    let (text, sent) = explain(&["--cluster", "ke-beijing", "DELETE", url]).unwrap();
    assert!(!sent && text.contains("response:     403 Forbidden: "), "{text}");
    assert!(text.contains("nodes belong to the operator of the host cluster"), "{text}");
}

#[test]
fn clusters_that_are_not_virtual_are_refused() {
    let physical = explain(&["--cluster", "branch-7", "GET", "/api"]).unwrap_err().to_string();
    assert!(physical.contains("forwards its requests unchanged"), "{physical}");
    let unknown = explain(&["--cluster", "x", "GET", "/api"]).unwrap_err().to_string();
    assert!(unknown.contains("it has: ke-beijing"), "{unknown}");
    assert!(explain(&["--cluster", "ke-beijing", "GET"]).is_err());
    assert!(explain(&["--cluster", "ke-beijing"]).is_err());
}

#[test]
fn an_error_never_quotes_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret.yaml");
    fs::write(&file, "kind: Secret\nstringData:\n  password: hunter2\n key: x\n").unwrap();
    let error = request::objects(&file, "default").unwrap_err();
    let text = format!("{error:#} {error:?}");
    assert!(text.contains("secret.yaml: ") && !text.contains("hunter2"), "{text}");
}
