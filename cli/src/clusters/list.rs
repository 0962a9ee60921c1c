//! `atoll clusters list`.

use std::io::Write;
use std::process::ExitCode;

use ops::columns::Columns;
use rewrite::ClusterName;
use serde_json::{Value, json};
use virtual_cluster::belongings::Hold;

use super::declaration::{AgentArgs, Declarations};
use super::format::Format;
use super::host::HostArgs;
use super::inventory::{ByCluster, Inventory};
use super::progress::note;

/// List the virtual clusters that have something on a host.
///
/// For each virtual cluster, it prints how many namespaces, ClusterRoles, other objects of its own, and shared objects
/// it has, and what declares it: a VirtualCluster object, the configuration of an agent in this host cluster, or a file
/// of --agent-config. If nothing declares it, you can remove it with `atoll clusters remove`. With a NAME, the command
/// lists the namespaces and all other objects of this virtual cluster.
///
/// Exits with 0, or with 1 if the host cannot be read.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    # List all virtual clusters of a host\n  \
    atoll clusters list --host-kubeconfig /etc/kubernetes/admin.conf\n\n  \
    # List everything that one virtual cluster has\n  \
    atoll clusters list ke-beijing --host-kubeconfig /etc/kubernetes/admin.conf\n\n  \
    # Print the names of those that nothing declares\n  \
    atoll clusters list --host-kubeconfig host.kubeconfig --agent-config proxy-agent.yaml -o json |\n    \
    jq -r '.items[] | select(.declaredBy == []).name'")]
pub(super) struct Args {
    /// List everything of this virtual cluster.
    #[arg(value_name = "NAME")]
    cluster: Option<ClusterName>,

    #[command(flatten)]
    host: HostArgs,

    #[command(flatten)]
    agents: AgentArgs,

    /// The output format.
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Format,
}

/// What declares a virtual cluster, if this command does not know it.
const UNKNOWN: &str = "<unknown>";

pub(super) async fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    let api = args.host.open()?;
    let declared = Declarations::read(&api, &args.agents).await?;
    if let Some(unreadable) = declared.unreadable() {
        note(&format!("cannot read the configuration of an agent in {unreadable}; name it with --agent-config"));
    }
    let all = Inventory::all(&api, args.cluster.as_ref()).await?;
    let items: Vec<_> = all.iter().map(|(name, inventory)| item(name, inventory, &declared)).collect();
    let document = json!({"apiVersion": "atoll.dev/v1alpha1", "kind": "HostClusterList", "items": items});
    let table = |out: &mut dyn Write| match &args.cluster {
        Some(cluster) => details(cluster, &all, out),
        None => summary(&all, &declared, out),
    };
    args.output.write(&document, table, out)?;
    Ok(ExitCode::SUCCESS)
}

fn item(name: &ClusterName, inventory: &Inventory, declared: &Declarations) -> Value {
    let namespaces = inventory.namespaces.iter().map(|namespace| {
        let (host, is_terminating) = (&namespace.host_name, namespace.is_terminating);
        json!({"hostName": host, "name": namespace.virtual_name, "terminating": is_terminating})
    });
    let found = inventory.found.iter().map(|found| {
        let whole = found.hold == Hold::Whole;
        json!({"resource": found.resource, "name": found.name, "shared": !whole})
    });
    json!({
        "name": name.as_str(),
        "identity": inventory.identity(),
        "declaredBy": declared_by(name, declared),
        "counts": inventory.counts(),
        "namespaces": namespaces.collect::<Vec<_>>(),
        "objects": found.collect::<Vec<_>>(),
    })
}

/// What declares a virtual cluster. Empty if nothing does.
fn declared_by<'a>(name: &ClusterName, declared: &'a Declarations) -> Vec<&'a str> {
    let mut by: Vec<_> = declared.of(name).collect();
    // A script must not take it for one that nothing declares.
    if by.is_empty() && declared.unreadable().is_some() {
        by.push(UNKNOWN);
    }
    by
}

