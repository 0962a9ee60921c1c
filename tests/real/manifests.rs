//! `configs/kubernetes`, applied to a real host cluster as in `docs/install.md`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, ensure};
use atoll_tests::host::everywhere_kubeedge;
use atoll_tests::{HostCluster, Kubectl, paths, site};
use libtest_mimic::Trial;
use serde_json::Value;
use tempfile::TempDir;

/// A directory, the program that it deploys, and the Secret that the operator creates: its name, and its keys with the
/// files of `atoll certs`.
pub(crate) struct Manifests {
    folder: &'static str,
    pub(crate) program: &'static str,
    objects: &'static [&'static str],
    secret: &'static str,
    files: &'static [(&'static str, &'static str)],
}

pub(crate) const ALL: [Manifests; 2] = [
    Manifests {
        folder: "configs/kubernetes",
        program: "proxy-agent",
        objects: &[
            "clusterrole.rbac.authorization.k8s.io/atoll-proxy-agent",
            "clusterrole.rbac.authorization.k8s.io/atoll-proxy-agent-custom-resources",
            "clusterrolebinding.rbac.authorization.k8s.io/atoll-proxy-agent",
            "clusterrolebinding.rbac.authorization.k8s.io/atoll-proxy-agent-custom-resources",
            "configmap/proxy-agent",
            "customresourcedefinition.apiextensions.k8s.io/virtualclusters.atoll.dev",
            "customresourcedefinition.apiextensions.k8s.io/virtualclustersets.atoll.dev",
            "deployment.apps/proxy-agent",
            "namespace/atoll-system",
            "networkpolicy.networking.k8s.io/proxy-agent",
            "poddisruptionbudget.policy/proxy-agent",
            "role.rbac.authorization.k8s.io/atoll-proxy-agent-kubeconfigs",
            "rolebinding.rbac.authorization.k8s.io/atoll-proxy-agent-kubeconfigs",
            "serviceaccount/proxy-agent",
        ],
        secret: "proxy-agent-identity",
        files: &[
            ("agent.crt", "agents/site-a.crt"),
            ("agent.key", "agents/site-a.key"),
            ("serving-ca.crt", "serving-ca.crt"),
        ],
    },
    Manifests {
        folder: "configs/kubernetes/server",
        program: "proxy-server",
        objects: &[
            "configmap/proxy-server",
            "deployment.apps/proxy-server",
            "namespace/atoll-system",
            "networkpolicy.networking.k8s.io/proxy-server",
            "poddisruptionbudget.policy/proxy-server",
            "service/proxy-server",
            "service/proxy-servers",
            "serviceaccount/proxy-server",
        ],
        secret: "proxy-server-certificates",
        files: &[
            ("serving-ca.crt", "serving-ca.crt"),
            ("serving-ca.key", "serving-ca.key"),
            ("agent-ca.crt", "agent-ca.crt"),
            ("proxy-servers.crt", "agents/proxy-servers.crt"),
            ("proxy-servers.key", "agents/proxy-servers.key"),
            ("ke-beijing.crt", "clusters/ke-beijing/client-ca.crt"),
            ("ke-hangzhou.crt", "clusters/ke-hangzhou/client-ca.crt"),
        ],
    },
];

/// A setting that only works in a pod.
const IN_POD: &str = "inCluster: true";

pub(crate) fn trial() -> Trial {
    crate::trial::trial("manifests::are_consistent", are_consistent)
}

fn are_consistent() -> anyhow::Result<()> {
    // A separate host, because other tests count pods.
    let host = HostCluster::up(1)?;
    let kubectl = host.kubectl();
    // The strictest of the Pod Security Standards. A Deployment with other pods gets a warning, which is a failure
    // below.
    let label = |level: &str| format!("pod-security.kubernetes.io/{level}=restricted");
    kubectl.ok(&["label", "namespace", "atoll-system", &label("enforce"), &label("warn")])?;

    if everywhere_kubeedge() {
        // Both Deployments run in the cloud, but this host has only edge nodes.
        kubectl.ok(&["taint", "nodes", "--all", "node-role.kubernetes.io/edge-"])?;
    }

    let certificates = certificates()?;
    for manifests in &ALL {
        manifests.create_secret(&kubectl, certificates.path())?;
        manifests.apply(&kubectl).with_context(|| manifests.folder)?;
        manifests.check(&kubectl, &host.agent_kubeconfig()).with_context(|| manifests.folder)?;
    }
    Ok(())
}

/// A directory with the certificates of both programs.
pub(crate) fn certificates() -> anyhow::Result<TempDir> {
    let certificates = tempfile::Builder::new().prefix("atoll-manifests-").tempdir()?;
    let dir = text(certificates.path())?;
    site::atoll(&["certs", "init", dir])?;
    for args in [["cluster", "ke-beijing"], ["cluster", "ke-hangzhou"], ["agent", "site-a"], ["agent", "proxy-servers"]]
    {
        site::atoll(&["certs", args[0], args[1], "--dir", dir])?;
    }
    Ok(certificates)
}

