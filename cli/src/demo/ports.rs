//! The ports of a demo, all on loopback.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use std::str::FromStr;

use anyhow::{Context as _, bail};

/// The remedy if a port is in use.
pub(super) const REMEDY: &str =
    "stop the process that listens there, set --port-base 0 for free ports, or set --port-base N for N to N+6";

/// The number of ports of proxy-server and proxy-agent.
const COUNT: u16 = 7;

/// The ports of proxy-server and proxy-agent, in the order in which `--port-base` counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ports {
    /// Clients, as an HTTP proxy.
    pub(super) proxy: u16,
    /// Clients, directly.
    pub(super) endpoint: u16,
    /// Agents.
    pub(super) agents: u16,
    /// The proxy-server's probes.
    pub(super) server_probes: u16,
    /// The proxy-server's metrics and status.
    pub(super) server_admin: u16,
    /// The proxy-agent's probes.
    pub(super) agent_probes: u16,
    /// The proxy-agent's metrics.
    pub(super) agent_admin: u16,
}

/// The value of `--port-base`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PortBase {
    /// `0`: any free ports.
    Free,
    /// This one and the next six.
    From(u16),
}

/// The default ports of the binaries.
const DEFAULT: [u16; COUNT as usize] = [8090, 8443, 8091, 8092, 8095, 8093, 8094];

// === impl Ports ===

impl Ports {
    /// The ports of the flag. They may be in use.
    pub(super) fn choose(base: Option<PortBase>) -> anyhow::Result<Self> {
        Ok(Self::new(match base {
            None => DEFAULT,
            Some(PortBase::From(base)) => std::array::from_fn(|at| base + u16::try_from(at).expect("below seven")),
            Some(PortBase::Free) => free().context("no free ports on 127.0.0.1")?,
        }))
    }

    /// Fails if ports are in use. The error names all of them and their purposes. Call it before files are written, so
    /// that a running demo keeps the files with its ports.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let Self { proxy, endpoint, agents, server_probes, server_admin, agent_probes, agent_admin } = *self;
        let wanted = [
            (proxy, "clients, as an HTTP proxy"),
            (endpoint, "clients, directly"),
            (agents, "agents"),
            (server_probes, "the proxy-server's probes"),
            (server_admin, "the proxy-server's status"),
            (agent_probes, "the proxy-agent's probes"),
            (agent_admin, "the proxy-agent's status"),
        ];
        let mut in_use = Vec::new();
        for (port, what) in wanted {
            match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::AddrInUse => in_use.push(format!("{port} ({what})")),
                Err(error) => return Err(error).with_context(|| format!("127.0.0.1:{port} ({what}); {REMEDY}")),
            }
        }
        match in_use.as_slice() {
            [] => Ok(()),
            [one] => bail!("port {one} of 127.0.0.1 is in use; {REMEDY}"),
            more => bail!("ports {} of 127.0.0.1 are in use; {REMEDY}", more.join(", ")),
        }
    }

    fn new(ports: [u16; COUNT as usize]) -> Self {
        let [proxy, endpoint, agents, server_probes, server_admin, agent_probes, agent_admin] = ports;
        Self { proxy, endpoint, agents, server_probes, server_admin, agent_probes, agent_admin }
    }
}

/// Free ports. They must be known before they are bound, because files name them. If another process binds one in
/// between, which is unlikely, the demo reports it.
fn free() -> std::io::Result<[u16; COUNT as usize]> {
    // Bind all of them at the same time, so that they differ.
    let held = (0..COUNT).map(|_| TcpListener::bind(("127.0.0.1", 0))).collect::<Result<Vec<_>, _>>()?;
    let mut ports = [0; COUNT as usize];
    for (port, held) in ports.iter_mut().zip(&held) {
        *port = held.local_addr()?.port();
    }
    Ok(ports)
}

// === impl PortBase ===

impl FromStr for PortBase {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let last = u16::MAX - (COUNT - 1);
        match text.parse::<u16>() {
            Ok(0) => Ok(Self::Free),
            Ok(base) if base <= last => Ok(Self::From(base)),
            _ => Err(format!("must be 0 (free ports), or a port up to {last}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_base_counts_in_the_order_of_the_listeners() {
        let ports = Ports::choose(Some("21000".parse().unwrap())).unwrap();
        assert_eq!((ports.proxy, ports.endpoint, ports.agents), (21000, 21001, 21002));
        assert_eq!((ports.server_probes, ports.server_admin), (21003, 21004));
        assert_eq!((ports.agent_probes, ports.agent_admin), (21005, 21006));
        assert_eq!("65529".parse(), Ok(PortBase::From(65529)));
        for bad in ["65530", "-1", "x", "", "70000"] {
            assert!(bad.parse::<PortBase>().is_err(), "{bad}");
        }
    }

    #[test]
    fn all_used_ports_are_reported() {
        let held: Vec<_> = (0..2).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()).collect();
        let ports: Vec<_> = held.iter().map(|held| held.local_addr().unwrap().port()).collect();
        let mut wanted = Ports::choose(Some(PortBase::Free)).unwrap();
        (wanted.proxy, wanted.agent_admin) = (ports[0], ports[1]);
        let error = wanted.check().unwrap_err().to_string();
        for word in [&ports[0].to_string(), &ports[1].to_string(), "HTTP proxy", "--port-base 0"] {
            assert!(error.contains(word), "{error}");
        }
        assert!(!error.contains("(agents)"), "{error}");
        drop(held);
        wanted.check().unwrap();
    }

    #[test]
    fn free_ports_differ() {
        let ports = free().unwrap();
        assert_eq!(ports.iter().collect::<HashSet<_>>().len(), ports.len());
        assert!(!ports.contains(&0));
    }
}
