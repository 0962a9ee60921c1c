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
    /// The certificate by which they recognise this process, signed by `agentCA`. All of them have the same common name.
    pub identity: Located<KeyPair>,
}

pub(super) fn check(peers: &Peers, problems: &mut Problems) {
    if peers.servers.is_empty() {
        problems.at(&peers.identity, "`servers` must name at least one proxy-server; without others, remove `peers`");
    }
}
