//! `atoll namespaces`: the namespaces of virtual clusters on their host, also of virtual clusters that were removed.
//!
//! When a virtual cluster is removed from the configurations, its objects stay. The operator deletes them with this
//! command.

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
/// The label of a host namespace for its virtual cluster.
const MEMBER: &str = "atoll.dev/virtual-cluster";
/// The label for its name in the virtual cluster.
const VIRTUAL_NAME: &str = "atoll.dev/namespace";

/// The time in which the host must delete the namespaces.
const DELETION_TIMEOUT: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_millis(500);

/// List or remove the namespaces of virtual clusters on their host.
///
/// When you remove a virtual cluster from the configurations, its namespaces stay on the host with all their objects.
/// Both commands use only the API server of the host; proxy-server and proxy-agent need not run.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    atoll namespaces list --host-kubeconfig /etc/kubernetes/admin.conf\n  \
    atoll namespaces remove --host-kubeconfig /etc/kubernetes/admin.conf --cluster ke-beijing")]
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
#[derive(Debug, clap::Args)]
struct ListArgs {
    #[command(flatten)]
    host: HostArgs,

    /// List only the namespaces of this virtual cluster.
    #[arg(long, value_name = "CLUSTER")]
    cluster: Option<ClusterName>,
}

/// Delete all namespaces of a virtual cluster on its host, with everything in them, and its ClusterRoles.
///
/// First remove the cluster from the proxy-agent's configuration: an agent that serves it would create them again.
/// Waits until they are deleted.
///
/// Other cluster-scoped objects stay: custom resources with the label atoll.dev/virtual-cluster=NAME, and its
/// annotations overlay.atoll.dev/NAME on shared objects such as definitions and classes. A new virtual cluster of that
/// name gets them.
#[derive(Debug, clap::Args)]
struct RemoveArgs {
    #[command(flatten)]
    host: HostArgs,

    /// The virtual cluster.
    #[arg(long, value_name = "CLUSTER")]
    cluster: ClusterName,
}

#[derive(Debug, clap::Args)]
struct HostArgs {
    /// A kubeconfig of the host cluster. Its user must be able to list (and delete) namespaces and ClusterRoles.
    #[arg(long, value_name = "FILE")]
    host_kubeconfig: PathBuf,
}

/// A namespace of a virtual cluster.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    host_name: String,
    /// `None`: its root namespace.
    virtual_name: Option<String>,
    is_going: bool,
}

/// By cluster.
type ByCluster = BTreeMap<String, Vec<Found>>;

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
                if namespace.is_going { "being deleted".to_owned() } else { String::new() },
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
    // The root namespace last: it determines the rights in the others.
    for namespace in found.iter().filter(|found| found.virtual_name.is_some()).chain(root(&found)) {
        delete(&api, &format!("{NAMESPACES}/{}", namespace.host_name)).await?;
        writeln!(out, "namespace {}: deleted", namespace.host_name)?;
    }
    for namespace in &found {
        release(&api, &namespace.host_name).await?;
    }
    for role in &roles {
        delete(&api, &format!("{ROLES}/{role}")).await?;
        writeln!(out, "cluster role {role}: deleted")?;
    }
    let end = Instant::now() + DELETION_TIMEOUT;
    loop {
        let left = find(&api, Some(cluster)).await?.remove(cluster.as_str()).unwrap_or_default();
        if left.is_empty() {
            writeln!(out, "this host has no namespaces and no ClusterRoles of virtual cluster {cluster} any more")?;
            return Ok(());
        }
        if left.iter().any(|namespace| !namespace.is_going) {
            bail!(
                "a proxy-agent still serves {cluster} and creates its namespaces again: remove it from its configuration"
            );
        }
        for namespace in &left {
            // An agent may have created mirrors a moment ago.
            release(&api, &namespace.host_name).await?;
        }
        if Instant::now() >= end {
            let names: Vec<_> = left.iter().map(|found| found.host_name.as_str()).collect();
            bail!(
                "still being deleted after {DELETION_TIMEOUT:?}: {}; kubectl describe namespace shows why",
                names.join(", ")
            );
        }
        sleep(PAUSE).await;
    }
}

fn root(found: &[Found]) -> impl Iterator<Item = &Found> {
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

/// A namespace and its virtual cluster.
fn read(item: &Value, label: &str) -> Option<(String, Found)> {
    let metadata = &item["metadata"];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let virtual_name = if label == ROOT { None } else { Some(text(&metadata["labels"][VIRTUAL_NAME])?) };
    let is_going = metadata.get("deletionTimestamp").is_some();
    Some((text(&metadata["labels"][label])?, Found { host_name: text(&metadata["name"])?, virtual_name, is_going }))
}

/// The host names of the cluster's own cluster roles.
async fn roles(api: &Api, cluster: &ClusterName) -> anyhow::Result<Vec<String>> {
    let selection = Selection { shape: Shape::Metadata, ..Selection::default() };
    let prefix = format!("vc:{cluster}:");
    let roles = api.list(ROLES, &selection).await?;
    let name = |role: &Value| role["metadata"]["name"].as_str().map(str::to_owned);
    Ok(roles.iter().filter_map(name).filter(|name| name.starts_with(&prefix)).collect())
}

/// Removes the finalizers from the mirrors of ClusterRoleBindings in a namespace that is being deleted. An agent does
/// this when only they are left, but perhaps no agent runs any more.
async fn release(api: &Api, namespace: &str) -> anyhow::Result<()> {
    let bindings = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings");
    let selection = Selection { labels: MIRROR_LABEL.to_owned(), shape: Shape::Metadata, ..Selection::default() };
    for binding in api.list(&bindings, &selection).await? {
        let metadata = &binding["metadata"];
        let (Some(name), Some(left)) = (metadata["name"].as_str(), without_ours(metadata)) else { continue };
        let patch = json!({"metadata": {"finalizers": left, "resourceVersion": metadata["resourceVersion"]}});
        match api.patch(&format!("{bindings}/{name}"), PatchKind::Merge, &patch).await {
            // An agent was faster.
            Err(error) if !error.is_not_found() && !error.is_conflict() => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

/// The finalizers except ours. `None` if ours is not among them.
fn without_ours(metadata: &Value) -> Option<Vec<&Value>> {
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
    fn a_namespace_belongs_by_its_labels() {
        let item = |labels: Value| json!({"metadata": {"name": "edge-ke-beijing", "labels": labels}});
        let (cluster, found) = read(&item(json!({MEMBER: "ke-beijing", VIRTUAL_NAME: "edge"})), MEMBER).unwrap();
        let virtual_name = Some("edge".to_owned());
        let expect = Found { host_name: "edge-ke-beijing".to_owned(), virtual_name, is_going: false };
        assert_eq!((cluster.as_str(), found), ("ke-beijing", expect));
        assert!(read(&item(json!({MEMBER: "ke-beijing"})), MEMBER).is_none(), "half a membership");
        assert_eq!(read(&item(json!({ROOT: "ke-beijing"})), ROOT).unwrap().1.virtual_name, None);
    }

    #[test]
    fn only_our_finalizer_is_taken_off() {
        let left = |finalizers: Value| without_ours(&json!({"finalizers": finalizers})).map(|left| json!(left));
        assert_eq!(left(json!([MIRROR_FINALIZER, "theirs"])), Some(json!(["theirs"])));
        assert_eq!(left(json!([MIRROR_FINALIZER])), Some(json!([])));
        assert_eq!(left(json!(["theirs"])), None);
        assert_eq!(left(Value::Null), None);
    }
}
