//! Admission policies: a token of a virtual cluster, used directly at the host.

use anyhow::{Context, ensure};
use atoll_tests::host::everywhere_kubeedge;
use atoll_tests::{HostCluster, Kubectl, Nodes, Route, VirtualSite, eventually, kubectl::CONDITION_TIMEOUT};
use serde_json::{Value, json};

use super::{BEIJING, CLUSTERS, HANGZHOU, control_plane, namespace, policies};

/// The policies for namespaces, nodes, node selectors and root namespaces.
const WORDS: [&str; 4] = ["namespaces.atoll.dev", "nodes.atoll.dev", "pods.atoll.dev", "roots.atoll.dev"];
const GROUP: &str = "admissionregistration.k8s.io/v1";

pub(super) fn direct_requests_are_refused_with_mutating_policies(site: &VirtualSite) -> anyhow::Result<()> {
    let direct = direct_user(site, "direct")?;
    refused(&direct, "direct").context("forbidden requests with a token")?;
    guarded(&direct, "direct-ke-beijing")?;
    allowed(site, &direct, "direct").context("allowed requests")
}

pub(super) fn direct_requests_are_refused_without_mutating_policies() -> anyhow::Result<()> {
    let kinds = ["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"];
    let mut flags = without(&["MutatingAdmissionPolicy"], &kinds).to_vec();
    if !everywhere_kubeedge() {
        // Before 1.36, only policies refuse this.
        flags.push("--feature-gates=DRAResourceClaimGranularStatusAuthorization=false".to_owned());
    }
    let site = VirtualSite::on(up(&flags)?, &CLUSTERS)?;
    let direct = direct_user(&site, "direct")?;
    refused(&direct, "direct").context("forbidden requests with a token")?;
    unguarded(&direct, "direct-ke-beijing")?;
    // The host accepts the template, and refuses its pods.
    let bare = ["create", "deployment", "bare", "--image=image:1", "-n", "direct-ke-beijing"];
    direct.ok(&bare)?;
    eventually(CONDITION_TIMEOUT, || {
        let events = direct.ok(&["get", "events", "-n", "direct-ke-beijing", "-o", "jsonpath={.items[*].message}"])?;
        ensure!(events.contains(WORDS[2]), "{events}");
        Ok(())
    })?;
    if !everywhere_kubeedge() {
        control_plane::statuses_of_resource_claims(&site).context("devices")?;
    }
    policies::foreign(&site.host().kubectl(), false).context("settings of namespaces")?;
    allowed(&site, &direct, "direct").context("allowed requests")
}

pub(super) fn a_host_without_one_is_refused() -> anyhow::Result<()> {
    let plugins = ["MutatingAdmissionPolicy", "ValidatingAdmissionPolicy"];
    let kinds =
        ["mutating", "validating"].map(|kind| ["policies", "policybindings"].map(|it| format!("{kind}admission{it}")));
    let kinds: Vec<&str> = kinds.iter().flatten().map(String::as_str).collect();
    let site = VirtualSite::on(up(&without(&plugins, &kinds))?, &CLUSTERS)?;
    let response = site.curl(BEIJING, Route::Proxy)?.get("/api/v1/namespaces")?;
    response.refused(503, "ServiceUnavailable", "unsafeDirectAccess: true")?;
    Ok(())
}

/// A host that serves the kinds of policies, but does not enforce them.
pub(super) fn a_host_that_enforces_none_is_refused() -> anyhow::Result<()> {
    let host = HostCluster::up_with(&["--disable-admission-plugins=ValidatingAdmissionPolicy"])?;
    let site = VirtualSite::on(host, &CLUSTERS)?;
    let response = site.curl(BEIJING, Route::Proxy)?;
    eventually(CONDITION_TIMEOUT, || {
        response.get("/api/v1/namespaces")?.refused(503, "ServiceUnavailable", "does not enforce them")
    })?;
    Ok(())
}

/// An unreachable webhook refuses the dry run with which the agent verifies the policies.
pub(super) fn a_host_with_an_unreachable_webhook_is_refused() -> anyhow::Result<()> {
    let host = HostCluster::up(1)?;
    // Only the Namespace of the dry run is both a root namespace and a member.
    let is_probe = "has(object.metadata.labels) && 'atoll.dev/root' in object.metadata.labels \
                    && 'atoll.dev/virtual-cluster' in object.metadata.labels";
    let webhook = json!({
        "apiVersion": GROUP, "kind": "MutatingWebhookConfiguration", "metadata": {"name": "unreachable"},
        "webhooks": [{
            "name": "unreachable.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": {"url": "https://127.0.0.1:1/"}, "failurePolicy": "Fail", "timeoutSeconds": 1,
            "matchConditions": [{"name": "probe", "expression": is_probe}],
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["namespaces"], "operations": ["CREATE"]}],
        }],
    });
    host.kubectl().ok_with(&["create", "-f", "-"], &webhook.to_string())?;
    let site = VirtualSite::on(host, &CLUSTERS)?;
    let response = site.curl(BEIJING, Route::Proxy)?;
    let says = "unreachable.example.com";
    eventually(CONDITION_TIMEOUT, || response.get("/api/v1/namespaces")?.refused(503, "ServiceUnavailable", says))?;
    response.get("/api/v1/namespaces")?.refused(503, "ServiceUnavailable", "unverifiedPolicies: true")?;
    site.host().kubectl().ok(&["delete", "mutatingwebhookconfiguration", "unreachable"])?;
    eventually(CONDITION_TIMEOUT, || {
        let code = response.get("/api/v1/namespaces")?.code;
        ensure!(code == 200, "{code}");
        Ok(())
    })
}

