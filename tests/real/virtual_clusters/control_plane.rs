//! Fields that affect the whole host: users of a virtual cluster cannot set them, neither through the endpoint nor with
//! a token directly at the host.

use anyhow::{Context, ensure};
use atoll_tests::{HostCluster, Kubectl, Nodes, Route, VirtualSite, eventually, kubectl::CONDITION_TIMEOUT};
use serde_json::{Value, json};

use super::admission_policies::{direct_user, direct_user_in, pod, says};
use super::{BEIJING, CLUSTERS};

/// All clients that try, with the name of the namespace on their side.
struct Attackers {
    all: [(&'static str, Kubectl, String); 2],
    host: Kubectl,
    namespace: String,
}

// === impl Attackers ===

impl Attackers {
    /// Creates a namespace with the virtual name `name`.
    fn in_namespace(site: &VirtualSite, name: &str) -> anyhow::Result<Self> {
        let direct = direct_user(site, name)?;
        let administrator = site.administrator(BEIJING, Route::Proxy)?;
        let namespace = format!("{name}-{BEIJING}");
        let all = [("directly", direct, namespace.clone()), ("through the endpoint", administrator, name.to_owned())];
        Ok(Self { all, host: site.host().kubectl(), namespace })
    }

    /// This policy refuses the command of both clients, and allows that of the host's administrator.
    fn refused(&self, policy: &str, words: &[&str]) -> anyhow::Result<()> {
        for (way, kubectl, namespace) in &self.all {
            says(&kubectl.run(&[words, &["-n", namespace]].concat())?, policy)
                .with_context(|| format!("{words:?} {way}"))?;
        }
        self.host_does(words)
    }

    fn host_does(&self, words: &[&str]) -> anyhow::Result<()> {
        self.host.ok(&[words, &["-n", &self.namespace]].concat()).context("as the administrator of the host")?;
        Ok(())
    }

    fn allowed(&self, words: &[&str]) -> anyhow::Result<()> {
        for (way, kubectl, namespace) in &self.all {
            kubectl.ok(&[words, &["-n", namespace]].concat()).with_context(|| format!("{words:?} {way}"))?;
        }
        Ok(())
    }

    /// Like [`Self::refused`], for the creation of an object.
    fn creation_refused(&self, policy: &str, object: &Value) -> anyhow::Result<()> {
        for (way, kubectl, namespace) in &self.all {
            let output = kubectl.run_with(&["create", "-f", "-", "-n", namespace], &object.to_string())?;
            says(&output, policy).with_context(|| format!("{object} {way}"))?;
        }
        Ok(())
    }

    fn creation_allowed(&self, object: &Value) -> anyhow::Result<()> {
        for (way, kubectl, namespace) in &self.all {
            let mut object = object.clone();
            let name = format!("{}-{}", object["metadata"]["name"].as_str().context("no name")?, namespace.len());
            object["metadata"]["name"] = json!(name);
            kubectl.ok_with(&["create", "-f", "-", "-n", namespace], &object.to_string()).context(*way)?;
        }
        Ok(())
    }

    fn end(&self) -> anyhow::Result<()> {
        let [_, (_, administrator, name)] = &self.all;
        administrator.ok(&["delete", "namespace", name, "--wait=false"])?;
        Ok(())
    }
}

/// A client can set neither the node nor the addresses in the status of a pod.
pub(super) fn statuses_of_pods(site: &VirtualSite) -> anyhow::Result<()> {
    let attackers = Attackers::in_namespace(site, "statuses")?;
    let waiting = json!({"schedulingGates": [{"name": "example.com/never"}], "nodeSelector": own_selector()});
    let mut waiting: Value = serde_json::from_str(&pod(&attackers.namespace, "waiting", &waiting))?;
    // A status in a new pod has no effect.
    waiting["status"] =
        json!({"nominatedNodeName": "hangzhou-1", "podIP": "192.0.2.13", "podIPs": [{"ip": "192.0.2.13"}]});
    let [(_, direct, _), _] = &attackers.all;
    direct.ok_with(&["create", "-f", "-"], &waiting.to_string())?;
    let path = "jsonpath={.status.nominatedNodeName}{.status.podIP}{.status.podIPs}{.status.hostIP}";
    let told = direct.ok(&["get", "pod", "waiting", "-n", &attackers.namespace, "-o", path])?;
    ensure!(told.is_empty(), "{told}");

    let patch = |status: &Value| json!({"status": status}).to_string();
    for status in [
        json!({"nominatedNodeName": "beijing-1"}),
        json!({"podIP": "192.0.2.13", "podIPs": [{"ip": "192.0.2.13"}]}),
        json!({"hostIP": "192.0.2.13", "hostIPs": [{"ip": "192.0.2.13"}]}),
    ] {
        let patch = patch(&status);
        let words = ["patch", "pod", "waiting", "--subresource=status", "--type=merge", "-p", &patch];
        attackers.refused("statuses.atoll.dev", &words)?;
    }
    // Existing values may be sent again, but not removed.
    let condition = patch(&json!({"conditions": [{"type": "example.com/gate", "status": "True"}]}));
    attackers.allowed(&["patch", "pod", "waiting", "--subresource=status", "--type=merge", "-p", &condition])?;
    for (_, kubectl, namespace) in &attackers.all {
        let replace = ["replace", "--subresource=status", "-f", "-", "-n", namespace];
        let get = ["get", "pod", "waiting", "-o", "json", "-n", namespace];
        let mut pod: Value = serde_json::from_str(&kubectl.ok(&get)?)?;
        pod["status"]["message"] = json!("sent back");
        kubectl.ok_with(&replace, &pod.to_string())?;
        let mut pod: Value = serde_json::from_str(&kubectl.ok(&get)?)?;
        pod["status"].as_object_mut().context("no status")?.remove("nominatedNodeName");
        says(&kubectl.run_with(&replace, &pod.to_string())?, "statuses.atoll.dev")?;
    }
    attackers.end()
}

/// A client cannot set the allocated devices in the status of a claim. Kubernetes checks this itself since 1.36
/// (`DRAResourceClaimGranularStatusAuthorization`), and has ResourceClaims since 1.34.
pub(super) fn statuses_of_resource_claims(site: &VirtualSite) -> anyhow::Result<()> {
    let attackers = Attackers::in_namespace(site, "devices")?;
    let request = json!({"name": "one", "exactly": {"deviceClassName": "example.com"}});
    let claim = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "claim"},
        "spec": {"devices": {"requests": [request]}},
    });
    attackers.host.ok_with(&["create", "-f", "-", "-n", &attackers.namespace], &claim.to_string())?;
    let result = json!({"request": "one", "driver": "example.com", "pool": "hangzhou-1", "device": "d0"});
    let status = json!({"status": {"allocation": {"devices": {"results": [result]}}}}).to_string();
    attackers.refused(
        "statuses.atoll.dev",
        &["patch", "resourceclaim", "claim", "--subresource=status", "--type=merge", "-p", &status],
    )?;
    let reserved = json!({"status": {"reservedFor": [{"resource": "pods", "name": "a", "uid": "b"}]}}).to_string();
    attackers.refused(
        "statuses.atoll.dev",
        &["patch", "resourceclaim", "claim", "--subresource=status", "--type=merge", "-p", &reserved],
    )?;
    attackers.end()
}

