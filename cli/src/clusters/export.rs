//! `atoll clusters export`.

mod clean;
mod file;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use host_client::api::{Api, HostApi as _, Selection};
use rewrite::{ClusterName, HostNamespace};
use serde_json::Value;
use virtual_cluster::belongings::Hold;
use virtual_cluster::declared;
use virtual_cluster::namespaces::PATH;

use super::document::{End, Header};
use super::host::HostArgs;
use super::inventory::Inventory;
use super::kinds::{Resource, Resources};
use super::progress::{Progress, note};
use clean::Skip;
use file::ExportFile;

/// Up to this number of namespaces, each is listed by itself. With more, all objects of the host are listed, and those of others are
/// left out.
const MAX_LISTED_NAMESPACES: usize = 50;

/// Resources that are not exported: events, leases of controllers, and what the host measures.
const TRANSIENT: [&str; 5] = [
    "events",
    "events.events.k8s.io",
    "leases.coordination.k8s.io",
    "csistoragecapacities.storage.k8s.io",
    "podcertificaterequests.certificates.k8s.io",
];

/// Resources that others need, in the order in which a host must get them. All others follow.
const FIRST: [&str; 9] = [
    "serviceaccounts",
    "secrets",
    "configmaps",
    "limitranges",
    "persistentvolumeclaims",
    "roles.rbac.authorization.k8s.io",
    "rolebindings.rbac.authorization.k8s.io",
    "networkpolicies.networking.k8s.io",
    "services",
];

/// Write what is needed to restore a virtual cluster on another host.
///
/// Writes a file of YAML documents: the namespaces of the virtual cluster and the objects in them, its ClusterRoles and
/// ClusterRoleBindings, its custom resources without a namespace, its part of shared objects such as
/// CustomResourceDefinitions, and its VirtualCluster object. Names are those on the host. `atoll clusters adopt` reads the
/// file. The agent can keep running, and the command does not change the virtual cluster.
///
/// Not in the file: the data of volumes; Events and Leases; what controllers create again, such as the pods of a
/// Deployment; finished Jobs and pods; status, uids, resource versions and managed fields; tokens of service accounts,
/// which another host does not accept. The file contains Secrets only with --include-secrets. Only you can read the
/// file (mode 0600). Encrypt it before you store it elsewhere.
///
/// The command reads lists page by page, so its memory use does not depend on the size of the virtual cluster. Exits
/// with 0, or with 1 if something cannot be read. Then there is no file.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    # Export a virtual cluster with its Secrets\n  \
    atoll clusters export ke-beijing --host-kubeconfig /etc/kubernetes/admin.conf --include-secrets -o ke-beijing.yaml\n\n  \
    # Count what would be exported\n  \
    atoll clusters export ke-beijing --host-kubeconfig /etc/kubernetes/admin.conf --dry-run")]
pub(super) struct Args {
    /// The name of the virtual cluster.
    #[arg(value_name = "NAME")]
    cluster: ClusterName,

    #[command(flatten)]
    host: HostArgs,

    /// The file to write. It must not exist, unless --force is set.
    #[arg(short, long, value_name = "FILE", required_unless_present = "dry_run")]
    output: Option<PathBuf>,

    /// Replace an existing file.
    #[arg(long)]
    force: bool,

    /// Export Secrets, too. Without this flag, workloads that need Secrets do not start after a restore.
    #[arg(long)]
    include_secrets: bool,

    /// Leave out an API group whose API server does not respond, such as metrics.k8s.io. You can repeat this flag.
    #[arg(long, value_name = "GROUP")]
    without_group: Vec<String>,

    /// Only count what would be exported.
    #[arg(long)]
    dry_run: bool,
}

/// Reads the objects, and writes them.
struct Export<'a> {
    api: &'a Api,
    args: &'a Args,
    file: Option<ExportFile>,
    objects: BTreeMap<String, usize>,
    skipped: BTreeMap<Skip, usize>,
    progress: Progress,
}

