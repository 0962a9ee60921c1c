//! A real Prometheus scrapes both halves, while the halves and their site fail in every way that an operator must notice.
//!
//! Each phase of the outage must cause certain alerts. None of them may exist before. In the end, every query of every dashboard
//! has data, and there were no other alerts. The conditions are checked, and not how long they must last (`for`):
//! `promtool test rules` checks that, for the alerts of [`BY_PROMTOOL`] and some others.

mod client;
mod far;
mod outage;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_tests::process::Process;
use atoll_tests::scraper::promtool;
use atoll_tests::{HostCluster, Kubectl, Nodes, Prometheus, Site, eventually, observability, paths, pause, site};
use libtest_mimic::Trial;

use crate::case;
use client::Client;

/// Alerts that this trial cannot provoke in reasonable time: they need thousands of agents, a worker that hangs or is
/// overloaded, two versions, a disk that is full, or a client that exceeds what the agent tolerates for minutes. `promtool test rules` evaluates them
/// with series as the processes export them.
const BY_PROMTOOL: [&str; 7] = [
    "AtollAgentFlapping",
    "AtollAuditEventsLost",
    "AtollHandshakesDelayed",
    "AtollRequestsThrottled",
    "AtollVersionSkew",
    "AtollWorkerDelayed",
    "AtollWorkerSilent",
];

/// This alert depends on the load of the machine, so it can be pending at any time.
const BY_LOAD: &str = "AtollWorkerDelayed";

/// So does this one, until the trial delays requests.
const BY_DELAY: &str = "AtollLatencyHigh";

/// A scrape that a busy machine delays looks like a process that is down, so this alert counts only when one was stopped.
const BY_SCRAPE: &str = "AtollProcessDown";

/// The virtual clusters of the agent `SITE`, and a physical cluster.
const A: &str = "observe-a";
const B: &str = "observe-b";
const SITE: &str = "site-o";

/// Virtual clusters that do not work: one has no agent, the agent of one has no host, and one has no root namespace.
const NEW: &str = "observe-new";
const HOSTLESS: &str = "observe-hostless";
const BROKEN: &str = "observe-broken";

/// Concurrent requests of one user.
const STREAMS: usize = 50;

/// The time limit for an alert after its cause, on a machine that is busy with other trials. Files are reloaded within five seconds.
const NOTICED: Duration = Duration::from_secs(90);
/// The time without alerts before the outage.
const QUIET: Duration = Duration::from_secs(3);

pub(crate) fn trial(host: Option<&Arc<HostCluster>>) -> Trial {
    case("observe::an_outage_shows_in_all_panels_and_alerts", host, an_outage_shows_in_all_panels_and_alerts)
}

/// All processes. They are dropped in this order.
struct World<'h> {
    prometheus: Prometheus,
    agents: Vec<Process>,
    far: far::Far,
    /// Another proxy-server, which has no peers.
    lonely: Option<Process>,
    site: Site,
    host: &'h HostCluster,
    /// The administrator of `A`.
    admin: Client,
    kubectl: Kubectl,
    /// The administrator of `B`.
    other: Kubectl,
    /// Requests of `admin` whose bodies are not sent yet.
    slow: Option<client::Posts>,
    /// Whether a process was stopped.
    is_stopped: bool,
    /// Whether requests were delayed.
    is_delayed: bool,
    /// The alerts that were expected so far.
    expected: BTreeSet<String>,
}

