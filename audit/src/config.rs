//! The keys of `audit` in the configuration of the proxy-server.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time;

use ops::config::{Duration, FilePath, Located, Problems};
use serde::Deserialize;

/// Stands for the name of the cluster in the path of a log.
pub const CLUSTER: &str = "{cluster}";

/// What is recorded, and where. Without `log` and `webhook`, nothing is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Audit {
    /// A [`Policy`](crate::policy::Policy). By default, all requests are recorded at level `Metadata`, without the stage
    /// `RequestReceived`.
    #[serde(default)]
    pub policy_file: Option<Located<FilePath>>,
    /// The file.
    #[serde(default)]
    pub log: Option<Located<Log>>,
    /// The webhook.
    #[serde(default)]
    pub webhook: Option<Located<Webhook>>,
}

/// The log file: the flags `--audit-log-*` of kube-apiserver.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Log {
    /// The file.
    pub path: FilePath,
    /// The size at which it is rotated, in MiB.
    #[serde(default = "default_size")]
    pub max_size: NonZeroU32,
    /// The number of rotated files that are kept; 0 keeps all.
    #[serde(default = "default_backups")]
    pub max_backups: u32,
    /// The number of days for which rotated files are kept; 0 keeps them for ever.
    #[serde(default = "default_age")]
    pub max_age: u32,
}

/// The webhook: the flags `--audit-webhook-*` of kube-apiserver.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// The address and the credentials.
    pub kubeconfig: FilePath,
    /// The pause after the first failure. It grows with each failure.
    #[serde(default = "default_backoff")]
    pub initial_backoff: Duration,
    /// How events are collected.
    #[serde(default)]
    pub batch: Batch,
}

/// How events are collected for the webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Batch {
    /// Events that may wait.
    pub buffer_size: NonZeroU32,
    /// Events in one request.
    pub max_size: NonZeroU32,
    /// The longest time that an event waits for others.
    pub max_wait: Duration,
    /// Requests per second.
    #[serde(rename = "throttleQPS")]
    pub throttle_qps: NonZeroU32,
    /// Requests at the same time, if there were fewer before.
    pub throttle_burst: NonZeroU32,
}

fn default_size() -> NonZeroU32 {
    number(100)
}

fn default_backups() -> u32 {
    100
}

fn default_age() -> u32 {
    366
}

fn default_backoff() -> Duration {
    Duration::new(time::Duration::from_secs(10))
}

fn number(value: u32) -> NonZeroU32 {
    NonZeroU32::new(value).unwrap_or(NonZeroU32::MIN)
}

/// Reports what the types cannot exclude. `is_default`: whether these are the settings of all clusters.
pub fn check(audit: &Audit, is_default: bool, problems: &mut Problems) {
    let Some(log) = &audit.log else { return };
    let is_pattern = log.path.to_string_lossy().contains(CLUSTER);
    if is_default && !is_pattern {
        problems.at(log, "audit.log.path needs `{cluster}`, because each cluster has its own file");
    }
}

// === impl Audit ===

impl Audit {
    /// Whether anything is recorded.
    pub fn is_on(&self) -> bool {
        self.log.is_some() || self.webhook.is_some()
    }

    /// The settings for one cluster.
    #[must_use]
    pub fn of(&self, cluster: &str) -> Self {
        let log = self.log.clone().map(|log| log.map(|log| Log { path: log.file(cluster).into(), ..log }));
        Self { log, ..self.clone() }
    }
}

// === impl Log ===

impl Log {
    /// The file of a cluster.
    fn file(&self, cluster: &str) -> PathBuf {
        match self.path.to_str() {
            Some(path) => path.replace(CLUSTER, cluster).into(),
            None => self.path.to_path_buf(),
        }
    }
}

// === impl Batch ===

/// The defaults of kube-apiserver (`pkg/server/options/audit.go`).
impl Default for Batch {
    fn default() -> Self {
        Self {
            buffer_size: number(10_000),
            max_size: number(400),
            max_wait: Duration::new(time::Duration::from_secs(30)),
            throttle_qps: number(10),
            throttle_burst: number(15),
        }
    }
}
