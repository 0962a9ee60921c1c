//! The agent of a physical cluster. Nothing runs at the address of its API server.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_tests::process::Process;
use atoll_tests::{Prometheus, Site, eventually, paths, pause};

/// The identity of the agent, and the name of its files.
pub(super) const SITE: &str = "site-far";

/// The entry of the cluster in the configuration of the proxy-servers.
pub(super) const ENTRY: &str =
    "{name: observe-far, agents: [site-far], mode: physical, apiServer: 'observe-far.example.com:6443'}";

const CLUSTERS: &str = "physicalClusters: [{name: observe-far, apiServer: '127.0.0.1:1'}]";

/// With a cluster that the proxy-servers do not know.
const MORE_CLUSTERS: &str = "physicalClusters: [{name: observe-far, apiServer: '127.0.0.1:1'}, \
                             {name: observe-stranger, apiServer: '127.0.0.1:1'}]";

/// The time limit for a start and for its first scrape.
const STARTED: Duration = Duration::from_secs(20);

pub(super) struct Far {
    process: Process,
    config: PathBuf,
    address: String,
}

// === impl Far ===

impl Far {
    pub(super) fn start(site: &Site) -> anyhow::Result<Self> {
        let mut process = site.agent(SITE, CLUSTERS)?;
        process.printed("tunnel established")?;
        Ok(Self { process, config: site.file(&format!("{SITE}.yaml")), address: site.metrics(SITE)? })
    }

    /// Also offers a cluster that will be refused, from the next start on.
    pub(super) fn offer_more(&self) -> anyhow::Result<()> {
        let text = std::fs::read_to_string(&self.config)?;
        ensure!(text.contains(CLUSTERS), "{text}");
        Ok(std::fs::write(&self.config, text.replace(CLUSTERS, MORE_CLUSTERS))?)
    }

    /// Kills the process, starts it again, and waits until Prometheus has noticed both.
    pub(super) fn restart(&mut self, prometheus: &Prometheus) -> anyhow::Result<()> {
        let target = format!("instance=\"{}\"", self.address);
        let has = |query: &str| {
            eventually(STARTED, || {
                ensure!(!prometheus.query(query)?.is_empty(), "not `{query}`");
                Ok(())
            })
        };
        self.process.kill()?;
        has(&format!("up{{{target}}} == 0"))?;
        // The metric of the start time is in seconds.
        pause(Duration::from_secs(1));
        let config = self.config.to_str().context("temporary directories have UTF-8 names")?;
        let log = self.config.with_extension("log");
        self.process = Process::start(SITE, &paths::binary("proxy-agent"), &["--config", config], log)?;
        has(&format!("atoll_tunnels{{{target}}} > 0"))
    }

    pub(super) fn kill(&mut self) -> anyhow::Result<()> {
        self.process.kill()
    }
}
