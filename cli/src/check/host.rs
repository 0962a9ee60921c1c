//! Checks of the host cluster: whether it can be reached, whether the agent has the rights that it needs, and what
//! weakens the isolation of virtual clusters.
//!
//! They use the agent's own client, with the agent's credential unless another one is given, and write nothing.
//!
//! Reading order: [`ask`], [`rights`], then one module for each kind of object. Except for [`left`] and [`authorizer`],
//! these modules only evaluate lists, and send no requests.

mod admission;
mod aggregation;
mod authorizer;
mod bindings;
mod left;
mod namespaces;
mod network;
mod nodes;
mod rights;
mod selector;
mod volumes;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use host_client::Host;
use host_client::api::{Api, ApiError, Selection, Shape};
use ops::config::Located;
use ops::drain::Tasks;
use ops::files::Reloader;
use ops::log::chain;
use proxy_agent::ProxyAgentConfiguration;
use proxy_agent::config;
use rewrite::name::{CLUSTER_LABEL, METADATA_NAME_LABEL, is_own_key};
use rewrite::request::ProtectedKeys;
use serde_json::Value;
use tokio::time::{sleep, timeout};
use virtual_cluster::admission_policies;
use virtual_cluster::provisioner::MIRROR_LABEL;

use super::report::Report;
use super::weakness::{Check, Weakness};
use namespaces::Namespaces;

/// The time limit for all checks.
const CHECKS_TIMEOUT: Duration = Duration::from_secs(300);
/// A check that takes longer is reported, so that the user knows what it waits for.
const SLOW: Duration = Duration::from_secs(3);
/// The oldest minor version of Kubernetes 1 that works.
const OLDEST: u32 = 26;
/// The ClusterRole that aggregates the agent's rights to custom resources.
const CUSTOM_RESOURCES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/atoll-proxy-agent-custom-resources";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Sends requests to the host, and reports findings.
struct Questions<'c> {
    api: Api,
    config: &'c ProxyAgentConfiguration,
    host: &'c Located<config::Host>,
    report: &'c mut Report,
}

/// Runs all checks of the host, with the agent's credential or with `kubeconfig`. If an answer is missing, the checks
/// that depend on it are skipped.
pub(super) fn ask(config: &ProxyAgentConfiguration, kubeconfig: Option<&Path>, report: &mut Report) {
    let Some(host) = &config.host else {
        return report.mistakes.general("--host: the configuration has no `host`");
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report.mistakes.general(format_args!("--host: no runtime: {error}")),
    };
    runtime.block_on(async {
        let other = kubeconfig
            .map(|path| config::Host { kubeconfig: Some(Located::from(path.to_owned())), ..config::Host::default() });
        let opened = Host::open(other.as_ref().unwrap_or(host), &Reloader::new(Reloader::DEFAULT_PERIOD), Tasks::new());
        let api = match (opened, kubeconfig) {
            (Ok(opened), _) => Api::new(opened),
            (Err(error), Some(path)) => {
                let (path, error) = (path.display(), chain(&error));
                return report.mistakes.general(format_args!("--host-kubeconfig {path}: {error}"));
            }
            // `agent::check` has reported why it cannot be opened.
            (Err(_), None) => return,
        };
        let mut questions = Questions { api, config, host, report };
        let asked = timeout(CHECKS_TIMEOUT, questions.ask(kubeconfig.is_none())).await;
        if asked.is_err() {
            report
                .mistake(host, format_args!("host: the checks took longer than {CHECKS_TIMEOUT:?} and are incomplete"));
        }
    });
}

// === impl Questions ===

