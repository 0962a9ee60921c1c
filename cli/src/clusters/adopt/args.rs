//! The flags.

use std::path::PathBuf;

use rewrite::{ClusterName, HostNamespace};

use crate::clusters::host::HostArgs;

/// Restore a virtual cluster from an export, or take over namespaces of the host.
///
/// With -f, the command creates the objects in a file that `atoll clusters export` wrote. Objects that the host already
/// has stay as they are, so you can interrupt the command, and run it again. The virtual cluster keeps its name, the
/// host names of its namespaces, and its identity: clients see the same uid of kube-system as before, by which Karmada
/// and others recognise a cluster. All other uids are new. The command first checks that the file is complete. The host
/// assigns new addresses, volumes and tokens. It also assigns new node ports where the former ones are taken.
///
/// On a host where no agent has run, the command creates everything except workloads and custom resources in namespaces,
/// and exits with 1: the admission policies of the agent bind their pods to the nodes of the virtual cluster. Start the
/// agent, and run the same command again. Do not start the agent first, because clients would see another identity.
///
/// The command has the rights of the host's administrator, and somebody may have changed the file. So it refuses objects
/// that a virtual cluster cannot have, or that act on the rest of the host. It creates a VirtualCluster object only with
/// --with-declaration.
///
/// With --namespace, existing namespaces of the host become namespaces of the virtual cluster, with everything in them. The
/// name of such a namespace must be NAMESPACE-NAME: a virtual cluster `ke-beijing` can take over `edge-ke-beijing`, and
/// shows it as `edge`. A namespace with another name cannot be taken over, because Kubernetes cannot rename it. From then
/// on, clients of the virtual cluster have access to everything in the namespace. Workloads in it keep their node
/// selectors, so their pods may run on nodes that do not belong to the virtual cluster.
///
/// Exits with 0 when everything is on the host, and with 1 otherwise. Invalid flags exit with 2.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    # Restore a virtual cluster on a new host\n  \
    atoll clusters adopt ke-beijing --host-kubeconfig new-host.kubeconfig -f ke-beijing.yaml\n\n  \
    # Show what a restore would create\n  \
    atoll clusters adopt ke-beijing --host-kubeconfig new-host.kubeconfig -f ke-beijing.yaml --dry-run\n\n  \
    # Take over a namespace that exists\n  \
    atoll clusters adopt ke-beijing --host-kubeconfig host.kubeconfig --namespace edge-ke-beijing --yes")]
#[command(group(clap::ArgGroup::new("source").required(true).args(["file", "namespaces"])))]
pub(in crate::clusters) struct Args {
    /// The name of the virtual cluster.
    #[arg(value_name = "NAME")]
    pub(in crate::clusters) cluster: ClusterName,

    #[command(flatten)]
    pub(in crate::clusters) host: HostArgs,

    /// The export.
    #[arg(short, long, value_name = "FILE")]
    pub(in crate::clusters) file: Option<PathBuf>,

    /// A namespace of the host. You can repeat this flag.
    #[arg(long = "namespace", value_name = "NAMESPACE")]
    pub(in crate::clusters) namespaces: Vec<HostNamespace>,

    /// Only print what would be done.
    #[arg(long)]
    pub(in crate::clusters) dry_run: bool,

    /// Create the VirtualCluster object in the file. Read its spec before: it selects the nodes of the virtual cluster.
    #[arg(long, requires = "file")]
    pub(in crate::clusters) with_declaration: bool,

    /// Take over namespaces without a question, restore into a virtual cluster that already exists with another identity,
    /// and create workloads on a host that has no ValidatingAdmissionPolicies.
    #[arg(long)]
    pub(in crate::clusters) yes: bool,
}
