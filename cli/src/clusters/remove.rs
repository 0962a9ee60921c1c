//! `atoll clusters remove`.

mod served;

use std::io::{BufRead as _, IsTerminal as _, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use host_client::api::Api;
use rewrite::ClusterName;
use tokio::time::{Instant, sleep};
use virtual_cluster::belongings::{self, Hold};
use virtual_cluster::declared::removal;

use super::declaration::{AgentArgs, Declarations};
use super::host::HostArgs;
use super::inventory::Inventory;
use super::progress::{Progress, note};

/// The exit code if the virtual cluster is declared or served.
const REFUSED: u8 = 3;
/// The time between two checks whether the namespaces still exist.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The time between two checks whether an agent has created objects again.
const SETTLING: Duration = Duration::from_secs(2);

/// Remove everything that a virtual cluster has on a host.
///
/// First delete the VirtualCluster object, or remove the virtual cluster from the configuration of the agent. The
/// command refuses to remove a virtual cluster if it finds a declaration of it: a VirtualCluster object, the
/// configuration of an agent in this host cluster, or a file of --agent-config. It also refuses if an agent that runs
/// elsewhere serves the virtual cluster, or if it cannot read the configuration of an agent in a ConfigMap. To find out, it removes a finalizer, and checks whether an agent adds it
/// again.
///
/// It deletes the namespaces with everything in them, the root namespace, the ClusterRoles, the FlowSchema, and custom
/// resources without a namespace. It removes the labels and annotations of the virtual cluster from objects that it
/// shares with others, and deletes the objects that no one else uses. It removes the label of the virtual cluster from
/// nodes. It waits until the host has deleted everything.
/// You can interrupt the command, and run it again.
///
/// The data of deleted PersistentVolumeClaims is deleted if the reclaim policy of the volume is `Delete`. Members of
/// Karmada stay registered there.
///
/// Exits with 0 when nothing is left, with 1 on failure, and with 3 if the virtual cluster is, or may be, still declared
/// or served.
/// Invalid flags exit with 2.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    # Show what would be removed\n  \
    atoll clusters remove ke-beijing --host-kubeconfig /etc/kubernetes/admin.conf --dry-run\n\n  \
    # Remove it, without a question\n  \
    atoll clusters remove ke-beijing --host-kubeconfig /etc/kubernetes/admin.conf --yes")]
pub(super) struct Args {
    /// The name of the virtual cluster.
    #[arg(value_name = "NAME")]
    cluster: ClusterName,

    #[command(flatten)]
    host: HostArgs,

    #[command(flatten)]
    agents: AgentArgs,

    /// Only print what would be removed.
    #[arg(long)]
    dry_run: bool,

    /// Do not ask. Without a terminal, this flag is required.
    #[arg(long)]
    yes: bool,

    /// The seconds to wait until the host has deleted everything.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
}

pub(super) async fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    let (api, cluster) = (args.host.open()?, &args.cluster);
    let declared = Declarations::read(&api, &args.agents).await?;
    let by: Vec<_> = declared.of(cluster).collect();
    if !by.is_empty() {
        note(&format!("virtual cluster {cluster} is still declared by {}; remove it there first", by.join(" and by ")));
        return Ok(ExitCode::from(REFUSED));
    }
    if let Some(unreadable) = declared.unreadable() {
        note(&format!(
            "cannot read the configuration of an agent in {unreadable}, which may declare {cluster}; correct it, or name the \
             configurations of all agents of this host with --agent-config"
        ));
        return Ok(ExitCode::from(REFUSED));
    }
    let inventory = Inventory::of(&api, cluster).await?;
    if inventory.is_empty() {
        writeln!(out, "This host has nothing of virtual cluster {cluster}.")?;
        return Ok(ExitCode::SUCCESS);
    }
    plan(&inventory, out)?;
    if args.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    if !args.yes {
        confirm(cluster, out)?;
    }
    if served::is_served(&api, &inventory).await? {
        return Ok(refuse(cluster));
    }
    let until = Instant::now() + Duration::from_secs(args.timeout);
    if !delete_namespaces(&api, cluster, until, out).await? {
        return Ok(refuse(cluster));
    }
    delete_others(&api, cluster, until, out).await?;
    // An agent that serves it has created at least the root namespace again by now.
    sleep(SETTLING).await;
    let left = Inventory::of(&api, cluster).await?;
    if !left.namespaces.is_empty() {
        return Ok(refuse(cluster));
    }
    writeln!(out, "This host has nothing of virtual cluster {cluster} any more.")?;
    Ok(ExitCode::SUCCESS)
}

