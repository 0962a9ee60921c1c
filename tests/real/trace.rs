//! Traces of requests, as a real receiver of OTLP gets them from both halves and from kube-apiserver.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_tests::collector::{Collector, Span};
use atoll_tests::{Credentials, Curl, HostCluster, Kubectl, Nodes, Route, Site, eventually, site};
use libtest_mimic::Trial;

use crate::trial;

pub(crate) fn trial() -> Trial {
    trial::trial("trace::a_sampled_request_has_spans_in_both_halves_and_on_the_host", a_sampled_request_has_spans)
}

const CLUSTER: &str = "traced";
const SITE: &str = "site-t";

/// A batch is sent after five seconds.
const EXPORTED: Duration = Duration::from_secs(30);

const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";

fn a_sampled_request_has_spans() -> anyhow::Result<()> {
    let collector = Collector::start()?;
    let world = World::start(&collector)?;
    let admin = world.curl(&["--admin"], "admin")?;
    let other = world.curl(&["--user", "jane"], "jane")?;
    eventually(EXPORTED, || got(&admin, CONFIGMAPS, None, 200))?;

    // None of these is traced: the parent is not sampled, or its sender does not decide.
    got(&admin, CONFIGMAPS, Some(&traceparent(1, false)), 200)?;
    got(&other, CONFIGMAPS, Some(&traceparent(2, true)), 403)?;
    got(&admin, CONFIGMAPS, Some("00-nonsense"), 200)?;
    got(&admin, CONFIGMAPS, Some(&traceparent(3, true)), 200)?;
    got(&admin, &format!("{CONFIGMAPS}?watch=1&timeoutSeconds=1"), Some(&traceparent(4, true)), 200)?;

    let route = "GET /api/v1/namespaces/{namespace}/configmaps";
    let spans = collector.trace(&trace(3), ("proxy-server", route), EXPORTED)?;
    let spans = if spans.iter().any(|span| span.service == "apiserver") {
        spans
    } else {
        collector.trace(&trace(3), ("apiserver", &route.replace("{namespace}", "{:namespace}")), EXPORTED)?
    };
    let of = |service: &str, name: &str| {
        let mut found = spans.iter().filter(|span| span.service == service && span.name == name);
        found.next().with_context(|| format!("no {name:?} of {service}: {spans:#?}"))
    };
    let (server, tunnel) = (of("proxy-server", route)?, of("proxy-server", "tunnel")?);
    let (agent, at_host) = (of("proxy-agent", route)?, of("proxy-agent", "host")?);
    let below = [
        (tunnel, server),
        (agent, tunnel),
        (of("proxy-agent", "authenticate")?, agent),
        (of("proxy-agent", "authorise")?, agent),
        (at_host, agent),
        (of("apiserver", &route.replace("{namespace}", "{:namespace}"))?, at_host),
    ];
    for (span, parent) in below {
        ensure!(span.parent == parent.id, "{} is not below {}: {spans:#?}", span.name, parent.name);
    }
    ensure!(server.parent == PARENT, "{server:?}");
    for span in [server, agent] {
        for attribute in ["atoll.cluster=traced", "atoll.verb=list", "http.response.status_code=200"] {
            ensure!(span.has(attribute), "no {attribute}: {span:?}");
        }
    }
    let watch = collector.trace(&trace(4), ("proxy-server", route), EXPORTED)?;
    ensure!(watch.iter().any(|span| span.has("atoll.verb=watch")), "{watch:#?}");

    // The requests above were exported before, because each half exports spans in the order in which they end.
    let traces: BTreeSet<String> = collector.spans()?.into_iter().map(|Span { trace, .. }| trace).collect();
    ensure!(traces == BTreeSet::from([trace(3), trace(4)]), "{traces:?}");
    Ok(())
}

/// The span of the client.
const PARENT: &str = "00f067aa0ba902b7";

fn trace(number: u32) -> String {
    format!("{number:032x}")
}

fn traceparent(number: u32, is_sampled: bool) -> String {
    format!("00-{}-{PARENT}-{:02x}", trace(number), u8::from(is_sampled))
}

/// Sends GET with this `traceparent`.
fn got(curl: &Curl, path: &str, traceparent: Option<&str>, code: u16) -> anyhow::Result<()> {
    let header = traceparent.map(|value| format!("traceparent: {value}"));
    let curl = header.iter().fold(curl.clone(), |curl, header| curl.with(&["--header", header]));
    let response = curl.get(path)?;
    ensure!(response.code == code, "{}: {}", response.code, response.body);
    Ok(())
}

/// A host, a proxy-server and an agent that export traces. They are dropped in this order.
struct World {
    _agent: atoll_tests::process::Process,
    site: Site,
    _host: HostCluster,
    _dir: tempfile::TempDir,
}

// === impl World ===

impl World {
    fn start(collector: &Collector) -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new().prefix("atoll-trace-").tempdir()?;
        let file = dir.path().join("tracing.yaml");
        let config = format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: {}\n",
            collector.grpc()
        );
        std::fs::write(&file, config)?;
        let host = HostCluster::up_with(&[&format!("--tracing-config-file={}", file.display())])?;
        // kube-apiserver takes the agent's span as a parent only from these groups.
        let agent = host.kubectl().with_token(&host.token_of("operator")?, dir.path().join("agent.kubeconfig"))?;
        let tracing = format!("tracing: {{endpoint: \"{}\"}}", collector.url());
        let site = Site::start_with(&[&site::entry(CLUSTER, SITE)], &[CLUSTER], &tracing)?;
        let body = format!(
            "host: {{kubeconfig: {}}}\n{tracing}\nvirtualClusters: [{}]",
            agent.kubeconfig().display(),
            Nodes::Location("beijing").entry(CLUSTER)
        );
        let mut agent = site.agent(SITE, &body)?;
        agent.printed("tunnel established")?;
        agent.printed("the virtual cluster is provisioned")?;
        Ok(Self { _agent: agent, site, _host: host, _dir: dir })
    }

    /// curl with a new certificate.
    fn curl(&self, user: &[&str], name: &str) -> anyhow::Result<Curl> {
        let (file, config) = (self.site.file(&format!("{name}.kubeconfig")), self.site.file("server.yaml"));
        let (file, config) = (file.display().to_string(), config.display().to_string());
        site::atoll(&[&["kubeconfig", CLUSTER, "--server-config", &config, "-o", &file], user].concat())?;
        let Credentials { authority, certificate, key } = Credentials::of(&Kubectl::new(file.into()))?;
        Ok(Curl::new(Route::Proxy, CLUSTER, self.site.ports, &authority).with_certificate(&certificate, &key))
    }
}
