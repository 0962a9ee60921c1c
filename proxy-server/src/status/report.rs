//! The status for people.

use std::time::{Duration, SystemTime};

use ops::columns::Columns;
use ops::date::{Age, Moment};
use ops::report::Report;
use protocol::registration::Mode;
use request_metrics::LastError;

use super::document::{
    CertificateStatus, ClusterStatus, LinkStatus, RefusedOfferStatus, RevocationsStatus, ServerStatus, TokenStatus,
    TunnelStatus,
};
use crate::karmada::Membership;

/// Tables like those of `kubectl get`. With `wide`, the whole document.
pub fn report(status: &ServerStatus, wide: bool) -> Report {
    let now = status.time.time();
    let connected = status.clusters.iter().filter(|cluster| cluster.ready).count();
    let (all, version) = (status.clusters.len(), &status.version);
    // Not "ready": only the status of the agent shows whether it can serve a cluster.
    let summary = format!("proxy-server {version}: {connected} of {all} clusters have an agent connected");
    let mut report = Report::new(summary).with_table("Clusters", clusters(&status.clusters, now, wide));
    if wide {
        let errors = status.clusters.iter().map(|cluster| (&*cluster.name, &*cluster.last_errors));
        report = report.with_table("Last errors", LastError::table(status.time, errors));
    }
    report
        .with_table("Refused clusters", refused_offers(&status.refused_offers, status.other_refused_offers))
        .with_table("Tunnels", tunnels(&status.tunnels, now, wide))
        .with_table("Links", links(&status.links))
        .with_table("Members of Karmada", memberships(&status.memberships, now))
        .with_table("Certificates", certificates(&status.certificates, now))
        .with_table("Join tokens", tokens(&status.tokens, now))
        .with_table("Revocations", revocations(status.revocations.as_ref()))
}

fn clusters(clusters: &[ClusterStatus], now: SystemTime, wide: bool) -> Columns {
    let mut heading = vec!["CLUSTER", "MODE", "AGENT", "TUNNELS", "FOR"];
    if wide {
        heading.extend(["INTERRUPTIONS", "STREAMS", "CONNECTIONS"]);
    }
    let mut table = Columns::new(heading.into_iter().chain([""]));
    for cluster in clusters {
        let mode = match cluster.mode {
            Mode::Virtual => "virtual",
            Mode::Physical => "physical",
        };
        let mut cells = vec![
            cluster.name.clone(),
            mode.to_owned(),
            cluster.agent.clone().unwrap_or_else(|| "-".to_owned()),
            cluster.tunnels.to_string(),
            cluster.since.map_or_else(|| "-".to_owned(), |since| since.age(now).to_string()),
        ];
        if wide {
            cells.push(cluster.interruptions.to_string());
            let shares = [cluster.streams, cluster.connections];
            cells.extend(shares.map(|used| used.map_or_else(|| "-".to_owned(), |used| used.to_string())));
        }
        cells.push(cluster.message.clone().unwrap_or_default());
        table.row(cells);
    }
    table
}

fn refused_offers(offers: &[RefusedOfferStatus], others: usize) -> Columns {
    let mut table = Columns::new(["REFUSED CLUSTER", "OF AGENT", "REASON", ""]);
    for offer in offers {
        table.row([&offer.cluster, &offer.agent, &offer.reason, &offer.message]);
    }
    if others > 0 {
        table.row([format!("and {others} more"), String::new(), String::new(), String::new()]);
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
    let heading =
        ["AGENT", "UP FOR", "STREAMS", "VERSION", "PROTOCOL", "INSTANCE", "ROUND TRIP", "CERTIFICATE FOR", "CLUSTERS"];
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
            tunnel.certificate_not_after.map_or_else(|| "-".to_owned(), |end| left_of(end, now)),
            tunnel.clusters.join(","),
        ];
        table.row(cells.into_iter().take(columns));
    }
    table
}

fn links(links: &[LinkStatus]) -> Columns {
    let mut table = Columns::new(["LINK TO", "TUNNELS", "REGISTERED", "ROUND TRIP", "RECEIVED", "SENT", "COMPRESSION"]);
    for link in links {
        table.row([
            link.agent.clone(),
            link.tunnels.to_string(),
            link.registered_tunnels.to_string(),
            link.round_trip_micros.map_or_else(|| "-".to_owned(), round_trip),
            bytes(link.received_bytes),
            bytes(link.sent_bytes),
            compression(link.compressed_bytes, link.decompressed_bytes),
        ]);
    }
    table
}

/// The length of compressed bodies before compression, as a multiple of that afterwards.
fn compression(compressed: u64, decompressed: u64) -> String {
    match decompressed.saturating_mul(10).checked_div(compressed) {
        Some(tenths) => format!("{}.{} x", tenths / 10, tenths % 10),
        None => "-".to_owned(),
    }
}

fn round_trip(micros: u64) -> String {
    if micros < 10_000 { format!("{micros} us") } else { format!("{} ms", micros / 1000) }
}

fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let units = (1..).zip(UNITS).map(|(power, unit)| (1_u64 << (10 * power), unit));
    match units.filter(|(size, _)| bytes >= *size).last() {
        Some((size, unit)) => format!("{}.{} {unit}", bytes / size, bytes % size * 10 / size),
        None => format!("{bytes} B"),
    }
}

fn certificates(certificates: &[CertificateStatus], now: SystemTime) -> Columns {
    let mut table = Columns::new(["CERTIFICATE", "EXPIRES", "IN"]);
    for certificate in certificates {
        let not_after = certificate.not_after;
        table.row([certificate.name.clone(), not_after.to_string(), left_of(not_after, now)]);
    }
    table
}

fn tokens(tokens: &[TokenStatus], now: SystemTime) -> Columns {
    let mut table = Columns::new(["JOIN TOKEN", "FOR AGENT", "EXPIRES IN", "USES LEFT"]);
    for token in tokens {
        let cells = [token.id.clone(), token.agent.clone(), left_of(token.not_after, now), token.uses_left.to_string()];
        table.row(cells);
    }
    table
}

fn revocations(revocations: Option<&RevocationsStatus>) -> Columns {
    let mut table = Columns::new(["REVOKED AGENTS", "USERS", "CERTIFICATES", "SHA-256 OF THE LIST"]);
    if let Some(RevocationsStatus { digest, agents, users, credentials }) = revocations {
        table.row([agents.to_string(), users.to_string(), credentials.to_string(), digest.clone()]);
    }
    table
}

fn left_of(end: Moment, now: SystemTime) -> String {
    let left = end.time().duration_since(now).unwrap_or(Duration::ZERO);
    if left.is_zero() { "over".to_owned() } else { Age(left).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_and_revocations_are_shown_without_secrets() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
        let token = TokenStatus {
            id: "abc".into(),
            agent: "site-a".into(),
            not_after: Moment::from(now + Duration::from_secs(3600)),
            uses_left: 2,
        };
        let rows = |table: Columns| table.rows().map(|row| row.join(" ")).collect::<Vec<_>>();
        assert_eq!(
            rows(tokens(std::slice::from_ref(&token), now)),
            [format!("abc site-a {} 2", Age(Duration::from_secs(3600)))]
        );
        assert_eq!(left_of(token.not_after, token.not_after.time()), "over");
        let list = RevocationsStatus { digest: "0f".into(), agents: 1, users: 2, credentials: 3 };
        assert_eq!(rows(revocations(Some(&list))), ["1 2 3 0f"]);
        assert!(rows(revocations(None)).is_empty());
    }
}