fn summary(all: &ByCluster, declared: &Declarations, out: &mut dyn Write) -> anyhow::Result<()> {
    if all.is_empty() {
        writeln!(out, "This host has nothing of any virtual cluster.")?;
        return Ok(());
    }
    let heading = ["CLUSTER", "NAMESPACES", "CLUSTERROLES", "OTHERS", "SHARED", "DECLARED BY"];
    let mut table = Columns::new(heading);
    for (name, inventory) in all {
        let (own, shared) = inventory.others();
        let declared = declared_by(name, declared);
        let declared = if declared.is_empty() { UNKNOWN.to_owned() } else { declared.join(", ") };
        let counts = [inventory.namespaces.len(), inventory.roles(), own, shared].map(|count| count.to_string());
        table.row([name.to_string()].into_iter().chain(counts).chain([declared]));
    }
    write!(out, "{table}")?;
    Ok(())
}

fn details(cluster: &ClusterName, all: &ByCluster, out: &mut dyn Write) -> anyhow::Result<()> {
    let Some(inventory) = all.get(cluster) else {
        writeln!(out, "This host has nothing of virtual cluster {cluster}.")?;
        return Ok(());
    };
    let mut table = Columns::new(["RESOURCE", "ON THE HOST", "IN THE CLUSTER"]);
    for namespace in &inventory.namespaces {
        let shown = namespace.virtual_name.clone().unwrap_or_else(|| "(cluster scope)".to_owned());
        let ending = if namespace.is_terminating { " (terminating)" } else { "" };
        table.row(["namespaces".to_owned(), namespace.host_name.clone(), shown + ending]);
    }
    for found in &inventory.found {
        let shown = match found.hold {
            Hold::Whole => own_name(cluster, &found.name),
            Hold::Overlay => format!("{} (shared)", found.name),
            Hold::Former => "(had it)".to_owned(),
            Hold::Label => format!("{} (label)", found.name),
        };
        table.row([found.resource.clone(), found.name.clone(), shown]);
    }
    write!(out, "{table}")?;
    Ok(())
}

/// The name of an object in the virtual cluster: `vc:CLUSTER:NAME` is a ClusterRole, and `NAME.CLUSTER` a custom object.
fn own_name(cluster: &ClusterName, name: &str) -> String {
    let role = name.strip_prefix("vc:").and_then(|name| name.strip_prefix(cluster.as_str())?.strip_prefix(':'));
    let custom = name.strip_suffix(cluster.as_str()).and_then(|name| name.strip_suffix('.'));
    match role.or(custom) {
        Some(internal) if internal.starts_with("atoll:") => "(hidden)".to_owned(),
        Some(name) => name.to_owned(),
        None => "(hidden)".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_virtual_cluster() {
        let cluster: ClusterName = "ke".parse().unwrap();
        let name = |name| own_name(&cluster, name);
        assert_eq!((name("vc:ke:readers"), name("x.ke")), ("readers".to_owned(), "x".to_owned()));
        assert_eq!((name("vc:ke:atoll:canary"), name("atoll-ke")), ("(hidden)".to_owned(), "(hidden)".to_owned()));
    }

    #[test]
    fn a_script_sees_what_is_unknown() {
        let cluster: ClusterName = "ke".parse().unwrap();
        assert!(declared_by(&cluster, &Declarations::default()).is_empty());
        let unreadable = Declarations::for_tests(&["kind: ProxyAgentConfiguration\n{"]);
        assert_eq!(declared_by(&cluster, &unreadable), [UNKNOWN]);
        let agent = "kind: ProxyAgentConfiguration\nvirtualClusters: [{name: ke}]";
        let both = Declarations::for_tests(&[agent, "kind: ProxyAgentConfiguration\n{"]);
        assert_eq!(declared_by(&cluster, &both), ["ConfigMap a/b"]);
    }
}
