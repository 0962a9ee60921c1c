//! What `helm lint`, `values.schema.json` and `templates/checks.yaml` accept and refuse. This requires no API server.

use std::fs;
use std::path::Path;

use anyhow::ensure;
use atoll_tests::{Kubectl, paths};

use super::{AGENT, SERVER, chart, sets, text, values_of};

/// Values in addition to those of a file in `ci/`, and a part of Helm's message.
const REFUSED: [(&str, &str, &str); 22] = [
    (AGENT, "proxyagent.enabled=true", "at '': additional properties 'proxyagent' not allowed"),
    (AGENT, "proxyAgent.replica=3", "at '/proxyAgent': additional properties 'replica' not allowed"),
    (AGENT, "proxyAgent.replicas=many", "at '/proxyAgent/replicas': got string, want integer"),
    (AGENT, "proxyAgent.image.digest=abc", "at '/proxyAgent/image/digest': 'abc' does not match pattern"),
    (AGENT, "proxyAgent.rbac.create=perhaps", "at '/proxyAgent/rbac/create': got string, want boolean"),
    (AGENT, "proxyAgent.config.server=a:1", "at '/proxyAgent/config': additional properties 'server' not allowed"),
    (AGENT, "proxyAgent.config.servers={proxy.example.com}", "at '/proxyAgent/config/servers/0': 'proxy.example.com'"),
    (AGENT, "proxyAgent.config.compression=yes", "one of 'auto', 'always', 'never'"),
    (AGENT, "proxyAgent.config.hub.memory=1", "at '/proxyAgent/config/hub': additional properties 'memory'"),
    (AGENT, "proxyAgent.config.virtualClusters[0].nodes=a", "'/proxyAgent/config/virtualClusters/0': additional"),
    (AGENT, "proxyAgent.config.virtualClusters[0].nodeSelector=a", "got string, want object"),
    (AGENT, "proxyAgent.config.kind=ProxyServerConfiguration", "value must be 'ProxyAgentConfiguration'"),
    (SERVER, "proxyServer.service.type=Balancer", "at '/proxyServer/service/type': value must be one of"),
    (SERVER, "proxyServer.service.ports.agents.port=0", "minimum: got 0, want 1"),
    (SERVER, "proxyServer.config.clusters[0].clientCA=a.crt", "/clusters/0/clientCA': got string, want null or object"),
    (SERVER, "proxyServer.enabled=false", "nothing to install: set proxyServer.enabled, proxyAgent.enabled or"),
    (SERVER, "proxyServer.config.hostNames=null", "proxyServer.config.hostNames is empty"),
    (
        SERVER,
        "proxyServer.serviceMonitor.enabled=true,proxyServer.config.listeners.metrics=null",
        "proxyServer.serviceMonitor requires proxyServer.config.listeners.metrics",
    ),
    (SERVER, "karmadaRights.enabled=true", "install it as a separate release"),
    (AGENT, "proxyAgent.config.servers=null", "proxyAgent.config.servers is empty"),
    (AGENT, "proxyAgent.config.virtualClusters=null", "neither virtualClusters nor physicalClusters"),
    (AGENT, "proxyAgent.config.host.kubeconfig=a", "set inCluster to false"),
];

pub(super) fn wrong_values_are_refused() -> anyhow::Result<()> {
    let folder = tempfile::Builder::new().prefix("atoll-helm-values-").tempdir()?;
    let helm = Kubectl::helm(folder.path().join("none"));
    let chart = chart();
    let chart = text(&chart)?;

    let shown = helm.ok(&["show", "chart", chart])?;
    for key in ["version", "appVersion"] {
        let line = format!("{key}: {}", env!("CARGO_PKG_VERSION"));
        ensure!(shown.lines().any(|shown| shown == line), "no `{line}`; the chart has the version of Atoll:\n{shown}");
    }
    for set in sets()? {
        let linted = helm.ok(&["lint", "--strict", chart, "-f", &values_of(&super::chart(), &set)?])?;
        ensure!(linted.contains(" 0 chart(s) failed"), "{set}: {linted}");
    }
    for (set, value, expected) in REFUSED {
        let file = values_of(&super::chart(), set)?;
        let message = helm.fails(&["template", "atoll", chart, "-f", &file, "--set", value])?;
        ensure!(message.contains(expected), "{value}: no {expected:?} in the message:\n{message}");
    }
    every_key_is_accepted(&helm, folder.path())?;
    packaged(&helm, folder.path())
}

/// `configs/*.yaml` have all keys of a configuration.
fn every_key_is_accepted(helm: &Kubectl, folder: &Path) -> anyhow::Result<()> {
    for (part, program) in [("proxyServer", "proxy-server"), ("proxyAgent", "proxy-agent")] {
        let config = fs::read_to_string(paths::workspace().join(format!("configs/{program}.yaml")))?;
        let indented: Vec<String> = config.lines().map(|line| format!("    {line}")).collect();
        let file = folder.join("all.yaml");
        fs::write(&file, format!("{part}:\n  enabled: true\n  config:\n{}\n", indented.join("\n")))?;
        helm.ok(&["template", "atoll", text(&chart())?, "-f", text(&file)?])?;
    }
    Ok(())
}

/// A packaged chart has all files, and renders the same objects.
fn packaged(helm: &Kubectl, folder: &Path) -> anyhow::Result<()> {
    let chart = chart();
    helm.ok(&["package", text(&chart)?, "-d", text(folder)?])?;
    let package = folder.join(format!("atoll-{}.tgz", env!("CARGO_PKG_VERSION")));
    let render =
        |chart: &str, set: &str| helm.ok(&["template", "atoll", chart, "-f", &values_of(&super::chart(), set)?]);
    for set in [AGENT, SERVER] {
        ensure!(render(text(&package)?, set)? == render(text(&chart)?, set)?, "{set}: the package differs");
    }
    Ok(())
}
