//! Limits of clients: numbers of connections and streams.

use ops::config::{Located, Problems};
use protocol::settings::MAX_STREAMS;
use serde::Deserialize;

/// Limits of clients. The defaults for connections depend on the machine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Limits {
    /// Connections of all clients.
    pub connections: Option<Located<usize>>,
    /// Of these, unproven connections of one address.
    pub connections_per_address: Option<Located<usize>>,
    /// Of these, connections of the proven clients of one cluster.
    pub connections_per_cluster: Option<Located<usize>>,
    /// Of these, connections of one user.
    pub connections_per_user: Option<Located<usize>>,
    /// Concurrent requests on one connection.
    pub streams_per_connection: Located<u32>,
    /// Concurrent requests of one user.
    pub streams_per_user: Located<usize>,
    /// Concurrent requests of the unproven clients of one address.
    pub streams_per_address: Located<usize>,
    /// Concurrent requests to one cluster.
    pub streams_per_cluster: Located<usize>,
}

/// The limits of connections, with all defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connections {
    /// Connections of all peers of a kind.
    pub all: usize,
    /// Unproven connections of one address.
    pub per_address: usize,
    /// ClientIdentity connections of one cluster.
    pub per_cluster: usize,
    /// Proven connections of one user, and of one agent.
    pub per_user: usize,
}

/// The maximum of the default, regardless of memory.
const MAX_CONNECTIONS: usize = 20_000;

/// The minimum of the default, regardless of memory.
const MIN_CONNECTIONS: usize = 500;

/// The memory of an idle connection with TLS and HTTP/2, in bytes; an upper bound.
const IDLE_CONNECTION_SIZE: u64 = 80 * 1024;

/// Idle connections of clients may use this fraction of memory: one in `MEMORY_PART`. Those of agents may use as much.
const MEMORY_PART: u64 = 8;

/// The number of open files other than connections of clients and agents.
const OTHER_FILES: u64 = 128;

// === impl Limits ===

impl Limits {
    /// The limits of client connections on a machine with this memory and number of open files, if known.
    pub fn connections(&self, memory: Option<u64>, files: Option<u64>) -> Connections {
        let all = self.connections.as_deref().copied().unwrap_or_else(|| fitting(memory, files));
        let or = |own: &Option<Located<usize>>, default: usize| own.as_deref().copied().unwrap_or(default).min(all);
        Connections {
            all,
            per_address: or(&self.connections_per_address, all.div_ceil(4)),
            per_cluster: or(&self.connections_per_cluster, all.div_ceil(2)),
            per_user: or(&self.connections_per_user, all.div_ceil(8)),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: None,
            connections_per_address: None,
            connections_per_cluster: None,
            connections_per_user: None,
            // `initialMaxConcurrentStreams` of Go's clients is 100, and 250 what its servers allow.
            streams_per_connection: 250.into(),
            streams_per_user: 1_000.into(),
            streams_per_address: 100.into(),
            streams_per_cluster: 2_500.into(),
        }
    }
}

/// The number of connections of one kind of peer that fit into a machine.
pub fn fitting(memory: Option<u64>, files: Option<u64>) -> usize {
    let by_memory = memory.map_or(MAX_CONNECTIONS as u64, |memory| memory / MEMORY_PART / IDLE_CONNECTION_SIZE);
    // Half for clients, and half for agents.
    let by_files = files.map_or(MAX_CONNECTIONS as u64, |files| files.saturating_sub(OTHER_FILES) / 2);
    let by_memory = usize::try_from(by_memory).unwrap_or(MAX_CONNECTIONS).clamp(MIN_CONNECTIONS, MAX_CONNECTIONS);
    by_memory.min(usize::try_from(by_files).unwrap_or(MAX_CONNECTIONS)).max(1)
}

pub(super) fn check(limits: &Limits, problems: &mut Problems) {
    let counts = [
        ("connections", limits.connections.as_ref()),
        ("connectionsPerAddress", limits.connections_per_address.as_ref()),
        ("connectionsPerCluster", limits.connections_per_cluster.as_ref()),
        ("connectionsPerUser", limits.connections_per_user.as_ref()),
        ("streamsPerUser", Some(&limits.streams_per_user)),
        ("streamsPerAddress", Some(&limits.streams_per_address)),
        ("streamsPerCluster", Some(&limits.streams_per_cluster)),
    ];
    for (key, count) in counts {
        if let Some(count) = count
            && **count == 0
        {
            problems.at(count, format_args!("limits.{key} must be at least 1"));
        }
    }
    if !(1..=1_000).contains(&*limits.streams_per_connection) {
        problems.at(&limits.streams_per_connection, "limits.streamsPerConnection must be between 1 and 1000");
    }
    let per_cluster = &limits.streams_per_cluster;
    if **per_cluster > MAX_STREAMS as usize {
        problems.at(
            per_cluster,
            format_args!("limits.streamsPerCluster exceeds the streams of one tunnel ({MAX_STREAMS})"),
        );
    }
    for (key, limit) in
        [("streamsPerUser", &limits.streams_per_user), ("streamsPerAddress", &limits.streams_per_address)]
    {
        if **limit > **per_cluster {
            let message = format!("limits.{key} exceeds limits.streamsPerCluster ({per_cluster}), so it has no effect");
            problems.at(limit, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_fit_into_memory_and_files() {
        const GIB: u64 = 1 << 30;
        for (memory, files, expected) in [
            (Some(GIB), Some(1 << 20), 1_638),
            (Some(64 * GIB), Some(1 << 20), MAX_CONNECTIONS),
            (Some(GIB / 64), Some(1 << 20), MIN_CONNECTIONS),
            (Some(64 * GIB), Some(1_024), 448),
            (None, None, MAX_CONNECTIONS),
            (None, Some(10), 1),
        ] {
            assert_eq!(fitting(memory, files), expected, "{memory:?} {files:?}");
        }
        let limits = Limits { connections: Some(100.into()), ..Limits::default() };
        let expected = Connections { all: 100, per_address: 25, per_cluster: 50, per_user: 13 };
        assert_eq!(limits.connections(Some(GIB), None), expected);
        let limits = Limits { connections_per_user: Some(1_000.into()), ..limits };
        assert_eq!(limits.connections(None, None).per_user, 100);
    }
}
