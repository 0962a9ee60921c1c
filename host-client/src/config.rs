//! The `host` section of a configuration.

use ops::config::{FilePath, Located};
use serde::Deserialize;

/// The address of the host's API server, and the agent's credentials.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
pub struct Host {
    /// The path of a kubeconfig.
    pub kubeconfig: Option<Located<FilePath>>,
    /// Whether to use the ServiceAccount of the pod in which this process runs.
    pub in_cluster: bool,
    /// Other API servers of the same cluster, as `https://host:port`. They are used if the first one does not respond.
    pub servers: Vec<Located<String>>,
    /// Whether the agent serves virtual clusters even if the host does not enforce the admission policies.
    pub unsafe_direct_access: bool,
    /// Whether the agent serves virtual clusters even if it cannot verify that the host enforces its policies.
    pub unverified_policies: bool,
}