fn refuse(cluster: &ClusterName) -> ExitCode {
    note(&format!(
        "a proxy-agent still serves {cluster}, and would create its objects again; remove {cluster} from the agent's \
         configuration, and run this command again"
    ));
    ExitCode::from(REFUSED)
}

/// Prints what will be removed.
fn plan(inventory: &Inventory, out: &mut dyn Write) -> anyhow::Result<()> {
    for namespace in &inventory.namespaces {
        writeln!(out, "delete namespaces {} and everything in it", namespace.host_name)?;
    }
    for found in &inventory.found {
        match found.hold {
            Hold::Whole => writeln!(out, "delete {} {}", found.resource, found.name)?,
            Hold::Overlay | Hold::Former => writeln!(out, "release {} {}", found.resource, found.name)?,
            Hold::Label => {
                writeln!(out, "remove the label of {} from {} {}", found.cluster, found.resource, found.name)?;
            }
        }
    }
    Ok(())
}

fn confirm(cluster: &ClusterName, out: &mut dyn Write) -> anyhow::Result<()> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        bail!("add --yes to remove virtual cluster {cluster}");
    }
    write!(out, "This cannot be undone. Enter the name of the virtual cluster to continue: ")?;
    out.flush()?;
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer).context("no answer")?;
    if answer.trim() != cluster.as_str() {
        bail!("nothing has been removed");
    }
    Ok(())
}

/// Deletes the namespaces, and the root namespace last. Returns `false` if an agent serves the virtual cluster.
async fn delete_namespaces(
    api: &Api,
    cluster: &ClusterName,
    until: Instant,
    out: &mut dyn Write,
) -> anyhow::Result<bool> {
    let mut progress = Progress::new();
    // The number of namespaces never grows, unless something creates them.
    let mut fewest = usize::MAX;
    loop {
        let left = removal::remove(api, cluster).await?;
        let count = left.namespaces.len() + usize::from(left.root);
        if count == 0 {
            writeln!(out, "deleted the namespaces of {cluster}")?;
            return Ok(true);
        }
        if count > fewest {
            return Ok(false);
        }
        fewest = count;
        if Instant::now() >= until {
            let names: Vec<_> = left.namespaces.iter().map(rewrite::HostNamespace::as_str).collect();
            bail!("{count} namespaces still exist: {}; `kubectl describe namespace` shows why", names.join(", "));
        }
        progress.tell(|| format!("waiting until the host has deleted {count} namespaces"));
        sleep(POLL_INTERVAL).await;
    }
}

/// Deletes what is not in a namespace, and waits until it is gone.
async fn delete_others(api: &Api, cluster: &ClusterName, until: Instant, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut progress = Progress::new();
    let mut is_first = true;
    loop {
        let left = Inventory::of(api, cluster).await?.found;
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() >= until {
            let names: Vec<_> = left.iter().map(|found| format!("{} {}", found.resource, found.name)).collect();
            bail!("these objects still exist: {}; their finalizers show who must release them", names.join(", "));
        }
        for found in &left {
            belongings::remove(api, found).await.with_context(|| found.path.clone())?;
            if is_first {
                writeln!(out, "removed {} {}", found.resource, found.name)?;
            }
        }
        is_first = false;
        progress.tell(|| format!("waiting until the host has deleted {} objects", left.len()));
        sleep(POLL_INTERVAL).await;
    }
}