impl Questions<'_> {
    async fn ask(&mut self, is_agent: bool) {
        if !self.version().await {
            return;
        }
        if is_agent {
            self.rights().await;
        }
        self.policies().await;
        self.direct_access();
        self.authorizer().await;
        self.nodes().await;
        let namespaces = self.bindings_and_namespaces().await;
        self.roles().await;
        self.admission(&namespaces).await;
        self.network(&namespaces).await;
        self.storage().await;
    }

    /// Whether the host responds, and is new enough.
    async fn version(&mut self) -> bool {
        let (minor, text) = match version(&self.api).await {
            Ok(version) => version,
            Err(error) => {
                self.report.mistake(self.host, format_args!("host: cannot reach the API server: {error:#}"));
                return false;
            }
        };
        if minor < OLDEST {
            self.report.mistake(
                self.host,
                format_args!("host: Kubernetes {text} is too old; 1.{OLDEST} or newer is required"),
            );
        }
        true
    }

    /// Whether the host serves the admission policies, without which the agent serves no virtual cluster. Its version
    /// does not show this, because `--runtime-config` enables and disables API groups.
    async fn policies(&mut self) {
        if self.host.unsafe_direct_access || self.config.virtual_clusters.is_empty() {
            return;
        }
        match admission_policies::is_served(&self.api).await {
            Ok(true) => {}
            Ok(false) => self.report.mistake(
                self.host,
                "host: it does not serve ValidatingAdmissionPolicy (Kubernetes 1.30 and newer do by default), so the agent \
                 serves no virtual cluster unless you set `unsafeDirectAccess: true` below `host`",
            ),
            Err(error) => self.unknown("API groups", &error),
        }
    }

    /// Whether the agent has the rights that it needs.
    async fn rights(&mut self) {
        match slow("the agent's rights", rights::missing(&self.api)).await {
            Ok(missing) if missing.is_empty() => {}
            Ok(missing) => {
                let (count, missing) = (missing.len(), missing.join(", "));
                self.report.mistake(
                    self.host,
                    format_args!(
                        "host: the agent lacks {count} rights; apply configs/kubernetes/agent-rbac.yaml: {missing}"
                    ),
                );
            }
            Err(error) => {
                self.report.mistake(self.host, format_args!("host: cannot check the agent's rights: {error:#}"));
            }
        }
        // An access review shows this right only after the first write of such an object.
        match self.api.get(CUSTOM_RESOURCES).await {
            Ok(_) => {}
            Err(error) if error.is_not_found() => self.report.warn(
                self.host,
                "host: the ClusterRole atoll-proxy-agent-custom-resources does not exist, so virtual clusters cannot \
                 write cluster-scoped custom resources; apply configs/kubernetes/agent-rbac.yaml",
            ),
            Err(error) => self.unknown("ClusterRoles", &error),
        }
    }

    /// Whether the configuration serves virtual clusters on a host that may not enforce the policies.
    fn direct_access(&mut self) {
        let why = match (self.host.unsafe_direct_access, self.host.unverified_policies) {
            (true, _) => "with unsafeDirectAccess, the agent serves virtual clusters even if the host does not enforce",
            (false, true) => {
                "with unverifiedPolicies, the agent serves virtual clusters even if it cannot verify that the host \
                 enforces"
            }
            (false, false) => return,
        };
        self.report.weak(Some(Weakness::at(
            Check::DirectAccess,
            self.host.location(),
            format_args!(
                "host: {why} the admission policies; these keep a token inside its virtual cluster when somebody uses \
                 it directly at the host's API server"
            ),
            "use Kubernetes 1.30 or newer with the admission plugin ValidatingAdmissionPolicy and webhooks that \
             support dry runs, then remove the key; until then, let only the agent and the nodes reach the API server",
        )));
    }

    async fn authorizer(&mut self) {
        match authorizer::weaknesses(&self.api, self.host.location()).await {
            Ok(found) => self.report.weak(found),
            Err(error) => {
                self.report.warn(self.host, format_args!("host: cannot check the rights of others: {error:#}"));
            }
        }
    }

    async fn nodes(&mut self) {
        for cluster in self.config.virtual_clusters.iter().filter(|cluster| cluster.trusts_nodes()) {
            let keys = cluster.labels().into_keys().collect::<Vec<_>>().join(", ");
            if keys.is_empty() {
                continue;
            }
            self.report.weak(Some(Weakness::at(
                Check::NodeLabel,
                cluster.location(),
                format_args!(
                    "virtual cluster {}: a kubelet may set all labels that select its nodes ({keys}), so anybody who \
                     controls a node of the host can move it into this virtual cluster and get pods and their Secrets",
                    cluster.name
                ),
                "add a label with the prefix node-restriction.kubernetes.io/ to the nodes and to nodeSelector",
            )));
        }
        if let Some(nodes) = self.list("nodes", "/api/v1/nodes", "", Shape::Metadata).await {
            nodes::look(&nodes, &self.config.virtual_clusters, self.report);
        }
    }

    /// Lists bindings before namespaces, so that a binding whose namespace is missing was left behind, and is not
    /// merely newer.
    async fn bindings_and_namespaces(&mut self) -> Namespaces {
        let location = self.host.location();
        let without_mirrors = format!("!{MIRROR_LABEL}");
        let of_the_cluster =
            self.list("ClusterRoleBindings", &format!("{RBAC}/clusterrolebindings"), "", Shape::Whole).await;
        let bindings = format!("{RBAC}/rolebindings");
        let bindings = self.list("RoleBindings", &bindings, &without_mirrors, Shape::Whole).await.unwrap_or_default();
        for (kind, binding) in of_the_cluster
            .iter()
            .flatten()
            .map(|binding| ("ClusterRoleBinding", binding))
            .chain(bindings.iter().map(|binding| ("RoleBinding", binding)))
        {
            self.report.weak(bindings::weaknesses(location, kind, binding));
        }
        let Some(items) = self.list("namespaces", "/api/v1/namespaces", "", Shape::Metadata).await else {
            return Namespaces::default();
        };
        let namespaces = Namespaces::new(&items);
        self.report.weak(namespaces.weaknesses(location, &self.config.virtual_clusters));
        self.report.weak(left::weakness(&self.api, location, &bindings, &namespaces).await);
        namespaces
    }

    async fn roles(&mut self) {
        let labels = format!("!{CLUSTER_LABEL}");
        let roles = self.list("ClusterRoles", &format!("{RBAC}/clusterroles"), &labels, Shape::Whole).await;
        for role in roles.iter().flatten() {
            self.report.weak(aggregation::weakness(self.host.location(), role));
        }
    }

    async fn admission(&mut self, namespaces: &Namespaces) {
        let theirs = namespaces.of_tenants(&self.config.virtual_clusters);
        let protected = self.config.protected_keys();
        let is_protected = |key: &str| is_protected(&protected, key);
        for (kind, plural) in admission::KINDS {
            let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
            for object in self.list(&format!("{kind}s"), &path, "", Shape::Whole).await.iter().flatten() {
                self.report.weak(admission::weaknesses(self.host.location(), kind, object, is_protected, &theirs));
            }
        }
    }

    async fn network(&mut self, namespaces: &Namespaces) {
        let theirs = namespaces.of_tenants(&self.config.virtual_clusters);
        let protected = self.config.protected_keys();
        let is_protected = |key: &str| is_protected(&protected, key);
        let path = "/apis/networking.k8s.io/v1/networkpolicies";
        for policy in self.list("NetworkPolicies", path, "", Shape::Whole).await.iter().flatten() {
            let is_tenants =
                policy["metadata"]["namespace"].as_str().is_some_and(|name| namespaces.is_of_a_cluster(name));
            if !is_tenants {
                self.report.weak(network::weakness(self.host.location(), policy, is_protected, &theirs));
            }
        }
    }

    async fn storage(&mut self) {
        let location = self.host.location();
        let volumes = self.list("PersistentVolumes", "/api/v1/persistentvolumes", "", Shape::Whole).await;
        self.report.weak(volumes::free(location, &volumes.unwrap_or_default()));
        let path = "/apis/storage.k8s.io/v1/storageclasses";
        for class in self.list("StorageClasses", path, "", Shape::Whole).await.iter().flatten() {
            self.report.weak(volumes::secrets_of_claims(location, class));
        }
    }

    /// A whole list, or a warning that it cannot be read. A kind that this version of Kubernetes lacks has no objects.
    async fn list(&mut self, what: &str, path: &str, labels: &str, shape: Shape) -> Option<Vec<Value>> {
        let selection = Selection { labels: labels.to_owned(), shape, ..Selection::default() };
        match slow(what, self.api.list(path, &selection)).await {
            Ok(list) => Some(list),
            Err(error) if error.is_not_found() => None,
            Err(error) => {
                self.unknown(what, &error);
                None
            }
        }
    }

    fn unknown(&mut self, what: &str, error: &ApiError) {
        let error = chain(error);
        self.report.warn(self.host, format_args!("host: cannot read its {what}, so they were not checked: {error}"));
    }
}

