//! What goes wrong.

use std::time::Duration;

use anyhow::Context;
use atoll_tests::{Quality, kubectl, pause as wait};
use fastrand::Rng;
use serde_json::{Value, json};

use super::Soak;

/// The number and size of large objects, in bytes. Those of one cluster do not fit into the hub.
const LARGE: usize = 8;
const SIZE: usize = 700 << 10;

/// The maximum number of watches that nobody reads.
const UNREAD: usize = 6;

/// The paths of such watches.
const PATHS: [&str; 2] = ["/api/v1/configmaps?watch=1&resourceVersion=0", "/api/v1/secrets?watch=1"];

/// Longer than both halves wait for a PING, which is 30 s.
const SUSPENDED: Duration = Duration::from_secs(35);

/// 1 Mbit/s.
const SLOW: Quality = Quality { delay: Duration::from_millis(100), rate: Some(125_000) };

/// The binding of the agent to its role on the host.
const BINDING: &str = "clusterrolebinding/atoll-proxy-agent";

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The agent is killed, and starts again.
    AgentKilled,
    /// The agent drains, and starts again.
    AgentRestarted,
    /// The proxy-server is killed, and starts again.
    ServerKilled,
    /// All connections between the agent and the host break.
    HostConnectionsBroken,
    /// The agent does nothing for some seconds.
    AgentPaused,
    /// The proxy-server does nothing for some seconds.
    ServerPaused,
    /// The agent does nothing for longer than both halves wait for a PING. Its clocks jump.
    AgentSuspended,
    /// All tunnels break.
    NetworkCut,
    /// The network carries no more bytes of open tunnels, and nobody is told.
    NetworkDead,
    /// The network between the halves has a long round trip and few bytes per second for some seconds.
    NetworkSlow,
    /// The agent has no rights at the host for some seconds.
    RightsRevoked,
    /// A namespace with objects joins a virtual cluster, and leaves it.
    NamespaceMoved,
    /// Large objects of a virtual cluster do not fit into the hub.
    LargeObjects,
    /// A client opens a watch, and does not read it.
    WatchUnread,
}

// === impl Fault ===

impl Fault {
    pub(super) const ALL: [Self; 14] = [
        Self::AgentKilled,
        Self::AgentRestarted,
        Self::ServerKilled,
        Self::HostConnectionsBroken,
        Self::AgentPaused,
        Self::ServerPaused,
        Self::AgentSuspended,
        Self::NetworkCut,
        Self::NetworkDead,
        Self::NetworkSlow,
        Self::RightsRevoked,
        Self::NamespaceMoved,
        Self::LargeObjects,
        Self::WatchUnread,
    ];

    /// A random fault. `kills`: also those that end a process.
    pub(super) fn choose(random: &mut Rng, kills: bool) -> Self {
        loop {
            let fault = Self::ALL[random.usize(..Self::ALL.len())];
            let is_chosen = match fault {
                Self::AgentKilled | Self::AgentRestarted | Self::ServerKilled => kills,
                // After the first one, watches of a virtual cluster go to the host for ten minutes. The others take half a minute.
                Self::LargeObjects | Self::AgentSuspended | Self::NetworkDead => random.u8(..4) == 0,
                _ => true,
            };
            if is_chosen {
                return fault;
            }
        }
    }
}

// === impl Soak ===

impl Soak {
    pub(super) fn inject(&mut self, fault: Fault) -> anyhow::Result<()> {
        let pause = Duration::from_millis(self.random.u64(..4_000));
        match fault {
            Fault::AgentKilled => {
                self.agent.kill()?;
                wait(pause);
                self.start_agent()?;
            }
            Fault::AgentRestarted => {
                self.agent.terminate()?;
                self.start_agent()?;
            }
            Fault::ServerKilled => {
                self.site.server.kill()?;
                wait(pause);
                self.site.restart_server()?;
            }
            Fault::HostConnectionsBroken => {
                self.balancer.cut();
            }
            Fault::AgentPaused => {
                self.agent.pause()?;
                wait(pause);
                self.agent.resume()?;
            }
            Fault::ServerPaused => {
                self.site.server.pause()?;
                wait(pause);
                self.site.server.resume()?;
            }
            Fault::AgentSuspended => {
                self.agent.pause()?;
                wait(SUSPENDED);
                self.agent.resume()?;
            }
            Fault::NetworkCut => self.network.cut(),
            Fault::NetworkDead => {
                self.network.lose();
                wait(SUSPENDED);
            }
            Fault::NetworkSlow => {
                self.network.set(SLOW);
                wait(2 * pause);
                self.network.set(Quality::default());
            }
            Fault::RightsRevoked => self.revoke(pause)?,
            Fault::NamespaceMoved => self.move_namespace(pause)?,
            Fault::LargeObjects => self.create_large_objects(pause)?,
            Fault::WatchUnread => self.leave_unread()?,
        }
        Ok(())
    }

    fn revoke(&self, pause: Duration) -> anyhow::Result<()> {
        let operator = self.host.kubectl();
        let mut binding: Value = serde_json::from_str(&operator.ok(&["get", BINDING, "-o", "json"])?)?;
        let metadata = binding["metadata"].as_object_mut().context("no metadata")?;
        metadata.retain(|key, _| key == "name");
        operator.ok(&["delete", BINDING])?;
        wait(pause);
        operator.ok_with(&["create", "-f", "-"], &binding.to_string()).map(drop)
    }

    /// At the host, so that the agent learns of it only from its watches.
    fn move_namespace(&mut self, pause: Duration) -> anyhow::Result<()> {
        let ((cluster, _), operator) = (self.any(), self.host.kubectl());
        self.moved += 1;
        let (name, inside) = (format!("moved-{}-{cluster}", self.moved), format!("moved-{}", self.moved));
        operator.ok(&["create", "namespace", &name])?;
        operator.ok(&["create", "configmap", "old", "-n", &name])?;
        let labels = [format!("atoll.dev/virtual-cluster={cluster}"), format!("atoll.dev/namespace={inside}")];
        operator.ok(&["label", "namespace", &name, &labels[0], &labels[1]])?;
        wait(pause);
        operator.ok(&["create", "configmap", "new", "-n", &name])?;
        let none = json!({"metadata": {"labels": {"atoll.dev/virtual-cluster": null, "atoll.dev/namespace": null}}});
        operator.ok(&["patch", "namespace", &name, "--type=merge", "-p", &none.to_string()])?;
        wait(pause);
        operator.ok(&["delete", "namespace", &name, "--wait=false"]).map(drop)
    }

    fn create_large_objects(&mut self, pause: Duration) -> anyhow::Result<()> {
        let ((cluster, _), operator, text) = (self.any(), self.host.kubectl(), "x".repeat(SIZE));
        let namespace = format!("informer-{cluster}");
        for number in 0..LARGE {
            let metadata = json!({"name": format!("large-{number}"), "labels": {"large": "true"}});
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}});
            operator.ok_with(&["create", "-n", &namespace, "-f", "-"], &map.to_string())?;
        }
        wait(pause);
        operator.ok(&["delete", "configmaps", "-n", &namespace, "-l", "large=true"]).map(drop)
    }

    fn leave_unread(&mut self) -> anyhow::Result<()> {
        let (_, client) = self.any();
        let path = PATHS[self.random.usize(..PATHS.len())];
        self.unread.push_back(client.start(&["get", "--raw", path])?);
        if self.unread.len() > UNREAD {
            self.unread.pop_front().map(kubectl::end).transpose()?;
        }
        Ok(())
    }
}
