//! The `host` section of a configuration.

use ops::config::{FilePath, Located};
use serde::Deserialize;

/// How to reach the host's API server.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
pub struct Host {
    /// A kubeconfig.
    pub kubeconfig: Option<Located<FilePath>>,
    /// The ServiceAccount of the pod that this process runs in.
    pub in_cluster: bool,
    /// More API servers of the same cluster, as `https://host:port`; used when the first does not answer.
    pub servers: Vec<Located<String>>,
    /// Whether virtual clusters are served though the host cannot refuse what a token of theirs may not do there.
    pub unsafe_direct_access: bool,
    /// Whether the agent serves virtual clusters even if it cannot verify that the host enforces its policies.
    pub unverified_policies: bool,
}