fn an_outage_shows_in_all_panels_and_alerts(host: &HostCluster) -> anyhow::Result<()> {
    let tests = std::thread::spawn(rules_pass_their_tests);
    let mut world = World::start(host)?;
    world.is_quiet()?;
    world.shows(&["ShareExhausted", "StoredLimitReached"], World::use_up_shares)?;
    world.shows(&["HubMemoryFull"], World::fill_the_hub)?;
    world.shows(&["HubFallsBack"], World::overfill_the_hub)?;
    world.shows(&["RequestsRefused"], World::exceed_a_limit)?;
    let of_clusters = ["CertificateExpiresSoon", "ClusterNeverConnected", "KarmadaMembershipLost"];
    world.shows(&of_clusters, World::add_clusters)?;
    let of_agents =
        ["AgentWithoutTunnel", "ClusterNotReady", "HostUnreachable", "HubRightsUnwatched", "ServerUnreachable"];
    world.shows(&of_agents, World::add_agents)?;
    world.shows(&["FilesNearLimit"], World::take_files)?;
    world.shows(&["ErrorRatioHigh"], World::fail_requests)?;
    world.shows(&["LatencyHigh"], World::delay_requests)?;
    let of_far =
        ["ClusterAway", "ClusterInterrupted", "ClusterRefused", "OfferRefused", "ProcessDown", "ProcessRestarts"];
    world.shows(&of_far, World::restart_far)?;
    world.shows(&["PeerMissing"], World::add_lonely)?;
    // The certificate of `add_clusters`, half a minute later.
    world.has_shown(["AtollCertificateExpires".to_owned()].into())?;
    world.shows(&["ProxyServersDown"], World::kill_proxy_servers)?;
    world.has_shown_everything()?;
    tests.join().map_err(|_| anyhow::anyhow!("the tests of the rules panicked"))?
}

fn rules_pass_their_tests() -> anyhow::Result<()> {
    let files = observability::rule_test_files()?;
    let files = files.iter().map(|file| file.to_str().context("a path is not UTF-8")).collect::<Result<Vec<_>, _>>()?;
    promtool(&[&["test", "rules"], &files[..]].concat())?;
    let tested: BTreeSet<_> = observability::rule_tests()?.into_iter().flat_map(|test| test.alerts).collect();
    let missing: Vec<_> = BY_PROMTOOL.iter().filter(|name| !tested.contains(**name)).collect();
    ensure!(missing.is_empty(), "no test of promtool expects {missing:?}");
    Ok(())
}

// === impl World ===

impl<'h> World<'h> {
    /// Two proxy-servers, an agent with two virtual clusters, another one with a physical cluster, and Prometheus.
    fn start(host: &'h HostCluster) -> anyhow::Result<Self> {
        let entries = [site::entry(A, SITE), site::entry(B, SITE), far::ENTRY.to_owned()];
        let keys = format!("limits: {{streamsPerUser: {STREAMS}}}");
        let mut site = Site::start_scraped(&entries.each_ref().map(String::as_str), &[A, B, HOSTLESS, BROKEN], &keys)?;
        let shares = ", shares: {objectsOf: {secrets: 3}, namespaces: 5}}";
        let limited = Nodes::Location("beijing").entry(A);
        let limited = format!("{}{shares}", limited.strip_suffix('}').context("not an entry")?);
        let body = format!(
            "host: {{kubeconfig: {}}}\nhub: {{memoryMiB: 1}}\ncompression: always\nvirtualClusters: [{limited}, {}]",
            host.agent_kubeconfig().display(),
            Nodes::Location("hangzhou").entry(B)
        );
        let mut agent = site.agent(SITE, &body)?;
        let far = far::Far::start(&site)?;
        agent.printed("tunnel established")?;
        for cluster in [A, B] {
            agent.printed(&format!("the virtual cluster is provisioned cluster={cluster}\n"))?;
        }
        let kubectl = site.administrator(A)?;
        eventually(NOTICED, || kubectl.ok(&["get", "namespaces"]))?;
        let other = site.administrator(B)?;
        let admin = Client::new(&kubectl, A, site.ports)?;

        let mut prometheus = Prometheus::start()?;
        let servers = [site.ports.metrics, site.other()?.ports.metrics];
        for port in servers.into_iter().flatten() {
            prometheus.scrape("proxy-server", format!("127.0.0.1:{port}"))?;
        }
        for agent in [SITE, far::SITE] {
            prometheus.scrape("proxy-agent", site.metrics(agent)?)?;
        }
        let (agents, expected) = (vec![agent], BTreeSet::new());
        Ok(Self {
            prometheus,
            agents,
            far,
            lonely: None,
            site,
            host,
            admin,
            kubectl,
            other,
            slow: None,
            is_stopped: false,
            is_delayed: false,
            expected,
        })
    }