/// Whether a virtual cluster cannot set this label of its namespaces.
fn is_protected(protected: &ProtectedKeys, key: &str) -> bool {
    key == METADATA_NAME_LABEL || is_own_key(key) || protected.matches(key)
}

/// Reports a slow check on standard error.
async fn slow<T>(what: &str, asked: impl Future<Output = T>) -> T {
    let mut asked = std::pin::pin!(asked);
    tokio::select! {
        answer = &mut asked => return answer,
        () = sleep(SLOW) => tell(what),
    }
    asked.await
}

#[expect(clippy::print_stderr, reason = "the person at the terminal wonders; standard output is for the report")]
fn tell(what: &str) {
    eprintln!("atoll: checking the host: {what}");
}

/// The minor version, and the complete version.
async fn version(api: &Api) -> anyhow::Result<(u32, String)> {
    let version = api.get("/version").await?;
    // Some distributions write `32+`.
    let minor = version["minor"].as_str().unwrap_or_default();
    let digits: String = minor.chars().take_while(char::is_ascii_digit).collect();
    if version["major"] != "1" {
        bail!("/version is not a Kubernetes version: {version}");
    }
    let text = version["gitVersion"].as_str().unwrap_or_default().to_owned();
    Ok((digits.parse().context("/version has no minor version")?, text))
}
