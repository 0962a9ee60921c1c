//! Checks of the host cluster: whether it responds, whether the agent has the rights that it needs, and what weakens
//! the isolation of virtual clusters.
//!
//! The checks use the code of the agent's client, and the agent's credential unless a flag names another one. They
//! write nothing.
//!
//! Reading order: [`check`], [`rights`], then one module for each kind of object. Except for [`orphans`] and
//! [`authorizer`], these modules only evaluate lists, and send no requests.

mod admission;
mod aggregation;
mod authorizer;
mod bindings;
mod declared;
mod namespaces;
mod network;
mod nodes;
mod orphans;
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
use rights::Need;

/// The time limit for all checks.
const CHECKS_TIMEOUT: Duration = Duration::from_secs(300);
/// After this time, the command reports which check it is waiting for.
const SLOW_CHECK: Duration = Duration::from_secs(3);
/// The oldest supported minor version of Kubernetes 1.
const MIN_MINOR_VERSION: u32 = 26;
/// The ClusterRole that aggregates the agent's rights to custom resources.
const CUSTOM_RESOURCES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/atoll-proxy-agent-custom-resources";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Sends requests to the host, and adds findings to the report.
struct HostCheck<'c> {
    api: Api,
    /// With the virtual clusters that objects declare.
    config: ProxyAgentConfiguration,
    host: &'c Located<config::Host>,
    report: &'c mut Report,
}

/// Runs all checks of the host, with the agent's credential or with `kubeconfig`. If a response is missing, it skips
/// the checks that depend on it.
pub(super) fn check(config: &ProxyAgentConfiguration, kubeconfig: Option<&Path>, report: &mut Report) {
    let Some(host) = &config.host else {
        return report.mistakes.general("--host: the configuration has no `host`");
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report.mistakes.general(format_args!("--host: cannot start a runtime: {error}")),
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
            // `agent::check` has reported the error.
            (Err(_), None) => return,
        };
        let mut check = HostCheck { api, config: config.clone(), host, report };
        let finished = timeout(CHECKS_TIMEOUT, check.run(kubeconfig.is_none())).await;
        if finished.is_err() {
            report.mistake(
                host,
                format_args!("host: the checks are incomplete, because they took longer than {CHECKS_TIMEOUT:?}"),
            );
        }
    });
}

// === impl HostCheck ===