    /// Without an outage, there are no alerts.
    fn is_quiet(&mut self) -> anyhow::Result<()> {
        self.prometheus.reaches_all_targets(NOTICED)?;
        self.kubectl.ok(&["get", "pods", "-A"])?;
        pause(QUIET);
        let (alerts, broken) = (self.alerts()?, self.prometheus.broken_rules()?);
        ensure!(alerts.is_empty(), "there is no outage, but there are alerts: {alerts:?}");
        ensure!(broken.is_empty(), "{broken:#?}");
        Ok(())
    }

    /// An event causes alerts that were not there before.
    fn shows(&mut self, alerts: &[&str], cause: fn(&mut Self) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let alerts: BTreeSet<_> = alerts.iter().map(|name| format!("Atoll{name}")).collect();
        let early: Vec<_> = self.alerts()?.intersection(&alerts).cloned().collect();
        ensure!(early.is_empty(), "too early: {early:?}");
        cause(self).with_context(|| format!("{alerts:?}"))?;
        self.has_shown(alerts)
    }

    /// There are or were these alerts, or they will soon be there.
    fn has_shown(&mut self, alerts: BTreeSet<String>) -> anyhow::Result<()> {
        eventually(NOTICED, || {
            let seen = self.alerts()?;
            let missing: Vec<_> = alerts.difference(&seen).collect();
            ensure!(missing.is_empty(), "missing alerts: {missing:?}; there are {seen:?}");
            Ok(())
        })?;
        self.expected.extend(alerts);
        Ok(())
    }

    /// There is or was this alert, or it will soon be there.
    fn notices(&self, alert: &str) -> anyhow::Result<()> {
        eventually(NOTICED, || {
            let seen = self.alerts()?;
            ensure!(seen.contains(alert), "missing alert: {alert}; there are {seen:?}");
            Ok(())
        })
    }

    /// The alerts so far.
    fn alerts(&self) -> anyhow::Result<BTreeSet<String>> {
        let mut alerts = self.prometheus.alerts()?;
        alerts.remove(BY_LOAD);
        if !self.is_delayed {
            alerts.remove(BY_DELAY);
        }
        if !self.is_stopped {
            alerts.remove(BY_SCRAPE);
        }
        Ok(alerts)
    }

    /// All alerts and panels have had data, and there were no other alerts.
    fn has_shown_everything(&self) -> anyhow::Result<()> {
        let all: BTreeSet<_> = observability::alerts()?.into_iter().map(|alert| alert.name).collect();
        let by_promtool = BY_PROMTOOL.map(str::to_owned).into();
        let on_a_site: BTreeSet<_> = all.difference(&by_promtool).cloned().collect();
        ensure!(self.expected == on_a_site, "expected {:?} instead of {on_a_site:?}", self.expected);
        ensure!(self.alerts()? == on_a_site, "{:?} instead of {on_a_site:?}", self.alerts()?);

        let metrics = observability::metrics()?;
        let mut empty = Vec::new();
        for dashboard in observability::dashboards()? {
            for query in dashboard.queries()? {
                observability::check_names(&query.expr, &metrics).with_context(|| query.panel.clone())?;
                // With this, an expression would have data without any metric.
                let expr = query.with_all_clusters().replace(" or vector(0)", "");
                let result = self.prometheus.query_range(&expr).with_context(|| query.panel.clone())?;
                if result.is_empty() {
                    empty.push(format!("{}: {expr}", query.panel));
                }
            }
            let (metric, label) = dashboard.variable()?;
            let values = self.prometheus.query_range(&format!("count by ({label}) ({metric})"))?;
            ensure!(values.len() > 1, "{}: the variable has the values {values:?}", dashboard.file);
        }
        ensure!(empty.is_empty(), "queries without data: {empty:#?}");
        Ok(())
    }
}

/// A kubeconfig of an API server that does not respond.
fn unreachable_kubeconfig(site: &Site, name: &str) -> anyhow::Result<String> {
    let file = site.file(name);
    let cluster =
        format!("{{server: 'https://127.0.0.1:{}', certificate-authority: serving-ca.crt}}", paths::free_port());
    std::fs::write(
        &file,
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{{name: a, cluster: {cluster}}}]\n\
             users: [{{name: a, user: {{token: a}}}}]\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n"
        ),
    )?;
    Ok(file.display().to_string())
}
