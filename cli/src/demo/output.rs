//! The output of the demo, for people and for scripts that wait for `ready`.

use std::io::Write;

use virtual_cluster::admission_policies;
use virtual_cluster::provisioner::PRIORITY_LEVEL;

use super::clusters::{CLUSTERS, DemoCluster};
use super::files::{Files, Route};
use super::host::Host;
use crate::invocation::Invocation;

/// Describes the host cluster.
pub(super) fn host(host: &Host, out: &mut dyn Write) -> anyhow::Result<()> {
    match host {
        Host::Given { kubeconfig, .. } => {
            writeln!(out, "using the host cluster of the current context in {}", kubeconfig.display())?;
        }
        Host::Dev(dev) => {
            writeln!(out, "WARNING: this is not a real Kubernetes cluster. {}", dev_apiserver::WARNING)?;
            writeln!(
                out,
                "No containers run: pods are simulated. To use a real cluster instead, set --kubeconfig FILE.\n"
            )?;
            writeln!(out, "using dev-apiserver at https://{} as the host cluster", dev.address())?;
        }
    }
    Ok(())
}

/// Says where the files are.
pub(super) fn prepared(files: &Files, out: &mut dyn Write) -> anyhow::Result<()> {
    writeln!(out, "certificates, configurations and kubeconfigs are in {}", files.dir().display())?;
    Ok(())
}

/// Lists the ports.
pub(super) fn listening(files: &Files, out: &mut dyn Write) -> anyhow::Result<()> {
    let ports = files.ports;
    writeln!(
        out,
        "proxy-server on 127.0.0.1: clients {} (proxy) and {} (direct), agents {}, probes {}, status {}; proxy-agent: \
         probes {}, status {}",
        ports.proxy,
        ports.endpoint,
        ports.agents,
        ports.server_probes,
        ports.server_admin,
        ports.agent_probes,
        ports.agent_admin
    )?;
    Ok(())
}

/// Says why a cluster does not work yet.
pub(super) fn waiting(cluster: DemoCluster, why: &str, out: &mut dyn Write) -> anyhow::Result<()> {
    writeln!(out, "waiting for {}: {why}", cluster.name)?;
    Ok(())
}

/// Says that a cluster works.
pub(super) fn works(cluster: DemoCluster, nodes: usize, out: &mut dyn Write) -> anyhow::Result<()> {
    writeln!(out, "{} works; nodes with location={}: {nodes}", cluster.name, cluster.location)?;
    Ok(())
}

/// Says that all clusters work, and what to try.
pub(super) fn ready(
    host: &Host,
    files: &Files,
    clusters: &[(DemoCluster, usize)],
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    table(files, clusters, out)?;
    let admin = files.host_kubeconfig();
    for (cluster, _) in clusters.iter().filter(|(_, nodes)| *nodes == 0) {
        writeln!(
            out,
            "\nNo node of the host has the label location={0}, so pods of {1} will stay Pending. Set it on a node:\n  \
             kubectl --kubeconfig {2} label node NODE location={0}",
            cluster.location,
            cluster.name,
            admin.display()
        )?;
    }
    writeln!(out, "\nready\n\nIn another terminal, try:")?;
    for (cluster, _) in clusters {
        let kubeconfig = files.kubeconfig(*cluster, Route::Proxy);
        writeln!(out, "  kubectl --kubeconfig {} get nodes,namespaces", kubeconfig.display())?;
    }
    let first = files.kubeconfig(clusters[0].0, Route::Proxy);
    writeln!(out, "  kubectl --kubeconfig {} create deployment web --image=nginx --replicas=2", first.display())?;
    writeln!(out, "  kubectl --kubeconfig {} get pods -o wide", first.display())?;
    writeln!(out, "  kubectl --kubeconfig {} get pods -A -o wide    # on the host", admin.display())?;
    let kept = match host {
        Host::Given { .. } => "",
        Host::Dev(_) => ", and deletes everything in the clusters",
    };
    writeln!(out, "\nCtrl-C stops the demo{kept}. Set RUST_LOG=info for more log messages.")?;
    Ok(())
}

/// The table of clusters and kubeconfigs.
fn table(files: &Files, clusters: &[(DemoCluster, usize)], out: &mut dyn Write) -> anyhow::Result<()> {
    let width = files.kubeconfig(clusters[0].0, Route::Direct).display().to_string().len() + 3;
    writeln!(out, "\n{:<13}{:<7}{:<width$}WITHOUT PROXY", "CLUSTER", "NODES", "KUBECONFIG")?;
    for (cluster, nodes) in clusters {
        let path = |route| files.kubeconfig(*cluster, route).display().to_string();
        writeln!(out, "{:<13}{nodes:<7}{:<width$}{}", cluster.name, path(Route::Proxy), path(Route::Direct))?;
    }
    writeln!(out, "{:<13}{:<7}{}", "(the host)", "", files.host_kubeconfig().display())?;
    Ok(())
}

/// Says what the demo leaves behind.
pub(super) fn ended(host: &Host, files: &Files, out: &mut dyn Write) -> anyhow::Result<()> {
    let dir = files.dir().display();
    match host {
        Host::Given { .. } => {
            writeln!(
                out,
                "stopped. The objects of the virtual clusters, the admission policies and a PriorityLevelConfiguration stay \
                 on the host; the next demo with --dir {dir} reuses them. To remove them, run these commands. Remove the \
                 policies and the PriorityLevelConfiguration only if no other proxy-agent serves this host."
            )?;
            let host = files.host_kubeconfig().display().to_string();
            for cluster in &CLUSTERS {
                let atoll = Invocation::current().typed();
                writeln!(out, "  {atoll} clusters remove {} --host-kubeconfig {host} --yes", cluster.name)?;
            }
            // A host without one of these kinds refuses only its command.
            for kind in ["validatingadmissionpolic", "mutatingadmissionpolic"] {
                let label = admission_policies::LABEL;
                writeln!(out, "  kubectl --kubeconfig {host} delete {kind}ies,{kind}ybindings -l {label}")?;
            }
            writeln!(out, "  kubectl --kubeconfig {host} delete prioritylevelconfiguration {PRIORITY_LEVEL}")?;
        }
        Host::Dev(_) => {
            writeln!(
                out,
                "stopped. The host cluster is deleted; the next demo starts a new one with the files in {dir}."
            )?;
        }
    }
    Ok(())
}
