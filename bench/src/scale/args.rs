//! The flags of `bench scale`.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context as _, ensure};

use super::report::Settings;
use super::resource::{self, Resource};
use super::writer::{Through, WRITERS};
use crate::load::pace::Rate;
use crate::load::time;

/// Run many virtual clusters on a real host cluster, and report what they cost.
///
/// Build the components of the host with `tests/kube/build`, and Atoll with `cargo build --release -p proxy-server
/// -p proxy-agent -p atoll`. Run the command in the root of the repository. Exits with 1 if a run fails; the others then
/// continue.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    # Start 1, 10 and 100 clusters with 4 informers each, and write 20 events per second\n  \
    bench scale --dir /tmp/scale --clusters 1,10,100\n\n  \
    # Compare two configurations of the agent, with 40 informers per cluster\n  \
    bench scale --dir /tmp/scale-configs --clusters 1,50 --informers 40 \\\n    \
    --agent-config default= --agent-config 'off=hub: {memoryMiB: 0}' --json /tmp/scale-configs.json")]
pub(crate) struct Args {
    /// The directory for all files and logs. It must not exist.
    #[arg(long, value_name = "DIR")]
    pub(super) dir: PathBuf,
    /// The numbers of clusters. There is one run for each.
    #[arg(long, value_name = "N,...", default_value = "1,10,100", value_delimiter = ',',
        value_parser = clap::value_parser!(u32).range(1..=5_000))]
    pub(super) clusters: Vec<u32>,
    /// The number of informers of each cluster. They watch the first M of --resources. If there are fewer than M, the list
    /// is repeated.
    #[arg(long, value_name = "M", default_value = "4", value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(super) informers: u32,
    /// The resources, as VERSION/RESOURCE or GROUP/VERSION/RESOURCE. Events are those of v1/configmaps. Only resources
    /// that kube-apiserver itself defines are supported.
    #[arg(long, value_name = "RESOURCE,...", default_value = resource::DEFAULT,
        value_delimiter = ',')]
    pub(super) resources: Vec<Resource>,
    /// The number of events per second: updates of ConfigMaps at the host, each in a namespace of one cluster.
    #[arg(long, value_name = "E", default_value = "20")]
    pub(super) events_per_second: NonZeroU32,
    /// The number of events that are due at the same time. The average rate stays the same. Larger bursts wake the processes less
    /// often, so that an event costs less CPU time.
    #[arg(long, value_name = "N", default_value = "1", value_parser = burst)]
    pub(super) burst: NonZeroU32,
    /// Where events are written. With `etcd`, kube-apiserver only delivers the updates; it does not admit or store them. Use
    /// `etcd` to measure the delivery at rates that are too high for writes through kube-apiserver.
    #[arg(long, value_name = "WHERE", default_value = "kube-apiserver")]
    pub(super) events_through: Through,
    /// The time in which events are written.
    #[arg(long, value_name = "TIME", default_value = "32s", value_parser = duration)]
    pub(super) seconds: Duration,
    /// The time in which the cost without events is measured, before the first event.
    #[arg(long, value_name = "TIME", default_value = "32s", value_parser = duration)]
    pub(super) idle: Duration,
    /// The time after the last event in which all events must arrive. Others count as lost. The run does not wait longer
    /// than necessary. The default is longer than a watch lasts.
    #[arg(long, value_name = "TIME", default_value = "40s", value_parser = time)]
    pub(super) grace: Duration,
    /// `timeoutSeconds` of each watch. Karmada uses 32.
    #[arg(long, value_name = "N", default_value = "32", value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub(super) watch_seconds: u64,
    /// Skip the last phase, which kills the agent while events are written, and starts it again. The agent still ends with
    /// the run.
    #[arg(long)]
    pub(super) keep_agent: bool,
    /// The number of nodes of each cluster.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=10))]
    pub(super) nodes: u32,
    /// The interval at which each node renews its Lease, in seconds. Each renewal is a write at the host. If there are many
    /// nodes, set more, so that the renewals do not use up the machine.
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u32).range(1..=60))]
    pub(super) lease_interval: u32,
    /// The number of pods that are created for each figure of the time to create a pod.
    #[arg(long, value_name = "N", default_value = "200", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) pods: u32,
    /// Additional keys of the agent's configuration, with a name for the report. Can be given several times: there is a
    /// run for each. The default is one without additional keys.
    #[arg(long = "agent-config", value_name = "NAME=YAML", default_value = "default=")]
    pub(super) agent_configs: Vec<AgentConfig>,
    /// The folder of the release binaries proxy-server, proxy-agent and atoll.
    #[arg(long, value_name = "DIR", default_value = "target/release", env = "ATOLL_BIN_DIR")]
    pub(super) bin: PathBuf,
    /// The folder of the scripts `up` and `down`, which start and stop the host.
    #[arg(long, value_name = "DIR", default_value = "tests/kube")]
    pub(super) kube: PathBuf,
    /// The folder of etcd, kube-apiserver, kubectl, kwok and the other components of the host.
    #[arg(long, value_name = "DIR", default_value = "target/kube/bin")]
    pub(super) kube_bin: PathBuf,
    /// The time limit until all clusters are ready, and until all informers have received all objects.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = time)]
    pub(super) ready_timeout: Duration,
    /// Also write the report to this file, as JSON. `bench/plot` makes a figure of it.
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
}

