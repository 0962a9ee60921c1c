//! The status for people.

use std::time::{Duration, SystemTime};

use ops::columns::Columns;
use ops::date::Age;
use ops::report::Report;
use request_metrics::LastError;

use super::{AgentStatus, SharesStatus, VirtualClusterStatus};

/// The status as tables like those of `kubectl get`. With `wide`, they have all fields of the document.
pub fn report(status: &AgentStatus, wide: bool) -> Report {
    let now = status.time.time();
    let clusters = status.virtual_clusters.iter().filter(|cluster| cluster.ready).count();
    let up = status.tunnels.iter().filter(|tunnel| tunnel.ready).count();
    let summary = format!(
        "proxy-agent {} as {}: {up} of {} tunnels up, {clusters} of {} virtual clusters ready",
        status.version,
        status.agent,
        status.tunnels.len(),
        status.virtual_clusters.len()
    );
    let mut report = Report::new(summary)
        .with_table("Tunnels", tunnels(status, now, wide))
        .with_table("Refused clusters", refused(status))
        .with_table("Virtual clusters", virtual_clusters(status, wide));
    if wide {
        report = report.with_table("Shares in use", shares(status)).with_table("Last errors", last_errors(status));
    }
    report = report
        .with_table("Physical clusters", physical(status))
        .with_table("API servers of the host", host(status, wide))
        .with_table("Shared watches", feeds(status, wide))
        .with_table("Certificates", certificates(status, now));
    match &status.host {
        Some(host) if !host.namespaces_synced => {
            report.with_note("The namespaces of the host are not known yet; no virtual cluster is served before.")
        }
        _ => report,
    }
}

fn shares(status: &AgentStatus) -> Columns {
    let mut table = Columns::new(["SHARES OF"].into_iter().chain(SharesStatus::HEADING));
    for cluster in &status.virtual_clusters {
        let Some(shares) = &cluster.shares else { continue };
        let cells = shares.cells().into_iter().map(|used| used.to_string());
        table.row([cluster.name.clone()].into_iter().chain(cells));
    }
    table
}

fn last_errors(status: &AgentStatus) -> Columns {
    let clusters = status.virtual_clusters.iter();
    LastError::table(status.time, clusters.map(|cluster| (&*cluster.name, &*cluster.last_errors)))
}

fn physical(status: &AgentStatus) -> Columns {
    let mut physical = Columns::new(["PHYSICAL CLUSTER", "API SERVER"]);
    for cluster in &status.physical_clusters {
        physical.row([&cluster.name, &cluster.api_server]);
    }
    physical
}

fn certificates(status: &AgentStatus, now: SystemTime) -> Columns {
    let mut certificates = Columns::new(["CERTIFICATE", "EXPIRES", "IN"]);
    for certificate in &status.certificates {
        let left = certificate.not_after.time().duration_since(now);
        let left = left.map_or_else(|_| "over".to_owned(), |left| Age(left).to_string());
        certificates.row([certificate.name.clone(), certificate.not_after.to_string(), left]);
    }
    certificates
}

fn refused(status: &AgentStatus) -> Columns {
    let mut refused = Columns::new(["REFUSED CLUSTER", "BY SERVER", "REASON", ""]);
    for cluster in &status.refused_clusters {
        refused.row([&cluster.cluster, &cluster.server, &cluster.reason, &cluster.message]);
    }
    refused
}

fn tunnels(status: &AgentStatus, now: SystemTime, wide: bool) -> Columns {
    let mut heading = vec!["SERVER", "UP", "FOR"];
    if wide {
        heading.extend(["ADDRESS", "PROCESS", "PROTOCOL"]);
    }
    let mut table = Columns::new(heading.into_iter().chain([""]));
    for tunnel in &status.tunnels {
        let mut cells = vec![tunnel.server.clone(), yes(tunnel.ready).to_owned(), tunnel.since.age(now).to_string()];
        if wide {
            let more = [&tunnel.address, &tunnel.proxy_server, &tunnel.protocol];
            cells.extend(more.map(|text| text.as_deref().unwrap_or("-").to_owned()));
        }
        cells.push(tunnel.message.clone().unwrap_or_default());
        table.row(cells);
    }
    table
}

fn virtual_clusters(status: &AgentStatus, wide: bool) -> Columns {
    let mut heading = vec!["VIRTUAL CLUSTER", "READY", "NODES", "NAMESPACES"];
    if wide {
        heading.extend(["OBJECTS", "MIB", "NODE SELECTOR", "NODE NAMES"]);
    }
    let mut table = Columns::new(heading.into_iter().chain([""]));
    for cluster in &status.virtual_clusters {
        let mut cells = vec![
            cluster.name.clone(),
            yes(cluster.ready).to_owned(),
            cluster.nodes.to_string(),
            cluster.namespaces.to_string(),
        ];
        if wide {
            let mib = cluster.bytes.div_ceil(1024 * 1024);
            cells.extend([cluster.objects.to_string(), mib.to_string(), cluster.node_selector.clone(), names(cluster)]);
        }
        let full = cluster.reached_limits.join(", ");
        let full = (!full.is_empty()).then(|| format!("has reached its limits: {full}"));
        let message: Vec<_> = cluster.message.iter().chain(&full).map(String::as_str).collect();
        cells.push(message.join("; "));
        table.row(cells);
    }
    table
}

fn names(cluster: &VirtualClusterStatus) -> String {
    let names = cluster.node_names.join(",");
    match cluster.nodes.saturating_sub(cluster.node_names.len()) {
        _ if names.is_empty() => "-".to_owned(),
        0 => names,
        others => format!("{names} and {others} more"),
    }
}

fn host(status: &AgentStatus, wide: bool) -> Columns {
    let columns = if wide { 4 } else { 2 };
    let mut table = Columns::new(["HOST API SERVER", "ANSWERS", "CONNECTIONS", "STREAMS"].into_iter().take(columns));
    for server in status.host.iter().flat_map(|host| &host.servers) {
        let counts = [server.connections.to_string(), server.streams.to_string()];
        let cells = [server.address.clone(), yes(server.ready).to_owned()];
        table.row(cells.into_iter().chain(counts).take(columns));
    }
    table
}

fn feeds(status: &AgentStatus, wide: bool) -> Columns {
    let mut heading = vec!["SHARED WATCH", "WATCHES", "OBJECTS", "KIB"];
    if wide {
        heading.extend(["EVENTS", "WINDOW"]);
    }
    let mut table = Columns::new(heading.into_iter().chain([""]));
    for feed in &status.feeds {
        let mut cells = vec![
            feed.path.clone(),
            feed.watches.to_string(),
            feed.objects.to_string(),
            feed.bytes.div_ceil(1024).to_string(),
        ];
        if wide {
            let window = Age(Duration::from_secs(feed.window_seconds));
            cells.extend([feed.events.to_string(), window.to_string()]);
        }
        let closed = feed.closed.join(", ");
        cells.push(if closed.is_empty() { closed } else { format!("not for {closed}") });
        table.row(cells);
    }
    table
}

fn yes(ready: bool) -> &'static str {
    if ready { "yes" } else { "no" }
}
