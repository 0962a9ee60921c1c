//! A Pod Security level that the operator enforces in a virtual cluster: it is added, used and removed.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use atoll_tests::process::Process;
use atoll_tests::virtual_site::Credentials;
use atoll_tests::{Curl, HostCluster, Kubectl, Route, Site, eventually, kubectl::CONDITION_TIMEOUT, site};
use serde_json::{Value, json};

const AGENT: &str = "site-p";
const CLUSTER: &str = "secured";
const ENFORCE: &str = "pod-security.kubernetes.io/enforce";
const VERSION: &str = "pod-security.kubernetes.io/enforce-version";
/// A namespace whose name begins like a subresource.
const NEWER: &str = "status-1";
const ENFORCED: &str = "podSecurity: {enforce: baseline}, ";

/// The proxy-server and the agent, the configuration of the agent, and clients.
struct World<'h> {
    host: &'h HostCluster,
    _site: Site,
    _agent: Process,
    agent_file: PathBuf,
    kubectl: Kubectl,
    curl: Curl,
}

pub(super) fn a_level_is_enforced(host: &HostCluster) -> anyhow::Result<()> {
    let world = World::start(host)?;
    world.kubectl.ok_with(&["create", "-f", "-"], &namespace("older", &json!({ENFORCE: "privileged"})))?;
    ensure!(world.enforced("older")? == json!(["privileged", null]));

    // The operator adds the level. Clients still see the labels that they wrote.
    world.edit(ENFORCED)?;
    eventually(2 * CONDITION_TIMEOUT, || {
        for name in ["older", "default", "kube-system"] {
            let enforced = world.enforced(name)?;
            ensure!(enforced == json!(["baseline", "latest"]), "{name}: {enforced}");
        }
        Ok(())
    })?;
    let older = world.kubectl.ok(&["get", "namespace", "older", "-o", "json", "--show-managed-fields"])?;
    ensure!(requested(&older)? == json!(["privileged", null]), "{older}");
    ensure!(
        !older.contains("atoll.dev") && !older.contains("latest") && older.contains(r#""f:pod-security"#),
        "{older}"
    );

    writes_are_followed(&world)?;
    lists_show_what_was_asked_for(&world)?;
    others_are_refused_as_by_the_host(&world)?;

    // The operator removes the level. Each namespace has the labels of its client.
    world
        .kubectl
        .ok_with(&["create", "-f", "-"], &namespace("pinned", &json!({ENFORCE: "restricted", VERSION: "v1.28"})))?;
    ensure!(world.enforced("pinned")? == json!(["restricted", "latest"]));
    world.edit("")?;
    eventually(2 * CONDITION_TIMEOUT, || {
        for (name, wanted) in [
            ("older", json!(["privileged", null])),
            ("pinned", json!(["restricted", "v1.28"])),
            ("default", json!([null, null])),
        ] {
            let enforced = world.enforced(name)?;
            ensure!(enforced == wanted, "{name}: {enforced}");
            let shown = world.kubectl.ok(&["get", "namespace", name, "-o", "json"])?;
            ensure!(requested(&shown)? == wanted && !shown.contains("atoll"), "{shown}");
        }
        Ok(())
    })
}

/// The host has the stricter level, and the client sees the level that it wrote.
fn writes_are_followed(world: &World<'_>) -> anyhow::Result<()> {
    let made =
        world.send("POST", "", "application/json", &namespace(NEWER, &json!({ENFORCE: "privileged", "a": "b"})))?;
    ensure!(made.0.contains("enforces at least baseline:latest"), "no warning: {}", made.0);
    ensure!(requested(&made.1)? == json!(["privileged", null]) && !made.1.contains("atoll"), "{}", made.1);
    ensure!(world.enforced(NEWER)? == json!(["baseline", "latest"]));
    let privileged = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": NEWER},
        "spec": {"containers": [{"name": "a", "image": "a", "securityContext": {"privileged": true}}]}});
    let refused = world.kubectl.run_with(&["create", "-f", "-"], &privileged.to_string())?;
    ensure!(refused.stderr.contains(r#"violates PodSecurity "baseline:latest""#), "{}", refused.stderr);

    let patch = |enforce: Value| json!({"metadata": {"labels": {ENFORCE: enforce}}}).to_string();
    let pointer = "/metadata/labels/pod-security.kubernetes.io~1enforce";
    let one = &*format!("/{NEWER}");
    let applied = &*format!("{one}?fieldManager=gitops&force=true");
    let apply = "application/apply-patch+yaml";
    for (method, path, media, body, wanted, enforced) in [
        ("PATCH", one, "application/merge-patch+json", patch(json!("restricted")), json!("restricted"), "restricted"),
        (
            "PATCH",
            one,
            "application/merge-patch+json",
            r#"{"metadata":{"labels":{"a":"c"}}}"#.to_owned(),
            json!("restricted"),
            "restricted",
        ),
        ("PATCH", one, "application/strategic-merge-patch+json", patch(Value::Null), Value::Null, "baseline"),
        (
            "PUT",
            one,
            "application/json",
            namespace(NEWER, &json!({ENFORCE: "restricted"})),
            json!("restricted"),
            "restricted",
        ),
        ("PUT", one, "application/json", namespace(NEWER, &json!({})), Value::Null, "baseline"),
        (
            "PATCH",
            one,
            "application/json-patch+json",
            json!([{"op": "add", "path": "/metadata/labels", "value": {ENFORCE: "privileged"}}]).to_string(),
            json!("privileged"),
            "baseline",
        ),
        (
            "PATCH",
            one,
            "application/json-patch+json",
            json!([{"op": "test", "path": pointer, "value": "privileged"}, {"op": "remove", "path": pointer}])
                .to_string(),
            Value::Null,
            "baseline",
        ),
        ("PATCH", applied, apply, namespace(NEWER, &json!({ENFORCE: "restricted"})), json!("restricted"), "restricted"),
        (
            "PATCH",
            &*format!("{one}?fieldManager=other"),
            apply,
            namespace(NEWER, &json!({"b": "c"})),
            json!("restricted"),
            "restricted",
        ),
        ("PATCH", applied, apply, namespace(NEWER, &json!({ENFORCE: "privileged"})), json!("privileged"), "baseline"),
        ("PATCH", applied, apply, namespace(NEWER, &json!({})), Value::Null, "baseline"),
    ] {
        let (warnings, answer) = world.send(method, path, media, &body)?;
        ensure!(requested(&answer)?[0] == wanted && !answer.contains("atoll"), "{method} {media} {body}: {answer}");
        ensure!(warnings.contains("enforces at least") == (wanted == "privileged"), "{method} {media}: {warnings}");
        ensure!(world.enforced(NEWER)? == json!([enforced, "latest"]), "{method} {media} {body}");
        let version =
            |object: &str| anyhow::Ok(serde_json::from_str::<Value>(object)?["metadata"]["resourceVersion"].clone());
        let live = world.kubectl.ok(&["get", "namespace", NEWER, "-o", "json"])?;
        ensure!(version(&answer)? == version(&live)?, "{method} {media}: an answer from before the last change");
    }
    // Two field managers with different levels have a conflict over the visible label.
    for manager in ["one", "two"] {
        let level = if manager == "one" { "privileged" } else { "restricted" };
        let path = format!("/{NEWER}?fieldManager={manager}");
        let (_, answer) = world.send("PATCH", &path, apply, &namespace(NEWER, &json!({ENFORCE: level})))?;
        if manager == "two" {
            let status: Value = serde_json::from_str(&answer)?;
            let field = &status["details"]["causes"][0]["field"];
            ensure!(status["code"] == 409 && field == &format!(".metadata.labels.{ENFORCE}"), "{answer}");
            ensure!(!answer.contains("atoll"), "{answer}");
        }
    }
    Ok(())
}

fn lists_show_what_was_asked_for(world: &World<'_>) -> anyhow::Result<()> {
    let selected = world.kubectl.ok(&["get", "namespaces", "-o", "name", "-l", &format!("{ENFORCE}=privileged")])?;
    ensure!(selected == "namespace/older\nnamespace/status-1\n", "{selected}");
    let listed = world.kubectl.ok(&["get", "namespaces", "--show-labels", "--no-headers"])?;
    ensure!(!listed.contains("atoll") && !listed.contains("latest"), "{listed}");
    let metadata = "Accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let protobuf = "Accept: application/vnd.kubernetes.protobuf";
    for accept in [metadata, protobuf] {
        let answer = world.curl.clone().with(&["--header", accept]).get("/api/v1/namespaces")?;
        let says = |text: &str| answer.body.contains(text);
        ensure!(answer.code == 200 && says("privileged") && !says("latest") && !says("parked"), "{}", answer.body);
    }
    let watch = world.curl.get("/api/v1/namespaces?watch=1&timeoutSeconds=1")?;
    ensure!(watch.body.contains("privileged") && !watch.body.contains("latest"), "{}", watch.body);
    ensure!(!watch.body.contains("parked"), "{}", watch.body);
    Ok(())
}

fn others_are_refused_as_by_the_host(world: &World<'_>) -> anyhow::Result<()> {
    for (key, value, detail) in [
        (ENFORCE, "strict", "must be one of privileged, baseline, restricted"),
        (VERSION, "1.30", "must be \"latest\" or \"v1.x\""),
    ] {
        let answer = world.curl.send("POST", "/api/v1/namespaces", &namespace("wrong", &json!({key: value})))?;
        let status = answer.refused(422, "Invalid", detail)?;
        ensure!(status["details"]["causes"][0]["field"] == format!("metadata.labels[{key}]"), "{status}");
    }
    let parked = "pod-security.kubernetes.io.parked.atoll.dev/enforce";
    for key in [parked, "atoll.dev/pod-security"] {
        let answer = world.curl.send("POST", "/api/v1/namespaces", &namespace("wrong", &json!({key: "privileged"})))?;
        answer.refused(422, "Invalid", "managed by the operator of the host cluster")?;
    }
    Ok(())
}

// === impl World ===

impl<'h> World<'h> {
    fn start(host: &'h HostCluster) -> anyhow::Result<Self> {
        let files = format!("clusters/{CLUSTER}/client-ca");
        let entry =
            format!("{{name: {CLUSTER}, agents: [{AGENT}], clientCA: {{certificate: {files}.crt, key: {files}.key}}}}");
        let site = Site::start(&[&entry], &[CLUSTER])?;
        let kubeconfig = format!("host: {{kubeconfig: {}}}", host.agent_kubeconfig().display());
        let mut agent = site.agent(AGENT, &format!("{kubeconfig}\n{}", slice("")))?;
        agent.printed("the virtual cluster is provisioned")?;
        agent.printed("tunnel established")?;
        let file = site.file(&format!("{CLUSTER}.kubeconfig"));
        let (config, output) = (site.file("server.yaml"), file.to_str().context("no path")?);
        site::atoll(&[
            "kubeconfig",
            CLUSTER,
            "--admin",
            "--server-config",
            config.to_str().context("no path")?,
            "-o",
            output,
        ])?;
        let kubectl = Kubectl::new(file);
        let Credentials { authority, certificate, key } = Credentials::of(&kubectl)?;
        let curl = Curl::new(Route::Proxy, CLUSTER, site.ports, &authority).with_certificate(&certificate, &key);
        let agent_file = site.file(&format!("{AGENT}.yaml"));
        Ok(Self { host, _site: site, _agent: agent, agent_file, kubectl, curl })
    }

    fn edit(&self, security: &str) -> anyhow::Result<()> {
        let file = std::fs::read_to_string(&self.agent_file)?;
        let rest = file.lines().filter(|line| !line.starts_with("virtualClusters"));
        let list = slice(security);
        let lines: Vec<_> = rest.chain([list.as_str(), ""]).collect();
        Ok(std::fs::write(&self.agent_file, lines.join("\n"))?)
    }

    /// The labels of this namespace on the host.
    fn enforced(&self, name: &str) -> anyhow::Result<Value> {
        let host = format!("{name}-{CLUSTER}");
        let stored = self.host.kubectl().ok(&["get", "namespace", &host, "-o", "json"])?;
        requested(&stored)
    }

    /// The warnings and the body of a response.
    fn send(&self, method: &str, path: &str, media: &str, body: &str) -> anyhow::Result<(String, String)> {
        // Skip the head of the proxy's response.
        let curl = self.curl.clone().with(&["--include", "--suppress-connect-headers", "--http1.1"]);
        let answer = curl.send_as(method, &format!("/api/v1/namespaces{path}"), media, body)?;
        let (head, body) = answer.body.split_once("\r\n\r\n").context("no response")?;
        let (head, body) =
            if head.contains(" 100 ") { body.split_once("\r\n\r\n").context("no response")? } else { (head, body) };
        let warnings: Vec<_> = head.lines().filter(|line| line.to_lowercase().starts_with("warning:")).collect();
        Ok((warnings.join("\n"), body.to_owned()))
    }
}

fn requested(object: &str) -> anyhow::Result<Value> {
    let labels = &serde_json::from_str::<Value>(object)?["metadata"]["labels"];
    Ok(json!([labels[ENFORCE], labels[VERSION]]))
}

fn namespace(name: &str, labels: &Value) -> String {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}).to_string()
}

fn slice(security: &str) -> String {
    format!("virtualClusters: [{{name: {CLUSTER}, {security}nodeSelector: {{location: beijing}}}}]")
}