// === impl Manifests ===

impl Manifests {
    /// Creates the Secret out of certificates.
    pub(crate) fn create_secret(&self, kubectl: &Kubectl, certificates: &Path) -> anyhow::Result<()> {
        let from =
            |(key, file): &(&str, &str)| anyhow::Ok(format!("--from-file={key}={}", text(&certificates.join(file))?));
        let files = self.files.iter().map(from).collect::<Result<Vec<_>, _>>()?;
        let mut create = vec!["-n", "atoll-system", "create", "secret", "generic", self.secret];
        create.extend(files.iter().map(String::as_str));
        kubectl.ok(&create)?;
        Ok(())
    }

    /// Applies the manifests. Warnings are failures.
    pub(crate) fn apply(&self, kubectl: &Kubectl) -> anyhow::Result<()> {
        let folder = paths::workspace().join(self.folder);
        let strictly = ["--server-side", "--validate=strict", "--warnings-as-errors", "-o", "name"];
        let applied = kubectl.ok(&[&["apply", "-k", text(&folder)?][..], &strictly].concat())?;
        let mut applied: Vec<&str> = applied.lines().collect();
        applied.sort_unstable();
        ensure!(applied == self.objects, "{applied:#?}");
        // No kubelet starts the image. The API server and the controllers accept the objects.
        let rollout = ["rollout", "status", "--timeout=45s"];
        kubectl.ok(&[&rollout[..], &["-n", "atoll-system", "deployment", self.program]].concat())?;
        Ok(())
    }

    /// The stored objects are consistent: the image is the one of the build, the configuration has the path in the
    /// arguments, and all files that it names exist. The kubeconfig is that of the agent's service account.
    pub(crate) fn check(&self, kubectl: &Kubectl, agent: &Path) -> anyhow::Result<()> {
        let get = |kind: &str, name: &str| -> anyhow::Result<Value> {
            Ok(serde_json::from_str(&kubectl.ok(&["-n", "atoll-system", "get", kind, name, "-o", "json"])?)?)
        };
        let deployment = get("deployment", self.program)?;
        let pod = &deployment["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        let image = format!("localhost/atoll/{}:{}", self.program, env!("CARGO_PKG_VERSION"));
        ensure!(container["image"] == image.as_str(), "{}", container["image"]);
        // The Pod Security Standards do not require this field.
        ensure!(container["securityContext"]["readOnlyRootFilesystem"] == true, "{container}");

        let folder = tempfile::Builder::new().prefix("atoll-mounted-").tempdir()?;
        let volume = &pod["volumes"][0]["projected"];
        let mode = u32::try_from(volume["defaultMode"].as_u64().context("no mode")?)?;
        let place = |key: &str, content: &str| {
            let file = folder.path().join(key);
            fs::write(&file, content)?;
            anyhow::Ok(fs::set_permissions(&file, fs::Permissions::from_mode(mode))?)
        };
        for source in volume["sources"].as_array().context("no projected volume")? {
            if let Some(name) = source["configMap"]["name"].as_str() {
                for (key, value) in get("configmap", name)?["data"].as_object().context("no data")? {
                    place(key, value.as_str().context("data are strings")?)?;
                }
            }
            if let Some(name) = source["secret"]["name"].as_str() {
                for key in get("secret", name)?["data"].as_object().context("no data")?.keys() {
                    let template = format!("go-template={{{{index .data {key:?} | base64decode}}}}");
                    place(key, &kubectl.ok(&["-n", "atoll-system", "get", "secret", name, "-o", &template])?)?;
                }
            }
        }
        let mounted = container["volumeMounts"][0]["mountPath"].as_str().context("no mount")?;
        let config = container["args"][1]
            .as_str()
            .and_then(|path| path.strip_prefix(mounted))
            .context("the path is not in the mount")?;
        let file = folder.path().join(config.trim_start_matches('/'));
        let config = fs::read_to_string(&file)?;
        let mut check = vec!["check", text(&file)?];
        if config.contains(IN_POD) {
            // Use a kubeconfig of the same service account, because this is not a pod. So the check includes its
            // rights.
            fs::write(&file, config.replace(IN_POD, &format!("kubeconfig: {}", text(agent)?)))?;
            check.extend(["--host", "--accept", "node-label"]);
        } else {
            ensure!(
                self.program == "proxy-server",
                "the configuration of an agent in a pod must have inCluster: true:\n{config}"
            );
        }
        let output = site::atoll(&check)?;
        // Both virtual clusters select their nodes by a label that a kubelet may set.
        let weaknesses = if self.program == "proxy-agent" { ", no weaknesses, 2 accepted" } else { "" };
        ensure!(output.ends_with(&format!(": no mistakes, no warnings{weaknesses}\n")), "{output}");
        Ok(())
    }
}

fn text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().context("temporary directories have UTF-8 names")
}
