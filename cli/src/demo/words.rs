//! What a demo prints to standard output, for people and for scripts that wait for `ready`.

use std::io::Write;

use virtual_cluster::admission_policies;

use super::clusters::{CLUSTERS, DemoCluster};
use super::files::{Files, Route};
use super::host::Host;

/// The host cluster runs.
pub(super) fn host(host: &Host, out: &mut dyn Write) -> anyhow::Result<()> {
    match host {
        Host::Given { kubeconfig, .. } => {
            writeln!(out, "the host cluster is that of the current context in {}", kubeconfig.display())?;
        }
        Host::Toy(toy) => {
            writeln!(out, "WARNING: this is no real Kubernetes. {}", dev_apiserver::WARNING)?;
            writeln!(
                out,
                "No containers run: pods are simulated. To use a real cluster instead, set --kubeconfig FILE.\n"
            )?;
            writeln!(out, "the host cluster is dev-apiserver, at https://{}", toy.address())?;
        }
    }
    Ok(())
}

/// Everything is written.
pub(super) fn prepared(files: &Files, out: &mut dyn Write) -> anyhow::Result<()> {
    writeln!(out, "certificates, configurations and kubeconfigs are in {}", files.dir().display())?;
    Ok(())
}

/// Both halves listen.
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

/// A cluster does not work yet.
pub(super) fn waiting(cluster: DemoCluster, why: &str, out: &mut dyn Write) -> anyhow::Result<()> {
    writeln!(out, "waiting for {}: {why}", cluster.name)?;
    Ok(())
}

/// A cluster works.
pub(super) fn works(cluster: DemoCluster, nodes: usize, out: &mut dyn Write) -> anyhow::Result<()> {
    writeln!(out, "{} works; nodes with location={}: {nodes}", cluster.name, cluster.location)?;
    Ok(())
}

/// All work.
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
    writeln!(out, "\nready\n\nTry, in another terminal:")?;
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
        Host::Toy(_) => ", and deletes everything in the clusters",
    };
    writeln!(out, "\nCtrl-C stops the demo{kept}. Set RUST_LOG=info to log what both halves do.")?;
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

/// The demo has ended.
pub(super) fn ended(host: &Host, files: &Files, out: &mut dyn Write) -> anyhow::Result<()> {
    let dir = files.dir().display();
    match host {
        Host::Given { .. } => {
            writeln!(
                out,
                "stopped; the objects of the clusters and the admission policies stay on the host, and the next demo \
                 with --dir {dir} uses them again. To remove them (the policies only if no other proxy-agent serves \
                 this host):"
            )?;
            let host = files.host_kubeconfig().display().to_string();
            for cluster in &CLUSTERS {
                writeln!(out, "  atoll namespaces remove --host-kubeconfig {host} --cluster {}", cluster.name)?;
            }
            // The second command fails on a host without that kind.
            for kind in ["validatingadmissionpolic", "mutatingadmissionpolic"] {
                let label = admission_policies::LABEL;
                writeln!(out, "  kubectl --kubeconfig {host} delete {kind}ies,{kind}ybindings -l {label}")?;
            }
        }
        Host::Toy(_) => {
            writeln!(
                out,
                "stopped; the host cluster is deleted, and the next demo starts a new one with the files in {dir}"
            )?;
        }
    }
    Ok(())
}