/// Additional keys of the agent's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AgentConfig {
    pub(super) name: String,
    pub(super) yaml: String,
}

// === impl Args ===

impl Args {
    /// The resource of each informer of a cluster.
    pub(super) fn informer_resources(&self) -> Vec<Resource> {
        self.resources.iter().cycle().take(self.informers as usize).cloned().collect()
    }

    pub(super) fn event_rate(&self) -> Rate {
        Rate { per_second: self.events_per_second, burst: self.burst }
    }

    pub(super) fn settings(&self) -> Settings {
        Settings {
            informers_per_cluster: self.informers as usize,
            nodes_per_cluster: self.nodes,
            lease_interval_seconds: self.lease_interval,
            watch_seconds: self.watch_seconds,
            events_per_second: self.events_per_second.get(),
            burst: self.burst.get(),
            events_through: self.events_through,
            seconds: self.seconds.as_secs_f64(),
            idle_seconds: self.idle.as_secs_f64(),
        }
    }
}

// === impl AgentConfig ===

impl FromStr for AgentConfig {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (name, yaml) = text.split_once('=').context("must be NAME=YAML")?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        ensure!(!name.is_empty() && name.bytes().all(plain), "a name consists of letters, digits and hyphens");
        Ok(Self { name: name.to_owned(), yaml: yaml.to_owned() })
    }
}

/// At most one event for each writer.
fn burst(text: &str) -> anyhow::Result<NonZeroU32> {
    let burst: NonZeroU32 = text.parse()?;
    ensure!(burst.get() as usize <= WRITERS, "must be at most {WRITERS}");
    Ok(burst)
}

/// Like [`time`]. A plain number is in seconds.
fn duration(text: &str) -> anyhow::Result<Duration> {
    let time = if text.parse::<u32>().is_ok() { time(&format!("{text}s")) } else { time(text) }?;
    ensure!(time >= Duration::from_secs(1), "must be at least 1s");
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_has_a_name() {
        let config: AgentConfig = "on=hub: {a: b=c}".parse().unwrap();
        assert_eq!(config, AgentConfig { name: "on".to_owned(), yaml: "hub: {a: b=c}".to_owned() });
        for text in ["", "on", "=a", "a/b=c", "..=c"] {
            assert!(text.parse::<AgentConfig>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_time_without_a_unit_is_in_seconds() {
        assert_eq!(duration("32").unwrap(), Duration::from_secs(32));
        assert_eq!(duration("2m").unwrap(), Duration::from_secs(120));
        assert!(duration("0").is_err());
        assert!(duration("2h").is_err());
    }
}
