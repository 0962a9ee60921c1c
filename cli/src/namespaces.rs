//! `atoll namespaces`: lists and removes the namespaces of virtual clusters on their host.
//!
//! When the operator removes a virtual cluster from the configurations, its objects stay on the host. This command
//! deletes them.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Subcommand;
use host_client::Host;
use host_client::api::{Api, ApiError, PatchKind, Selection, Shape};
use kube_wire::selector::LabelSelector;
use ops::columns::Columns;
use ops::config::Located;
use ops::drain::Tasks;
use ops::files::Reloader;
use protocol::ClusterName;
use proxy_agent::config;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use virtual_cluster::provisioner::{MIRROR_FINALIZER, MIRROR_LABEL, ROOT_LABEL as ROOT};

const NAMESPACES: &str = "/api/v1/namespaces";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
/// The label of a host namespace with the name of its virtual cluster.
const MEMBER: &str = "atoll.dev/virtual-cluster";
/// The label with its name in the virtual cluster.
const VIRTUAL_NAME: &str = "atoll.dev/namespace";

/// The time limit for the deletion of all namespaces.
const DELETION_TIMEOUT: Duration = Duration::from_secs(300);
/// The time between two checks whether the namespaces still exist.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// List or remove the namespaces of virtual clusters on their host.
///
/// When you remove a virtual cluster from the configurations, its namespaces stay on the host with all their objects.
/// Both commands use only the API server of the host. proxy-server and proxy-agent need not run.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(ListArgs),
    Remove(RemoveArgs),
}

/// List the namespaces of virtual clusters on a host.
///
/// Prints the name of each namespace in its virtual cluster and on the host. Exits with 0, or with 1 if the host cannot
/// be read.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    # List the namespaces of all virtual clusters\n  \
    atoll namespaces list --host-kubeconfig /etc/kubernetes/admin.conf\n\n  \
    # List the namespaces of one virtual cluster\n  \
    atoll namespaces list --host-kubeconfig /etc/kubernetes/admin.conf --cluster ke-beijing")]
struct ListArgs {
    #[command(flatten)]
    host: HostArgs,

    /// List only the namespaces of this virtual cluster.
    #[arg(long, value_name = "CLUSTER")]
    cluster: Option<ClusterName>,
}

/// Delete all namespaces of a virtual cluster on its host, with everything in them, and its ClusterRoles.
///
/// First remove the virtual cluster from the proxy-agent's configuration. Otherwise, the agent creates the namespaces
/// again. The command waits until the host has deleted the namespaces, for at most five minutes.
///
/// Other cluster-scoped objects stay: custom resources with the label atoll.dev/virtual-cluster=NAME, and the
/// annotation overlay.atoll.dev/NAME of shared objects, for example of CustomResourceDefinitions and StorageClasses. A
/// new virtual cluster with this name gets them.
///
/// Exits with 0 when the host has deleted everything, and with 1 otherwise.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    # Remove the namespaces of a virtual cluster\n  \
    atoll namespaces remove --host-kubeconfig /etc/kubernetes/admin.conf --cluster ke-beijing")]
struct RemoveArgs {
    #[command(flatten)]
    host: HostArgs,

    /// The name of the virtual cluster.
    #[arg(long, value_name = "CLUSTER")]
    cluster: ClusterName,
}

#[derive(Debug, clap::Args)]
struct HostArgs {
    /// A kubeconfig of the host cluster. Its user must have the rights to list namespaces, ClusterRoles and
    /// RoleBindings, and for `remove`, to delete namespaces and ClusterRoles and to patch RoleBindings.
    #[arg(long, value_name = "FILE")]
    host_kubeconfig: PathBuf,
}

/// A namespace of a virtual cluster.
#[derive(Debug, PartialEq, Eq)]
struct HostNamespace {
    host_name: String,
    /// `None`: its root namespace.
    virtual_name: Option<String>,
    is_terminating: bool,
}

/// The namespaces of each cluster.
type ByCluster = BTreeMap<String, Vec<HostNamespace>>;

/// Runs one of the subcommands.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match &args.command {
            Command::List(args) => list(args, out).await,
            Command::Remove(args) => remove(args, out).await,
        }
    })
}