impl HostCheck<'_> {
    async fn run(&mut self, is_agent: bool) {
        if !self.version().await {
            return;
        }
        if self.config.watch_virtual_clusters {
            self.declared().await;
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

    /// Checks whether the host responds, and whether its version is supported.
    async fn version(&mut self) -> bool {
        let (minor, text) = match version(&self.api).await {
            Ok(version) => version,
            Err(error) => {
                self.report.mistake(self.host, format_args!("host: cannot reach the API server: {error:#}"));
                return false;
            }
        };
        if minor < MIN_MINOR_VERSION {
            self.report.mistake(
                self.host,
                format_args!("host: Kubernetes {text} is not supported; 1.{MIN_MINOR_VERSION} or newer is required"),
            );
        }
        true
    }

    /// Checks whether the host serves admission policies. Without them, the agent serves no virtual cluster. The
    /// version of the host does not show this, because `--runtime-config` enables and disables API groups.
    async fn policies(&mut self) {
        let serves_any = self.config.watch_virtual_clusters || !self.config.virtual_clusters.is_empty();
        if self.host.unsafe_direct_access || !serves_any {
            return;
        }
        match admission_policies::is_served(&self.api).await {
            Ok(true) => {}
            Ok(false) => self.report.mistake(
                self.host,
                "host: it does not serve ValidatingAdmissionPolicy (Kubernetes 1.30 and newer do by default), so the agent \
                 serves no virtual cluster unless you set `unsafeDirectAccess: true` below `host`",
            ),
            Err(error) => self.not_checked("API groups", &error),
        }
    }

    /// Checks whether the agent has the rights that it needs.
    async fn rights(&mut self) {
        let config = &self.config;
        let namespace = config.kubeconfig_namespace.as_ref().filter(|_| config.watch_virtual_clusters);
        let namespace = namespace.map(ToString::to_string);
        match slow("the agent's rights", rights::missing(&self.api, namespace.as_deref())).await {
            Ok(missing) => self.lacking(&missing),
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
            Err(error) => self.not_checked("ClusterRoles", &error),
        }
    }

    fn lacking(&mut self, missing: &[(String, Need)]) {
        let rights = |need: Need| -> Vec<&str> {
            missing.iter().filter(|(_, of)| *of == need).map(|(right, _)| right.as_str()).collect()
        };
        let apply = "apply configs/kubernetes/agent-rbac.yaml";
        let required = rights(Need::Always);
        if !required.is_empty() {
            let (count, rights) = (required.len(), required.join(", "));
            self.report.mistake(self.host, format_args!("host: the agent lacks {count} rights; {apply}: {rights}"));
        }
        let declared = rights(Need::VirtualClusters);
        if self.config.watch_virtual_clusters && !declared.is_empty() {
            let rights = declared.join(", ");
            self.report.mistake(
                self.host,
                format_args!("host: the agent lacks rights, so it cannot serve VirtualClusters; {apply}: {rights}"),
            );
        }
        let kubeconfigs = rights(Need::Kubeconfigs);
        if let Some(namespace) = self.config.kubeconfig_namespace.as_ref().filter(|_| !kubeconfigs.is_empty()) {
            let (name, rights) = (namespace.as_str(), kubeconfigs.join(", "));
            self.report.mistake(
                namespace,
                format_args!(
                    "host: the agent lacks rights in the namespace {name}, so it cannot store kubeconfigs; {apply}, with this \
                     namespace in its Role: {rights}"
                ),
            );
        }
        for (need, consequence) in [
            (Need::Flows, "virtual clusters have no flows of their own at the host"),
            (Need::NodeExpressions, "nodes that `nodeExpressions` select do not join their virtual clusters"),
            (
                Need::SharedObjects,
                "virtual clusters cannot write these objects, even if `sharedObjects.writable` lists them",
            ),
        ] {
            let rights = rights(need);
            if !rights.is_empty() {
                let rights = rights.join(", ");
                self.report.warn(
                    self.host,
                    format_args!(
                        "host: the agent lacks rights, so {consequence}; if that is not intended, {apply}: {rights}"
                    ),
                );
            }
        }
    }

    /// Reports a configuration with which the agent serves virtual clusters on a host that may not enforce the
    /// policies.
    fn direct_access(&mut self) {
        let reason = match (self.host.unsafe_direct_access, self.host.unverified_policies) {
            (true, _) => "with unsafeDirectAccess, the agent serves virtual clusters even if the host does not enforce",
            (false, true) => {
                "with unverifiedPolicies, the agent serves virtual clusters even if it cannot verify that the host \
                 enforces"
            }
            (false, false) => return,
        };
        self.report.add_weaknesses(Some(Weakness::at(
            Check::DirectAccess,
            self.host.location(),
            format_args!(
                "host: {reason} the admission policies; the policies confine a token to its virtual cluster when somebody \
                 uses it directly at the host's API server"
            ),
            "use Kubernetes 1.30 or newer with the admission plugin ValidatingAdmissionPolicy and webhooks that \
             support dry runs, then remove the key; until then, allow only the agent and the nodes to connect to the API \
             server",
        )));
    }

    async fn authorizer(&mut self) {
        match authorizer::weaknesses(&self.api, self.host.location()).await {
            Ok(found) => self.report.add_weaknesses(found),
            Err(error) => {
                self.report.warn(self.host, format_args!("host: cannot check the rights of other users: {error:#}"));
            }
        }
    }

    /// Adds the virtual clusters that objects declare, and reports those that the agent does not serve.
    async fn declared(&mut self) {
        let selection = Selection { shape: Shape::Whole, ..Selection::default() };
        match slow("VirtualClusters", self.api.list(virtual_cluster::declared::PATH, &selection)).await {
            Ok(items) => {
                let found = declared::find(&items, &self.config);
                for problem in &found.problems {
                    self.report.warn(self.host, format_args!("host: {problem}"));
                }
                self.config.virtual_clusters.extend(found.clusters.into_iter().map(Located::from));
            }
            Err(error) if error.is_not_found() => self.report.warn(
                self.host,
                "host: it has no kind VirtualCluster, and `watchVirtualClusters` is true; apply \
                 configs/kubernetes/virtual-clusters.yaml",
            ),
            Err(error) => self.not_checked("VirtualClusters", &error),
        }
    }

    async fn nodes(&mut self) {
        for cluster in self.config.virtual_clusters.iter().filter(|cluster| cluster.trusts_nodes()) {
            if cluster.selects_all_nodes() {
                continue;
            }
            let keys = cluster.selecting_keys().into_iter().collect::<Vec<_>>().join(", ");
            self.report.add_weaknesses(Some(Weakness::at(
                Check::NodeLabel,
                cluster.location(),
                format_args!(
                    "virtual cluster {}: a kubelet may choose the labels that select its nodes ({keys}), so anybody who \
                     controls a node of the host can move it into this virtual cluster and get pods and their Secrets",
                    cluster.name
                ),
                "add a label with the prefix node-restriction.kubernetes.io/ to the nodes and to nodeSelector",
            )));
        }
        if let Some(nodes) = self.list("nodes", "/api/v1/nodes", "", Shape::Metadata).await {
            nodes::check(&nodes, &self.config.virtual_clusters, self.report);
        }
    }

    /// Checks bindings and namespaces. It lists the namespaces last, so that they include those that were created while
    /// it listed the bindings.
    async fn bindings_and_namespaces(&mut self) -> Namespaces {
        let location = self.host.location();
        let without_mirrors = format!("!{MIRROR_LABEL}");
        let cluster_bindings =
            self.list("ClusterRoleBindings", &format!("{RBAC}/clusterrolebindings"), "", Shape::Whole).await;
        let bindings = format!("{RBAC}/rolebindings");
        let bindings = self.list("RoleBindings", &bindings, &without_mirrors, Shape::Whole).await.unwrap_or_default();
        for (kind, binding) in cluster_bindings
            .iter()
            .flatten()
            .map(|binding| ("ClusterRoleBinding", binding))
            .chain(bindings.iter().map(|binding| ("RoleBinding", binding)))
        {
            self.report.add_weaknesses(bindings::weaknesses(location, kind, binding));
        }
        let Some(items) = self.list("namespaces", "/api/v1/namespaces", "", Shape::Metadata).await else {
            return Namespaces::default();
        };
        let namespaces = Namespaces::new(&items);
        self.report.add_weaknesses(namespaces.weaknesses(location, &self.config.virtual_clusters));
        self.report.add_weaknesses(orphans::weakness(&self.api, location, &bindings, &namespaces).await);
        namespaces
    }

    async fn roles(&mut self) {
        let labels = format!("!{CLUSTER_LABEL}");
        let roles = self.list("ClusterRoles", &format!("{RBAC}/clusterroles"), &labels, Shape::Whole).await;
        for role in roles.iter().flatten() {
            self.report.add_weaknesses(aggregation::weakness(self.host.location(), role));
        }
    }

    async fn admission(&mut self, namespaces: &Namespaces) {
        let tenant_namespaces = namespaces.of_tenants(&self.config.virtual_clusters);
        let protected = self.config.protected_keys();
        let is_protected = |key: &str| is_protected(&protected, key);
        for (kind, plural) in admission::KINDS {
            let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
            for object in self.list(&format!("{kind}s"), &path, "", Shape::Whole).await.iter().flatten() {
                self.report.add_weaknesses(admission::weaknesses(
                    self.host.location(),
                    kind,
                    object,
                    is_protected,
                    &tenant_namespaces,
                ));
            }
        }
    }

    async fn network(&mut self, namespaces: &Namespaces) {
        let tenant_namespaces = namespaces.of_tenants(&self.config.virtual_clusters);
        let protected = self.config.protected_keys();
        let is_protected = |key: &str| is_protected(&protected, key);
        let path = "/apis/networking.k8s.io/v1/networkpolicies";
        for policy in self.list("NetworkPolicies", path, "", Shape::Whole).await.iter().flatten() {
            let is_of_tenant =
                policy["metadata"]["namespace"].as_str().is_some_and(|name| namespaces.is_of_a_cluster(name));
            if !is_of_tenant {
                self.report.add_weaknesses(network::weakness(
                    self.host.location(),
                    policy,
                    is_protected,
                    &tenant_namespaces,
                ));
            }
        }
    }

    async fn storage(&mut self) {
        let location = self.host.location();
        let volumes = self.list("PersistentVolumes", "/api/v1/persistentvolumes", "", Shape::Whole).await;
        self.report.add_weaknesses(volumes::free(location, &volumes.unwrap_or_default()));
        let path = "/apis/storage.k8s.io/v1/storageclasses";
        for class in self.list("StorageClasses", path, "", Shape::Whole).await.iter().flatten() {
            self.report.add_weaknesses(volumes::secrets_of_claims(location, class));
        }
    }

    /// Reads a whole list, or adds a warning. A kind that this version of Kubernetes does not have has no objects.
    async fn list(&mut self, what: &str, path: &str, labels: &str, shape: Shape) -> Option<Vec<Value>> {
        let selection = Selection { labels: labels.to_owned(), shape, ..Selection::default() };
        match slow(what, self.api.list(path, &selection)).await {
            Ok(list) => Some(list),
            Err(error) if error.is_not_found() => None,
            Err(error) => {
                self.not_checked(what, &error);
                None
            }
        }
    }

    fn not_checked(&mut self, what: &str, error: &ApiError) {
        let error = chain(error);
        self.report
            .warn(self.host, format_args!("host: cannot list {what}, so the command did not check them: {error}"));
    }
}

/// Whether virtual clusters cannot set this label of their namespaces.
fn is_protected(protected: &ProtectedKeys, key: &str) -> bool {
    key == METADATA_NAME_LABEL || is_own_key(key) || protected.matches(key)
}

/// Waits for the result of a check, and reports on standard error if this takes long.
async fn slow<T>(what: &str, check: impl Future<Output = T>) -> T {
    let mut check = std::pin::pin!(check);
    tokio::select! {
        result = &mut check => return result,
        () = sleep(SLOW_CHECK) => report_progress(what),
    }
    check.await
}

#[expect(clippy::print_stderr, reason = "standard output is for the report")]
fn report_progress(what: &str) {
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
