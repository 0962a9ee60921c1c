//! The status as text for people.

use std::fmt::Write as _;
use std::time::SystemTime;

use ops::columns::Columns;
use ops::date::Age;

use super::AgentStatus;

/// The status as tables like those of `kubectl get`. With `wide`, they have all fields of the document.
pub fn text(status: &AgentStatus, wide: bool) -> String {
    let now = status.time.time();
    let clusters = status.virtual_clusters.iter().filter(|cluster| cluster.ready).count();
    let up = status.tunnels.iter().filter(|tunnel| tunnel.ready).count();
    let mut text = format!(
        "proxy-agent {} as {}: {up} of {} tunnels up, {clusters} of {} virtual clusters ready\n",
        status.version,
        status.agent,
        status.tunnels.len(),
        status.virtual_clusters.len()
    );
    let mut physical = Columns::new(["PHYSICAL CLUSTER", "API SERVER"]);
    for cluster in &status.physical_clusters {
        physical.row([&cluster.name, &cluster.api_server]);
    }
    let mut certificates = Columns::new(["CERTIFICATE", "EXPIRES", "IN"]);
    for certificate in &status.certificates {
        let left = certificate.not_after.time().duration_since(now);
        let left = left.map_or_else(|_| "over".to_owned(), |left| Age(left).to_string());
        certificates.row([certificate.name.clone(), certificate.not_after.to_string(), left]);
    }
    for table in
        [tunnels(status, now, wide), virtual_clusters(status, wide), physical, host(status, wide), certificates]
    {
        if !table.is_empty() {
            let _ = write!(text, "\n{table}");
        }
    }
    if let Some(host) = &status.host
        && !host.namespaces_synced
    {
        text.push_str("\nThe namespaces of the host are not known yet; no virtual cluster is served before.\n");
    }
    text
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
        heading.push("NODE SELECTOR");
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
            cells.push(cluster.node_selector.clone());
        }
        cells.push(cluster.message.clone().unwrap_or_default());
        table.row(cells);
    }
    table
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

fn yes(ready: bool) -> &'static str {
    if ready { "yes" } else { "no" }
}