pub(super) async fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    let (api, cluster) = (args.host.open()?, &args.cluster);
    let inventory = Inventory::of(&api, cluster).await?;
    if inventory.namespaces.is_empty() {
        bail!("this host has no namespaces of virtual cluster {cluster}");
    }
    let resources = Resources::of(&api, &args.without_group).await?;
    let file = match &args.output {
        Some(path) if !args.dry_run => Some(ExportFile::create(path, args.force)?),
        _ => None,
    };
    let (objects, skipped, progress) = (BTreeMap::new(), BTreeMap::new(), Progress::new());
    let mut export = Export { api: &api, args, file, objects, skipped, progress };
    if let Some(file) = &mut export.file {
        file.write(&serde_json::to_value(Header::new(cluster, inventory.identity(), args.include_secrets))?)?;
    }
    export.all(&inventory, &resources).await?;
    export.finish(out)
}

// === impl Export ===

impl Export<'_> {
    /// Everything, in the order in which a host must get it.
    async fn all(&mut self, inventory: &Inventory, resources: &Resources) -> anyhow::Result<()> {
        self.cluster_scoped(inventory, Hold::Overlay).await?;
        self.namespaces(inventory).await?;
        self.roles(inventory).await?;
        for resource in in_order(resources.in_namespaces()) {
            self.objects_of(inventory, &resource).await?;
        }
        self.cluster_scoped(inventory, Hold::Whole).await?;
        self.declaration().await
    }

    /// Root namespace first, because it determines the identity.
    async fn namespaces(&mut self, inventory: &Inventory) -> anyhow::Result<()> {
        let (roots, others): (Vec<_>, Vec<_>) =
            inventory.namespaces.iter().partition(|namespace| namespace.virtual_name.is_none());
        for namespace in roots.into_iter().chain(others) {
            let path = format!("{PATH}/{}", namespace.host_name);
            let identity = inventory.identity().filter(|_| namespace.virtual_name.is_none());
            if namespace.is_terminating {
                *self.skipped.entry(Skip::Ended).or_default() += 1;
            } else if let Some(object) = self.read(&path, "v1", "Namespace").await? {
                self.add(&clean::namespace(object, identity))?;
            }
        }
        Ok(())
    }

    async fn roles(&mut self, inventory: &Inventory) -> anyhow::Result<()> {
        let (api_version, kind) = ("rbac.authorization.k8s.io/v1", "ClusterRole");
        for found in inventory.found.iter().filter(|found| found.resource.starts_with("clusterroles.")) {
            if let Some(object) = self.read(&found.path, api_version, kind).await? {
                self.add_cleaned(object)?;
            }
        }
        Ok(())
    }

    /// Shared objects, or cluster-scoped custom objects.
    async fn cluster_scoped(&mut self, inventory: &Inventory, hold: Hold) -> anyhow::Result<()> {
        let is_other = |resource: &str| resource.starts_with("clusterroles.") || resource.starts_with("flowschemas.");
        let wanted = |resource: &str| hold == Hold::Overlay || !is_other(resource);
        for found in inventory.found.iter().filter(|found| found.hold == hold && wanted(&found.resource)) {
            // Such objects state their kind.
            let Some(object) = self.read(&found.path, "", "").await? else { continue };
            match hold {
                Hold::Overlay => self.add(&clean::shared(object, self.args.cluster.as_str()))?,
                // Nodes belong to the host.
                Hold::Label => {}
                Hold::Whole | Hold::Former => self.add_cleaned(object)?,
            }
        }
        Ok(())
    }

    /// The objects of a resource in all namespaces of the virtual cluster.
    async fn objects_of(&mut self, inventory: &Inventory, resource: &Resource) -> anyhow::Result<()> {
        let full_name = resource.full_name();
        if TRANSIENT.contains(&full_name.as_str()) {
            return Ok(());
        }
        let hosts: BTreeSet<&str> = inventory.namespaces.iter().map(|it| it.host_name.as_str()).collect();
        if hosts.len() > MAX_LISTED_NAMESPACES {
            return self.list(resource, None, &hosts).await;
        }
        for host in &hosts {
            self.list(resource, Some(host), &hosts).await?;
        }
        Ok(())
    }

    async fn list(
        &mut self,
        resource: &Resource,
        namespace: Option<&str>,
        hosts: &BTreeSet<&str>,
    ) -> anyhow::Result<()> {
        let (path, everything) = (resource.path(namespace)?, Selection::default());
        let api = self.api;
        let mut pages = api.pages(&path, &everything);
        let full_name = resource.full_name();
        loop {
            let page = match pages.next::<Value>().await {
                // The definition is not in force, or the resource is not listed in this way.
                Err(error) if error.is_not_found() || error.status().is_some_and(|status| status.code == 405) => {
                    return Ok(());
                }
                page => page.with_context(|| path.clone())?,
            };
            let Some(page) = page else { return Ok(()) };
            for mut object in page {
                let host = object["metadata"]["namespace"].as_str().unwrap_or_default();
                if hosts.contains(host) && is_of_cluster(&full_name, host, &object) {
                    // Objects in lists do not state their kind.
                    (object["apiVersion"], object["kind"]) =
                        (resource.api_version().into(), resource.kind.clone().into());
                    self.add_cleaned(object)?;
                }
            }
            let total: usize = self.objects.values().sum();
            self.progress.tell(|| format!("{total} objects; reading {full_name}"));
        }
    }

    /// The VirtualCluster object, which is the last one, so that an agent finds everything when it begins to serve.
    async fn declaration(&mut self) -> anyhow::Result<()> {
        let path = format!("{}/{}", declared::PATH, self.args.cluster);
        if let Some(object) = self.read(&path, declared::API_VERSION, declared::KIND).await? {
            self.add_cleaned(object)?;
        }
        Ok(())
    }

    /// `None` if the object has been deleted since.
    async fn read(&self, path: &str, api_version: &str, kind: &str) -> anyhow::Result<Option<Value>> {
        let mut object = match self.api.get(path).await {
            Err(error) if error.is_not_found() => return Ok(None),
            object => object.with_context(|| path.to_owned())?,
        };
        for (key, value) in [("apiVersion", api_version), ("kind", kind)] {
            if object[key].is_null() && !value.is_empty() {
                object[key] = value.into();
            }
        }
        Ok(Some(object))
    }

    fn add_cleaned(&mut self, object: Value) -> anyhow::Result<()> {
        match clean::cleaned(object, self.args.include_secrets) {
            Ok(object) => self.add(&object),
            Err(skip) => {
                *self.skipped.entry(skip).or_default() += 1;
                Ok(())
            }
        }
    }

    fn add(&mut self, object: &Value) -> anyhow::Result<()> {
        let kind = object["kind"].as_str().unwrap_or_default();
        *self.objects.entry(kind.to_owned()).or_default() += 1;
        match &mut self.file {
            Some(file) => file.write(object),
            None => Ok(()),
        }
    }

    fn finish(self, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
        let total: usize = self.objects.values().sum();
        for (kind, count) in &self.objects {
            writeln!(out, "{count:>6} {kind}")?;
        }
        match self.file {
            Some(mut file) => {
                file.write(&serde_json::to_value(End::new(self.objects))?)?;
                let path = file.finish()?;
                writeln!(out, "wrote {total} objects to {}", path.display())?;
            }
            None => writeln!(out, "{total} objects would be exported")?,
        }
        if let Some(count) = self.skipped.get(&Skip::Secret) {
            note(&format!("{count} Secrets are not exported; add --include-secrets"));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Of a root namespace, only bindings and overlays belong to the virtual cluster.
pub(super) fn is_of_cluster(resource: &str, host: &str, object: &Value) -> bool {
    if !HostNamespace::new(host).is_ok_and(|host| host.is_root()) {
        return true;
    }
    match resource {
        "rolebindings.rbac.authorization.k8s.io" => true,
        "configmaps" => !object["metadata"]["labels"][virtual_cluster::shared::OVERLAY_LABEL].is_null(),
        _ => false,
    }
}

/// Those that others need first.
fn in_order(mut resources: Vec<Resource>) -> Vec<Resource> {
    resources.sort_by_key(|resource| {
        let name = resource.full_name();
        (FIRST.iter().position(|first| *first == name).unwrap_or(FIRST.len()), name)
    });
    resources
}
