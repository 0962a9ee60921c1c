//! `peers:`, the other proxy-servers.

use ops::config::{Located, Problems};
use protocol::Authority;
use serde::Deserialize;

use super::certificates::KeyPair;

/// The proxy-servers that forward requests to each other.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Peers {
    /// Their listeners for agents. A name may resolve to several addresses, and also to that of this process.
    pub servers: Vec<Located<Authority>>,
    /// The certificate with which this process authenticates to the others, signed by `agentCA`. All of them have the same common name.
    pub identity: Located<KeyPair>,
}

/// The names that the certificate of every proxy-server contains.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

pub(super) fn check(peers: &Peers, host_names: &[Located<String>], problems: &mut Problems) {
    if peers.servers.is_empty() {
        let message = "`peers.servers` must name at least one proxy-server; if there is only one, remove `peers`";
        problems.at(&peers.identity, message);
    }
    for server in &peers.servers {
        let host = server.host();
        let is_verifiable = LOCAL.contains(&host) || host_names.iter().any(|name| name.eq_ignore_ascii_case(host));
        if !is_verifiable {
            let message = format!("`hostNames` must contain `{host}`: the other proxy-servers verify this name");
            problems.at(server, message);
        }
    }
}
