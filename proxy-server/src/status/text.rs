//! The status for people.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use ops::columns::Columns;
use ops::date::Age;
use protocol::registration::Mode;

use super::document::{ClusterStatus, ServerStatus, TunnelStatus};
use crate::karmada::Membership;

/// Tables like those of `kubectl get`. With `wide`, the whole document.
pub fn text(status: &ServerStatus, wide: bool) -> String {
    let now = status.time.time();
    let connected = status.clusters.iter().filter(|cluster| cluster.ready).count();
    let (all, version) = (status.clusters.len(), &status.version);
    // Not "ready": only the status of the agent shows whether it can serve a cluster.
    let mut text = format!("proxy-server {version}: {connected} of {all} clusters have an agent connected\n");
    let clusters = clusters(&status.clusters, now);
    let tunnels = tunnels(&status.tunnels, now, wide);
    for table in [clusters, tunnels, memberships(&status.memberships, now)].iter().filter(|table| !table.is_empty()) {
        let _ = write!(text, "\n{table}");
    }
    let mut certificates = Columns::new(["CERTIFICATE", "EXPIRES", "IN"]);
    for certificate in &status.certificates {
        let not_after = certificate.not_after;
        let left = not_after.time().duration_since(now).unwrap_or(Duration::ZERO);
        certificates.row([certificate.name.clone(), not_after.to_string(), left_of(left)]);
    }
    let _ = write!(text, "\n{certificates}");
    text
}

fn clusters(clusters: &[ClusterStatus], now: SystemTime) -> Columns {
    let mut table = Columns::new(["CLUSTER", "MODE", "AGENT", "TUNNELS", "FOR", ""]);
    for cluster in clusters {
        let mode = match cluster.mode {
            Mode::Virtual => "virtual",
            Mode::Physical => "physical",
        };
        table.row([
            cluster.name.clone(),
            mode.to_owned(),
            cluster.agent.clone().unwrap_or_else(|| "-".to_owned()),
            cluster.tunnels.to_string(),
            cluster.since.map_or_else(|| "-".to_owned(), |since| since.age(now).to_string()),
            cluster.message.clone().unwrap_or_default(),
        ]);
    }
    table
}

fn memberships(memberships: &[Membership], now: SystemTime) -> Columns {
    let mut table = Columns::new(["MEMBER", "OF KARMADA", "FOR", ""]);
    for membership in memberships {
        table.row([
            membership.cluster.clone(),
            membership.state.as_str().to_owned(),
            membership.since.age(now).to_string(),
            membership.message.clone().unwrap_or_default(),
        ]);
    }
    table
}

fn tunnels(tunnels: &[TunnelStatus], now: SystemTime, wide: bool) -> Columns {
    let heading = ["AGENT", "UP FOR", "STREAMS", "VERSION", "PROTOCOL", "INSTANCE", "ROUND TRIP", "CLUSTERS"];
    let columns = if wide { heading.len() } else { 5 };
    let mut table = Columns::new(heading.into_iter().take(columns));
    for tunnel in tunnels {
        let cells = [
            tunnel.agent.clone(),
            tunnel.since.age(now).to_string(),
            tunnel.streams.to_string(),
            tunnel.version.clone(),
            tunnel.protocol.clone(),
            tunnel.instance.clone(),
            format!("{} us", tunnel.round_trip_micros),
            tunnel.clusters.join(","),
        ];
        table.row(cells.into_iter().take(columns));
    }
    table
}

fn left_of(left: Duration) -> String {
    if left.is_zero() { "over".to_owned() } else { Age(left).to_string() }
}
