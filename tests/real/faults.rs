//! Failures of the proxy-server, the agent and the API servers of the host.

mod api_servers;
mod breaks;
mod definitions;
mod hub;
mod lists;
mod memory;
mod namespaces;
mod nesting;
mod pair;
mod replicas;
mod rights;
mod slow;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_tests::{HostCluster, Kubectl, Nodes, Site, eventually, paths, site};
use libtest_mimic::Trial;

use crate::case;
use crate::trial::trial;

pub(crate) fn trials(host: Option<&Arc<HostCluster>>) -> Vec<Trial> {
    let mut trials = vec![
        case("faults::an_informer_misses_no_event", host, an_informer_misses_no_event),
        case("faults::deep_objects_of_one_cluster_stop_no_other", host, nesting::of_one_cluster_stop_no_other),
        api_servers::trial(),
        hub::trial(host),
    ];
    trials.extend(replicas::trials(host));
    for (name, run) in PAIRS {
        let host = host.map(Arc::clone);
        trials.push(trial(name, move || run(host.context("no host cluster while listing")?)));
    }
    trials
}

/// A trial with two virtual clusters on the host.
type OfPair = (&'static str, fn(Arc<HostCluster>) -> anyhow::Result<()>);

/// The trials of watches that the hub serves.
const PAIRS: [OfPair; 9] = [
    ("faults::rights_end_with_rbac_in_quiet_watches", rights::end_with_rbac_in_quiet_watches),
    ("faults::rights_need_no_reviews_for_events", rights::need_no_reviews_for_events),
    ("faults::rights_need_no_reviews_for_the_next_watch", rights::need_no_reviews_for_the_next_watch),
    ("faults::hub_breaks_are_invisible", breaks::are_invisible),
    ("faults::hub_definitions_can_be_deleted_and_created_again", definitions::can_be_deleted_and_created_again),
    ("faults::hub_lists_of_any_version_equal_those_of_the_host", lists::of_any_version_equal_those_of_the_host),
    ("faults::hub_memory_too_small_sends_watches_to_the_host", memory::too_small_sends_watches_to_the_host),
    ("faults::hub_namespaces_that_move_end_watches", namespaces::that_move_end_watches),
    ("faults::hub_slow_watches_end_and_cost_no_memory", slow::watches_end_and_cost_no_memory),
];

fn an_informer_misses_no_event(host: &HostCluster) -> anyhow::Result<()> {
    let mut site = Site::start(&[&site::entry("faults", "site-f")], &["faults"])?;
    let agent_kubeconfig = host.agent_kubeconfig();
    let body = format!(
        "host: {{kubeconfig: {}}}\nvirtualClusters: [{}]",
        agent_kubeconfig.display(),
        Nodes::Location("hangzhou").entry("faults")
    );
    let mut agent = site.agent("site-f", &body)?;
    agent.printed("the virtual cluster is provisioned")?;
    let kubectl = site.administrator("faults")?;
    let namespace = r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"informer"}}"#;
    kubectl.ok_with(&["apply", "-f", "-"], namespace)?;

    let informer = Informer::start(&kubectl)?;

    let works = |what: &str| {
        eventually(Duration::from_secs(5), || {
            let output = kubectl.run(&["get", "ns", "--request-timeout=2s"])?;
            ensure!(output.code == 0, "{}", output.stderr);
            Ok(())
        })
        .with_context(|| format!("after {what} was killed"))
    };
    agent.kill()?;
    agent = site.agent("site-f", &body)?;
    works("the agent")?;
    site.server.kill()?;
    site.restart_server()?;
    works("the proxy-server")?;

    // A list after a very short watch may find that the proxy-server is down.
    informer.complained_only_of(&[SHORT_WATCH, "connect: connection refused"])?;
    drop(agent);
    Ok(())
}

/// How client-go complains of a watch that ends without an event within a second, also if the API server is a real one.
const SHORT_WATCH: &str = "very short watch";

/// An informer of client-go, and a writer.
struct Informer {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Informer {
    /// Starts both. Returns when the writer writes, in the namespace `informer`.
    fn start(kubectl: &Kubectl) -> anyhow::Result<Self> {
        Self::start_with(kubectl, "12s", "20ms")
    }

    /// The same, with the duration of the writing, and the time between two writes.
    fn start_with(kubectl: &Kubectl, duration: &str, pause: &str) -> anyhow::Result<Self> {
        let mut child = Command::new(paths::component("atoll-informer"))
            .arg("--kubeconfig")
            .arg(kubectl.kubeconfig())
            .args(["--duration", duration, "--pause", pause])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut output = BufReader::new(child.stdout.take().context("no stdout")?);
        let mut line = String::new();
        output.read_line(&mut line)?;
        ensure!(line == "writing\n", "{line}");
        Ok(Self { child, output })
    }

    /// Waits for the end. The cache of the informer must equal the stored objects, and client-go must not have complained.
    fn missed_nothing(self) -> anyhow::Result<()> {
        self.complained_only_of(&[SHORT_WATCH])
    }

    /// The same, but client-go may have complained in these words.
    fn complained_only_of(mut self, usual: &[&str]) -> anyhow::Result<()> {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest)?;
        let mut errors = String::new();
        self.child.stderr.take().context("no stderr")?.read_to_string(&mut errors)?;
        let status = self.child.wait()?;
        ensure!(status.success(), "{rest}{errors}");
        ensure!(rest.contains(" objects, "), "{rest}");
        let is_usual = |line: &str| usual.iter().any(|words| line.contains(words));
        let complaint = errors.lines().find(|line| line.contains("watch") && !is_usual(line));
        ensure!(complaint.is_none(), "{complaint:?}");
        Ok(())
    }
}

/// Starts a watch, and waits until it has begun.
fn watch(kubectl: &Kubectl) -> anyhow::Result<Child> {
    let mut child = kubectl.start(&["get", "namespaces", "--watch", "-o", "name"])?;
    let mut output = BufReader::new(child.stdout.take().context("no stdout")?);
    // The four initial namespaces, and one more.
    for _ in 0..5 {
        ensure!(output.read_line(&mut String::new())? > 0, "the watch ended");
    }
    child.stdout = Some(output.into_inner());
    Ok(child)
}