/// A Service can have only those external addresses that the operator allows.
pub(super) fn addresses_of_services(site: &VirtualSite) -> anyhow::Result<()> {
    let attackers = Attackers::in_namespace(site, "addresses")?;
    let service = |name: &str, more: &Value| {
        let mut service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false, "ports": [{"port": 80}]},
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            service["spec"][key] = value.clone();
        }
        service
    };
    let policy = "services.atoll.dev";
    attackers.creation_refused(policy, &service("external", &json!({"externalIPs": ["10.96.0.1"]})))?;
    attackers.creation_allowed(&service("plain", &json!({})))?;
    attackers
        .host
        .ok_with(&["create", "-f", "-", "-n", &attackers.namespace], &service("external", &json!({})).to_string())?;
    let external = |addresses: &[&str]| json!({"spec": {"externalIPs": addresses}}).to_string();
    let balanced = |addresses: &Value| json!({"status": {"loadBalancer": {"ingress": addresses}}}).to_string();
    let patch = ["patch", "service", "external", "--type=merge", "-p"];
    let status = ["patch", "service", "external", "--type=merge", "--subresource=status", "-p"];
    attackers.refused(policy, &[&patch[..], &[&external(&["10.96.0.10"])]].concat())?;
    for ingress in [json!([{"ip": "10.96.0.11"}]), json!([{"hostname": "a.example.com"}])] {
        attackers.refused(policy, &[&status[..], &[&balanced(&ingress)]].concat())?;
    }
    // Addresses that the administrator of the host has set may stay.
    attackers.allowed(&["label", "service", "external", "--overwrite", "mine=yes"])?;

    // Addresses in the ranges of the virtual cluster, which its Namespaces contain.
    let name = "addresses-ke-shanghai";
    let metadata = json!({
        "name": name, "labels": {"atoll.dev/virtual-cluster": "ke-shanghai"},
        "annotations": {"atoll.dev/external-ips": "203.0.113.0/24,2001:db8::/64"},
    });
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
    attackers.host.ok_with(&["create", "-f", "-"], &namespace.to_string())?;
    let direct = direct_user_in(site, name)?;
    let create = |more: &Value| {
        let object = service("external", more).to_string();
        direct.run_with(&["create", "--dry-run=server", "-f", "-", "-n", name], &object)
    };
    for inside in [json!(["203.0.113.7"]), json!(["203.0.113.7", "2001:db8::7"])] {
        let output = create(&json!({"externalIPs": inside}))?;
        ensure!(output.code == 0, "{}", output.stderr);
    }
    for outside in [json!(["203.0.114.7"]), json!(["203.0.113.7", "2001:db8:1::7"]), json!(["10.96.0.1"])] {
        says(&create(&json!({"externalIPs": outside}))?, policy)?;
    }
    attackers.host.ok(&["delete", "namespace", name, "--wait=false"])?;
    attackers.end()
}