async fn list(args: &ListArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let found = find(&open(&args.host)?, args.cluster.as_ref()).await?;
    let mut table = Columns::new(["CLUSTER", "NAMESPACE", "ON THE HOST", ""]);
    for (cluster, namespaces) in &found {
        for namespace in namespaces {
            table.row([
                cluster.clone(),
                namespace.virtual_name.clone().unwrap_or_else(|| "(cluster scope)".to_owned()),
                namespace.host_name.clone(),
                if namespace.is_terminating { "Terminating".to_owned() } else { String::new() },
            ]);
        }
    }
    if table.is_empty() {
        let whose =
            args.cluster.as_ref().map_or("virtual clusters".to_owned(), |name| format!("virtual cluster {name}"));
        writeln!(out, "this host has no namespaces of {whose}")?;
    } else {
        write!(out, "{table}")?;
    }
    Ok(())
}

async fn remove(args: &RemoveArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let (api, cluster) = (open(&args.host)?, &args.cluster);
    let found = find(&api, Some(cluster)).await?.remove(cluster.as_str()).unwrap_or_default();
    let roles = roles(&api, cluster).await?;
    if found.is_empty() && roles.is_empty() {
        bail!("this host has no namespaces and no ClusterRoles of virtual cluster {cluster}");
    }
    // Delete the root namespace last, because it determines the rights in the others.
    for namespace in found.iter().filter(|found| found.virtual_name.is_some()).chain(root(&found)) {
        delete(&api, &format!("{NAMESPACES}/{}", namespace.host_name)).await?;
        writeln!(out, "namespace {}: deleted", namespace.host_name)?;
    }
    for namespace in &found {
        remove_finalizers(&api, &namespace.host_name).await?;
    }
    for role in &roles {
        delete(&api, &format!("{ROLES}/{role}")).await?;
        writeln!(out, "cluster role {role}: deleted")?;
    }
    let end = Instant::now() + DELETION_TIMEOUT;
    loop {
        let left = find(&api, Some(cluster)).await?.remove(cluster.as_str()).unwrap_or_default();
        if left.is_empty() {
            writeln!(out, "this host has no more namespaces and ClusterRoles of virtual cluster {cluster}")?;
            return Ok(());
        }
        if left.iter().any(|namespace| !namespace.is_terminating) {
            bail!(
                "a proxy-agent still serves {cluster} and creates its namespaces again; remove {cluster} from the agent's configuration"
            );
        }
        for namespace in &left {
            // An agent may have created mirrors since the last attempt.
            remove_finalizers(&api, &namespace.host_name).await?;
        }
        if Instant::now() >= end {
            let names: Vec<_> = left.iter().map(|found| found.host_name.as_str()).collect();
            bail!(
                "these namespaces still exist after {DELETION_TIMEOUT:?}: {}; `kubectl describe namespace` shows why",
                names.join(", ")
            );
        }
        sleep(POLL_INTERVAL).await;
    }
}

fn root(found: &[HostNamespace]) -> impl Iterator<Item = &HostNamespace> {
    found.iter().filter(|found| found.virtual_name.is_none())
}

fn open(args: &HostArgs) -> anyhow::Result<Api> {
    let kubeconfig = Some(Located::from(args.host_kubeconfig.clone()));
    let host = config::Host { kubeconfig, ..config::Host::default() };
    let host = Host::open(&host, &Reloader::new(Reloader::DEFAULT_PERIOD), Tasks::new());
    Ok(Api::new(host.with_context(|| format!("--host-kubeconfig {}", args.host_kubeconfig.display()))?))
}

async fn find(api: &Api, cluster: Option<&ClusterName>) -> anyhow::Result<ByCluster> {
    let mut found = ByCluster::new();
    for label in [MEMBER, ROOT] {
        let labels = match cluster {
            Some(cluster) => LabelSelector::from_labels([(label, cluster.as_str())])?.to_string(),
            None => label.to_owned(),
        };
        let selection = Selection { labels, shape: Shape::Metadata, ..Selection::default() };
        for item in api.list(NAMESPACES, &selection).await? {
            let Some((cluster, namespace)) = read(&item, label) else { continue };
            found.entry(cluster).or_default().push(namespace);
        }
    }
    Ok(found)
}

