//! `listeners:` and `proxy:`, the addresses of the listeners.

use std::net::SocketAddr;

use ops::config::{Located, Problems};
use ops::listen::ListenAddr;
use serde::Deserialize;

/// Addresses of the listeners; port 0 picks a free one.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Listeners {
    /// Clients, as an HTTP proxy.
    pub proxy: Located<ListenAddr>,
    /// Clients, directly.
    pub endpoint: Located<ListenAddr>,
    /// Agents.
    pub agents: Located<ListenAddr>,
    /// Probes.
    pub probes: Located<ListenAddr>,
    /// The operator: metrics and status.
    pub admin: Located<ListenAddr>,
    /// Prometheus: only metrics. `None`: there is no such listener.
    pub metrics: Option<Located<ListenAddr>>,
}

/// Beyond loopback, the proxy listener needs one of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ProxySecurity {
    /// Serve TLS, with a certificate of the serving CA for `hostNames`.
    pub tls: bool,
    /// Serve plain HTTP. The bytes inside are TLS, but the targets of CONNECT can be read and forged.
    pub insecure: bool,
}

// === impl Listeners ===

impl Default for Listeners {
    fn default() -> Self {
        let loopback = |port| ListenAddr::from(SocketAddr::from(([127, 0, 0, 1], port))).into();
        let anywhere = |port| ListenAddr::from(SocketAddr::from(([0, 0, 0, 0], port))).into();
        Self {
            proxy: loopback(8090),
            endpoint: anywhere(8443),
            agents: anywhere(8091),
            probes: anywhere(8092),
            admin: loopback(8095),
            metrics: None,
        }
    }
}

pub(super) fn check(listeners: &Listeners, security: ProxySecurity, problems: &mut Problems) {
    let proxy = &listeners.proxy;
    if !proxy.is_loopback() && !security.tls && !security.insecure {
        problems.at(
            proxy,
            "the proxy listener is plain HTTP beyond loopback: set `proxy: {tls: true}`, or accept it with \
             `proxy: {insecure: true}`",
        );
    }
    if security.tls && security.insecure {
        problems.general("`proxy.tls` and `proxy.insecure` contradict each other");
    }
    if !listeners.admin.is_loopback() {
        problems.at(&listeners.admin, "the admin listener has no authentication; it must be on loopback");
    }
}