/// The flags of an API server without these admission plugins and without their kinds.
fn without(plugins: &[&str], kinds: &[&str]) -> [String; 2] {
    let kinds: Vec<_> = kinds.iter().map(|kind| format!("{GROUP}/{kind}=false")).collect();
    [format!("--disable-admission-plugins={}", plugins.join(",")), format!("--runtime-config={}", kinds.join(","))]
}

fn up(flags: &[String]) -> anyhow::Result<HostCluster> {
    HostCluster::up_with(&flags.iter().map(String::as_str).collect::<Vec<_>>())
}

/// A service account of a virtual cluster with all rights in its namespace and in the virtual cluster. The test uses
/// its token directly at the host.
pub(super) fn direct_user(site: &VirtualSite, name: &str) -> anyhow::Result<Kubectl> {
    let kubectl = site.administrator(BEIJING, Route::Proxy)?;
    kubectl.ok_with(&["create", "-f", "-"], &namespace(name))?;
    kubectl.ok(&["create", "serviceaccount", "direct", "-n", name])?;
    let binding = format!("direct-{name}");
    let bind = ["create", "rolebinding", &binding, "--clusterrole=cluster-admin"];
    kubectl.ok(&[&bind, &[&format!("--serviceaccount={name}:direct"), "-n", name][..]].concat())?;
    // A ClusterRoleBinding would have the same effect.
    let account = format!("--serviceaccount={name}-{BEIJING}:direct");
    let root = format!("atoll-root-{BEIJING}");
    site.host().kubectl().ok(&[&bind, &[&account[..], "-n", &root][..]].concat())?;
    let label = format!("atoll.dev/virtual-cluster={BEIJING}");
    site.host().kubectl().ok(&["label", "rolebinding", &binding, &label, "-n", &root])?;
    let token = kubectl.ok(&["create", "token", "direct", "-n", name])?;
    site.host().with_token(token.trim())
}

/// The same in a namespace of the host, also if no agent serves its virtual cluster.
pub(super) fn direct_user_in(site: &VirtualSite, host: &str) -> anyhow::Result<Kubectl> {
    let kubectl = site.host().kubectl();
    kubectl.ok(&["create", "serviceaccount", "direct", "-n", host])?;
    let account = format!("--serviceaccount={host}:direct");
    kubectl.ok(&["create", "rolebinding", "direct", "--clusterrole=cluster-admin", &account, "-n", host])?;
    let token = kubectl.ok(&["create", "token", "direct", "-n", host])?;
    site.host().with_token(token.trim())
}

/// Requests that the policies refuse in this namespace of Beijing, even for clients with all rights there.
pub(crate) fn refused(direct: &Kubectl, name: &str) -> anyhow::Result<()> {
    let host = format!("{name}-{BEIJING}");
    let label = format!("atoll.dev/virtual-cluster={HANGZHOU}");
    let own = json!(Nodes::Location("beijing").selector());
    let named = pod(&host, "named", &json!({"nodeName": "hangzhou-1", "nodeSelector": own}));
    says(&direct.run(&["label", "namespace", &host, "--overwrite", &label])?, WORDS[0])?;
    says(&direct.run(&["label", "namespace", &host, "mine=yes"])?, WORDS[0])?;
    says(&direct.run(&["delete", "namespace", &host, "--wait=false"])?, WORDS[0])?;
    let mut finalized: Value = serde_json::from_str(&direct.ok(&["get", "namespace", &host, "-o", "json"])?)?;
    finalized["spec"]["finalizers"] = json!([]);
    let finalize = format!("/api/v1/namespaces/{host}/finalize");
    says(&direct.run_with(&["replace", "--raw", &finalize, "-f", "-"], &finalized.to_string())?, WORDS[0])?;

    says(&direct.run_with(&["create", "-f", "-"], &named)?, WORDS[1])?;
    let waiting = pod(&host, "waiting", &json!({"schedulerName": "nobody", "nodeSelector": own}));
    direct.ok_with(&["create", "-f", "-"], &waiting)?;
    let target = json!({"kind": "Node", "name": "hangzhou-1"});
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "waiting"}, "target": target});
    for path in ["pods/waiting/binding", "bindings"] {
        let path = format!("/api/v1/namespaces/{host}/{path}");
        says(&direct.run_with(&["create", "--raw", &path, "-f", "-"], &binding.to_string())?, WORDS[1])?;
    }
    for (group, kind) in [("apps/v1", "Deployment"), ("apps/v1", "DaemonSet"), ("batch/v1", "Job")] {
        says(&direct.run_with(&["create", "-f", "-"], &workload(group, kind, &host))?, WORDS[1]).context(kind)?;
    }
    let bound = json!({"kind": "Node", "apiVersion": "v1", "name": "hangzhou-1"});
    let token =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"boundObjectRef": bound}});
    let path = format!("/api/v1/namespaces/{host}/serviceaccounts/default/token");
    says(&direct.run_with(&["create", "--raw", &path, "-f", "-"], &token.to_string())?, WORDS[1])
        .context("no token")?;
    // The StatefulSet controller creates pods from the data of a revision.
    let template = json!({"spec": {"template": {"spec": {"nodeName": "hangzhou-1"}}}});
    let revision = json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "named", "namespace": host},
        "revision": 1, "data": template,
    });
    says(&direct.run_with(&["create", "-f", "-"], &revision.to_string())?, WORDS[1]).context("ControllerRevision")?;
    let root = format!("atoll-root-{BEIJING}");
    says(&direct.run(&["create", "configmap", "mine", "-n", &root])?, WORDS[3])?;
    says(&direct.run(&["delete", "rolebinding", "cluster-admin", "-n", &root])?, WORDS[3])
}