/// A claim or a claim template cannot name its volume or its node.
pub(super) fn volumes_of_claims(site: &VirtualSite) -> anyhow::Result<()> {
    let attackers = Attackers::in_namespace(site, "volumes")?;
    let policy = "claims.atoll.dev";
    let annotation = "volume.kubernetes.io/selected-node";
    let spec = json!({
        "accessModes": ["ReadWriteOnce"], "storageClassName": "none", "resources": {"requests": {"storage": "1Gi"}},
    });
    let claim = |name: &str, annotations: &Value, volume: &Value| {
        let mut claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "annotations": annotations}, "spec": spec,
        });
        claim["spec"]["volumeName"] = volume.clone();
        claim
    };
    let chosen = json!({annotation: "hangzhou-1"});
    attackers.creation_refused(policy, &claim("chosen", &chosen, &Value::Null))?;
    attackers.creation_refused(policy, &claim("taken", &Value::Null, &json!("foreign")))?;
    attackers.creation_allowed(&claim("plain", &Value::Null, &Value::Null))?;

    attackers.host.ok_with(
        &["create", "-f", "-", "-n", &attackers.namespace],
        &claim("claim", &Value::Null, &Value::Null).to_string(),
    )?;
    attackers.refused(policy, &["annotate", "pvc", "claim", &format!("{annotation}=hangzhou-1")])?;
    let status = json!({"metadata": {"annotations": {annotation: "hangzhou-2"}}}).to_string();
    attackers.refused(policy, &["patch", "pvc", "claim", "--subresource=status", "--type=merge", "-p", &status])?;
    attackers.refused(policy, &["patch", "pvc", "claim", "-p", r#"{"spec": {"volumeName": "foreign"}}"#])?;
    attackers.allowed(&["label", "pvc", "claim", "--overwrite", "mine=yes"])?;

    let [(_, direct, _), _] = &attackers.all;
    let mut template = claim("data", &chosen, &Value::Null);
    template.as_object_mut().context("not an object")?.remove("kind");
    let pods = json!({"metadata": {"labels": {"app": "set"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}});
    let set = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "set", "namespace": attackers.namespace},
        "spec": {
            "serviceName": "set", "selector": {"matchLabels": {"app": "set"}}, "template": pods,
            "volumeClaimTemplates": [{"metadata": template["metadata"], "spec": template["spec"]}],
        },
    });
    direct.ok_with(&["create", "-f", "-"], &set.to_string())?;
    let volume = json!({"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": claim("", &Value::Null, &json!("foreign"))["spec"]}}});
    let ephemeral =
        pod(&attackers.namespace, "ephemeral", &json!({"nodeSelector": own_selector(), "volumes": [volume]}));
    direct.ok_with(&["create", "-f", "-"], &ephemeral)?;
    for made in ["data-set-0", "ephemeral-data"] {
        eventually(CONDITION_TIMEOUT, || {
            let path = "jsonpath={.items[*].message}";
            let events = direct.ok(&["get", "events", "-n", &attackers.namespace, "-o", path])?;
            ensure!(
                events.contains(&format!("\"{made}\" is forbidden: ValidatingAdmissionPolicy '{policy}'")),
                "{events}"
            );
            Ok(())
        })?;
    }
    attackers.end()
}

