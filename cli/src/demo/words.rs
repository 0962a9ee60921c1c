//! What a demonstration prints: to standard output, for the person who tries it and for scripts that wait for `ready`.

use std::io::Write;
use std::path::Path;

use super::Slice;
use super::files::{Files, Way};

/// Everything is written.
pub(super) fn prepared(files: &Files, kubeconfig: &Path, out: &mut dyn Write) -> anyhow::Result<()> {
    writeln!(out, "certificates, configurations and kubeconfigs are in {}", files.dir().display())?;
    writeln!(out, "the host cluster is that of the current context of {}", kubeconfig.display())?;
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
pub(super) fn ready(files: &Files, slices: &[(Slice, usize)], out: &mut dyn Write) -> anyhow::Result<()> {
    writeln!(out, "ready\n")?;
    let host = files.host_kubeconfig();
    let width = files.kubeconfig(slices[0].0, Way::Direct).display().to_string().len() + 3;
    writeln!(out, "{:<13}{:<7}{:<width$}WITHOUT PROXY", "CLUSTER", "NODES", "KUBECONFIG")?;
    for (slice, nodes) in slices {
        let path = |way| files.kubeconfig(*slice, way).display().to_string();
        writeln!(out, "{:<13}{nodes:<7}{:<width$}{}", slice.name, path(Way::Proxy), path(Way::Direct))?;
    }
    writeln!(out, "{:<13}{:<7}{}", "(the host)", "", host.display())?;
    for (slice, _) in slices.iter().filter(|(_, nodes)| *nodes == 0) {
        writeln!(
            out,
            "\nNo node of the host has the label location={0}, so pods of {1} will stay Pending. Give it to one:\n  \
             kubectl --kubeconfig {2} label node NODE location={0}",
            slice.location,
            slice.name,
            host.display()
        )?;
    }
    writeln!(out, "\nTry:")?;
    for (slice, _) in slices {
        let kubeconfig = files.kubeconfig(*slice, Way::Proxy);
        writeln!(out, "  kubectl --kubeconfig {} get nodes,namespaces", kubeconfig.display())?;
    }
    let first = files.kubeconfig(slices[0].0, Way::Proxy);
    writeln!(out, "  kubectl --kubeconfig {} create deployment web --image=nginx", first.display())?;
    writeln!(out, "  kubectl --kubeconfig {} get pods -A -o wide    # as the host sees it", host.display())?;
    writeln!(out, "\nCtrl-C ends it. RUST_LOG=info shows what both halves do.")?;
    Ok(())
}

/// It is over.
pub(super) fn ended(files: &Files, out: &mut dyn Write) -> anyhow::Result<()> {
    writeln!(
        out,
        "ended; what the clusters have stays on the host, and the next start with --dir {} finds it again",
        files.dir().display()
    )?;
    Ok(())
}