/// Pods run only on the nodes of Beijing. Since Kubernetes 1.36, a `MutatingAdmissionPolicy` adds the node selector.
/// Older hosts refuse pods without it.
pub(crate) fn guarded(direct: &Kubectl, host: &str) -> anyhow::Result<()> {
    if everywhere_kubeedge() {
        return unguarded(direct, host);
    }
    for (name, selector) in [("bare", Value::Null), ("elsewhere", json!({"location": "hangzhou", "disk": "ssd"}))] {
        direct.ok_with(&["create", "-f", "-"], &pod(host, name, &json!({"nodeSelector": selector})))?;
        let path = "jsonpath={.spec.nodeSelector.location}";
        let location = direct.ok(&["get", "pod", name, "-n", host, "-o", path])?;
        ensure!(location == "beijing", "{name} is for {location:?}");
    }
    Ok(())
}

/// A pod without the guard is refused.
fn unguarded(direct: &Kubectl, host: &str) -> anyhow::Result<()> {
    for selector in [Value::Null, json!({"location": "hangzhou"})] {
        let pod = pod(host, "elsewhere", &json!({"nodeSelector": selector}));
        says(&direct.run_with(&["create", "-f", "-"], &pod)?, WORDS[2])?;
    }
    Ok(())
}

fn allowed(site: &VirtualSite, direct: &Kubectl, name: &str) -> anyhow::Result<()> {
    let host = format!("{name}-{BEIJING}");
    direct.ok(&["create", "configmap", "mine", "-n", &host])?;
    direct.ok(&["label", "pod", "waiting", "mine=yes", "-n", &host])?;
    site.host().kubectl().ok(&["label", "namespace", &host, "operator=yes"])?;
    let kubectl = site.administrator(BEIJING, Route::Proxy)?;
    kubectl.ok(&["label", "namespace", name, "client=yes"])?;
    kubectl.ok_with(&["create", "-f", "-"], &pod(name, "named", &json!({"nodeName": "beijing-1"})))?;
    kubectl.ok(&["create", "deployment", "web", "--image=image:1", "-n", name])?;
    kubectl.ok(&["rollout", "status", "deployment/web", "-n", name, "--timeout=30s"])?;
    kubectl.ok(&["delete", "namespace", name, "--timeout=50s"])?;
    Ok(())
}

/// Fails unless the host has refused the request, and names the policy.
pub(super) fn says(output: &atoll_tests::Output, policy: &str) -> anyhow::Result<()> {
    ensure!(output.code != 0, "the request succeeded: {}", output.stdout);
    let refusal = format!("ValidatingAdmissionPolicy '{policy}'");
    ensure!(output.stderr.contains("Forbidden") || output.stderr.contains("forbidden"), "{output:?}");
    ensure!(output.stderr.contains(&refusal), "{output:?}");
    Ok(())
}

pub(super) fn pod(namespace: &str, name: &str, more: &Value) -> String {
    let mut spec = json!({"containers": [{"name": "main", "image": "image:1"}]});
    for (key, value) in more.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
        spec[key] = value.clone();
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": spec})
        .to_string()
}

/// A workload whose pods name a node of another cluster.
fn workload(group: &str, kind: &str, namespace: &str) -> String {
    let pod = json!({
        "nodeName": "hangzhou-1", "nodeSelector": {"location": "beijing"}, "restartPolicy": "Always",
        "containers": [{"name": "main", "image": "image:1"}],
    });
    let mut spec = json!({"template": {"metadata": {"labels": {"app": "named"}}, "spec": pod}});
    if kind == "Job" {
        spec["template"]["spec"]["restartPolicy"] = json!("Never");
    } else {
        spec["selector"] = json!({"matchLabels": {"app": "named"}});
    }
    let metadata = json!({"name": "named", "namespace": namespace});
    json!({"apiVersion": group, "kind": kind, "metadata": metadata, "spec": spec}).to_string()
}