/// The virtual cluster of a namespace, and the namespace.
fn read(item: &Value, label: &str) -> Option<(String, HostNamespace)> {
    let metadata = &item["metadata"];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let virtual_name = if label == ROOT { None } else { Some(text(&metadata["labels"][VIRTUAL_NAME])?) };
    let is_terminating = metadata.get("deletionTimestamp").is_some();
    Some((
        text(&metadata["labels"][label])?,
        HostNamespace { host_name: text(&metadata["name"])?, virtual_name, is_terminating },
    ))
}

/// The host names of the ClusterRoles that belong to the virtual cluster.
async fn roles(api: &Api, cluster: &ClusterName) -> anyhow::Result<Vec<String>> {
    let selection = Selection { shape: Shape::Metadata, ..Selection::default() };
    let prefix = format!("vc:{cluster}:");
    let roles = api.list(ROLES, &selection).await?;
    let name = |role: &Value| role["metadata"]["name"].as_str().map(str::to_owned);
    Ok(roles.iter().filter_map(name).filter(|name| name.starts_with(&prefix)).collect())
}

/// Removes Atoll's finalizer from the mirrors of ClusterRoleBindings in a namespace that is being deleted. An agent
/// does this when nothing else is left, but maybe no agent runs any more.
async fn remove_finalizers(api: &Api, namespace: &str) -> anyhow::Result<()> {
    let bindings = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings");
    let selection = Selection { labels: MIRROR_LABEL.to_owned(), shape: Shape::Metadata, ..Selection::default() };
    for binding in api.list(&bindings, &selection).await? {
        let metadata = &binding["metadata"];
        let (Some(name), Some(left)) = (metadata["name"].as_str(), other_finalizers(metadata)) else { continue };
        let patch = json!({"metadata": {"finalizers": left, "resourceVersion": metadata["resourceVersion"]}});
        match api.patch(&format!("{bindings}/{name}"), PatchKind::Merge, &patch).await {
            // An agent has removed it in the meantime.
            Err(error) if !error.is_not_found() && !error.is_conflict() => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

/// The finalizers except Atoll's. `None` if Atoll's is not among them.
fn other_finalizers(metadata: &Value) -> Option<Vec<&Value>> {
    let finalizers = metadata["finalizers"].as_array()?;
    let others: Vec<_> = finalizers.iter().filter(|one| *one != MIRROR_FINALIZER).collect();
    (others.len() < finalizers.len()).then_some(others)
}

async fn delete(api: &Api, path: &str) -> Result<(), ApiError> {
    match api.delete::<IgnoredAny>(path, &json!({})).await {
        Err(error) if error.is_not_found() => Ok(()),
        outcome => outcome.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_assign_a_namespace_to_a_cluster() {
        let item = |labels: Value| json!({"metadata": {"name": "edge-ke-beijing", "labels": labels}});
        let (cluster, found) = read(&item(json!({MEMBER: "ke-beijing", VIRTUAL_NAME: "edge"})), MEMBER).unwrap();
        let virtual_name = Some("edge".to_owned());
        let expect = HostNamespace { host_name: "edge-ke-beijing".to_owned(), virtual_name, is_terminating: false };
        assert_eq!((cluster.as_str(), found), ("ke-beijing", expect));
        assert!(read(&item(json!({MEMBER: "ke-beijing"})), MEMBER).is_none(), "half a membership");
        assert_eq!(read(&item(json!({ROOT: "ke-beijing"})), ROOT).unwrap().1.virtual_name, None);
    }

    #[test]
    fn only_the_finalizer_of_atoll_is_removed() {
        let left = |finalizers: Value| other_finalizers(&json!({"finalizers": finalizers})).map(|left| json!(left));
        assert_eq!(left(json!([MIRROR_FINALIZER, "theirs"])), Some(json!(["theirs"])));
        assert_eq!(left(json!([MIRROR_FINALIZER])), Some(json!([])));
        assert_eq!(left(json!(["theirs"])), None);
        assert_eq!(left(Value::Null), None);
    }
}