/// A node cannot move itself to another virtual cluster.
pub(super) fn labels_of_nodes(site: &VirtualSite) -> anyhow::Result<()> {
    let host = site.host().kubectl();
    let node = |words: &[&str]| {
        let kubelet = ["--as=system:node:beijing-2", "--as-group=system:nodes", "--as-group=system:authenticated"];
        host.run(&[words, &kubelet].concat())
    };
    let policy = "node-labels.atoll.dev";
    says(&node(&["label", "node", "beijing-2", "location=hangzhou", "--overwrite"])?, policy)?;
    says(&node(&["label", "node", "beijing-2", "location-"])?, policy)?;
    let output = node(&["label", "node", "beijing-2", "example.com/mine=yes"])?;
    ensure!(output.code == 0, "{}", output.stderr);
    host.ok(&["label", "node", "beijing-2", "example.com/mine-"])?;
    Ok(())
}

/// On a host without admission policies, the agent refuses these statuses, and an admission plugin of the host refuses
/// external addresses.
pub(super) fn where_no_policy_holds() -> anyhow::Result<()> {
    let host = HostCluster::up_with(&[
        "--disable-admission-plugins=MutatingAdmissionPolicy,ValidatingAdmissionPolicy",
        "--enable-admission-plugins=DenyServiceExternalIPs",
    ])?;
    let site = VirtualSite::unprotected(host, &CLUSTERS)?;
    let administrator = site.administrator(BEIJING, Route::Proxy)?;
    let gated = json!({"schedulingGates": [{"name": "example.com/never"}]});
    administrator.ok_with(&["create", "-f", "-"], &pod("default", "waiting", &gated))?;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]},
    });
    administrator.ok_with(&["create", "-f", "-"], &service.to_string())?;
    let why = "the host cluster may not enforce the admission policies";
    for (object, status) in [
        ("pod/waiting", r#"{"status": {"nominatedNodeName": "hangzhou-1"}}"#),
        ("pod/waiting", r#"{"status": {"podIP": "192.0.2.13", "podIPs": [{"ip": "192.0.2.13"}]}}"#),
        ("service/web", r#"{"status": {"loadBalancer": {"ingress": [{"ip": "10.96.0.1"}]}}}"#),
    ] {
        for kind in ["merge", "strategic"] {
            let output = administrator.run(&["patch", object, "--subresource=status", "--type", kind, "-p", status])?;
            ensure!(output.code != 0 && output.stderr.contains(why), "{object} {status}: {output:?}");
        }
    }
    let waiting = ["get", "pod", "waiting", "-o", "json"];
    let mut waiting: Value = serde_json::from_str(&administrator.ok(&waiting)?)?;
    waiting["status"]["nominatedNodeName"] = json!("hangzhou-1");
    let output = administrator.run_with(&["replace", "--subresource=status", "-f", "-"], &waiting.to_string())?;
    ensure!(output.code != 0 && output.stderr.contains(why), "{output:?}");
    administrator.ok(&["label", "pod", "waiting", "mine=yes"])?;
    let external = r#"{"spec": {"externalIPs": ["10.96.0.1"]}}"#;
    let output = administrator.run(&["patch", "service", "web", "--type=merge", "-p", external])?;
    // The message of Kubernetes 1.36 names the field, and that of 1.32 says "external IPs".
    let is_denied = ["externalIPs", "external IPs"].iter().any(|what| output.stderr.contains(what));
    ensure!(output.code != 0 && is_denied, "{output:?}");
    Ok(())
}

fn own_selector() -> Value {
    json!(Nodes::Location("beijing").selector())
}
