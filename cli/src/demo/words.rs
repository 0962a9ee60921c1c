//! What a demonstration prints: to standard output, for the person who tries it and for scripts that wait for `ready`.

use std::io::Write;

use super::Slice;
use super::files::{Files, Way};
use super::host::Host;

/// What is divided is there.
pub(super) fn host(host: &Host, out: &mut dyn Write) -> anyhow::Result<()> {
    match host {
        Host::Given { kubeconfig, .. } => {
            writeln!(out, "the host cluster is that of the current context of {}", kubeconfig.display())?;
        }
        Host::Toy(toy) => {
            writeln!(out, "WARNING: this is no real Kubernetes. {}", dev_apiserver::WARNING)?;
            writeln!(
                out,
                "No container runs: pods are make-believe. --kubeconfig FILE takes a real cluster instead.\n"
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

/// Both halves are there.
pub(super) fn listening(files: &Files, out: &mut dyn Write) -> anyhow::Result<()> {
    let ports = files.ports;
    writeln!(
        out,
        "proxy-server on 127.0.0.1: clients {} (proxy) and {} (direct), agents {}, status {}; proxy-agent: probes {}",
        ports.proxy, ports.endpoint, ports.agents, ports.server_admin, ports.agent_probes
    )?;
    Ok(())
}

/// A cluster does not work yet.
pub(super) fn waiting(slice: Slice, why: &str, out: &mut dyn Write) -> anyhow::Result<()> {
    writeln!(out, "waiting for {}: {why}", slice.name)?;
    Ok(())
}

/// A cluster works.
pub(super) fn works(slice: Slice, nodes: usize, out: &mut dyn Write) -> anyhow::Result<()> {
    writeln!(out, "{} answers; nodes with location={}: {nodes}", slice.name, slice.location)?;
    Ok(())
}

/// All work.
pub(super) fn ready(host: &Host, files: &Files, slices: &[(Slice, usize)], out: &mut dyn Write) -> anyhow::Result<()> {
    table(files, slices, out)?;
    let admin = files.host_kubeconfig();
    for (slice, _) in slices.iter().filter(|(_, nodes)| *nodes == 0) {
        writeln!(
            out,
            "\nNo node of the host has the label location={0}, so pods of {1} will stay Pending. Give it to one:\n  \
             kubectl --kubeconfig {2} label node NODE location={0}",
            slice.location,
            slice.name,
            admin.display()
        )?;
    }
    writeln!(out, "\nready\n\nTry, in another terminal:")?;
    for (slice, _) in slices {
        let kubeconfig = files.kubeconfig(*slice, Way::Proxy);
        writeln!(out, "  kubectl --kubeconfig {} get nodes,namespaces", kubeconfig.display())?;
    }
    let first = files.kubeconfig(slices[0].0, Way::Proxy);
    writeln!(out, "  kubectl --kubeconfig {} create deployment web --image=nginx --replicas=2", first.display())?;
    writeln!(out, "  kubectl --kubeconfig {} get pods -o wide", first.display())?;
    writeln!(out, "  kubectl --kubeconfig {} get pods -A -o wide    # as the host sees it", admin.display())?;
    let kept = match host {
        Host::Given { .. } => "",
        Host::Toy(_) => " and all that the clusters have",
    };
    writeln!(out, "\nCtrl-C ends it{kept}. RUST_LOG=info shows what both halves do.")?;
    Ok(())
}

/// What was made.
fn table(files: &Files, slices: &[(Slice, usize)], out: &mut dyn Write) -> anyhow::Result<()> {
    let width = files.kubeconfig(slices[0].0, Way::Direct).display().to_string().len() + 3;
    writeln!(out, "\n{:<13}{:<7}{:<width$}WITHOUT PROXY", "CLUSTER", "NODES", "KUBECONFIG")?;
    for (slice, nodes) in slices {
        let path = |way| files.kubeconfig(*slice, way).display().to_string();
        writeln!(out, "{:<13}{nodes:<7}{:<width$}{}", slice.name, path(Way::Proxy), path(Way::Direct))?;
    }
    writeln!(out, "{:<13}{:<7}{}", "(the host)", "", files.host_kubeconfig().display())?;
    Ok(())
}

/// It is over.
pub(super) fn ended(host: &Host, files: &Files, out: &mut dyn Write) -> anyhow::Result<()> {
    let dir = files.dir().display();
    match host {
        Host::Given { .. } => writeln!(
            out,
            "ended; what the clusters have stays on the host, and the next start with --dir {dir} finds it again"
        )?,
        Host::Toy(_) => {
            writeln!(out, "ended, and the host with it; the next start begins anew, with the files in {dir}")?;
        }
    }
    Ok(())
}
