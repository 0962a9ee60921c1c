//! The events of the outage.

use std::fmt::Write as _;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_tests::process::Process;
use atoll_tests::scraper::INTERVAL;
use atoll_tests::{Curl, Kubectl, Nodes, eventually, paths, pause, site};
use serde_json::{Value, json};

use super::client::Client;
use super::{A, B, BROKEN, HOSTLESS, NEW, NOTICED, SITE, STREAMS, World, unreachable_kubeconfig};

/// The length of a ConfigMap that fills the hub.
const LARGE: usize = 20_000;
/// A part of the hub's memory: more than the threshold of the alert, and less than what makes the hub close watches.
const FULL: f64 = 0.91;
/// The hub falls back at least this often, which is more than the threshold of the alert.
const FALL_BACKS: usize = 120;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Restarts that are more than the thresholds of the alerts.
const RESTARTS: usize = 3;

/// The number of slow requests: more than a hundredth of all requests. They take longer than the threshold of the alert.
const SLOW: usize = 12;
const DELAY: Duration = Duration::from_millis(5_500);

/// An agent without a host that serves `HOSTLESS`; one without a proxy-server; and one whose virtual cluster cannot be
/// provisioned.
const AGENTS: [&str; 3] = ["site-hostless", "site-lost", "site-broken"];

impl World<'_> {
    /// A namespace and Secrets up to the limits of the virtual cluster.
    pub(super) fn use_up_shares(&mut self) -> anyhow::Result<()> {
        self.kubectl.ok(&["create", "namespace", "fifth"])?;
        let refused = eventually(NOTICED, || {
            let name = format!("secret-{}", fastrand::u32(..));
            self.kubectl.fails(&["create", "secret", "generic", &name, "-n", "default"])
        })?;
        ensure!(refused.contains("exceeded quota: atoll"), "{refused}");
        Ok(())
    }

    /// Two virtual clusters watch ConfigMaps, so that the hub does too. Then these fill its memory.
    pub(super) fn fill_the_hub(&mut self) -> anyhow::Result<()> {
        let other = Client::new(&self.other, B, self.site.ports)?;
        let path = "/api/v1/configmaps?watch=true";
        let mut watches = vec![self.admin.watch(path)?, other.watch(path)?];
        // A watch goes to the host if the hub does not have its objects soon enough.
        eventually(NOTICED, || {
            watches.truncate(2);
            let before = self.watches_of_hub();
            watches.push(self.admin.watch(path)?);
            ensure!(self.watches_of_hub() > before, "the hub does not answer the watch");
            Ok(())
        })?;
        // A change of rights, so that the agent reviews those of open watches.
        self.kubectl.ok(&[
            "create",
            "clusterrolebinding",
            "readers",
            "--clusterrole=view",
            "--group=system:masters",
        ])?;
        eventually(NOTICED, || self.metric("atoll_hub_reviews_total{answer=\"allowed\"}").context("no review"))?;
        let limit = self.metric("atoll_hub_memory_limit_bytes")?;
        for number in 0.. {
            if self.metric("atoll_hub_memory_bytes")? > FULL * limit {
                break;
            }
            ensure!(number < 200, "the memory of the hub does not fill");
            ensure!(self.create(number)? == 201);
        }
        // A list with a compressed response.
        ensure!(self.admin.get(CONFIG_MAPS, 1, 1)? == [200]);
        eventually(NOTICED, || {
            ensure!(self.prometheus.alerts()?.contains("AtollHubMemoryFull"), "the hub is not full");
            Ok(())
        })?;
        watches.clear();
        Ok(())
    }

    /// More ConfigMaps than the hub can hold. Their watches go to the host.
    pub(super) fn overfill_the_hub(&mut self) -> anyhow::Result<()> {
        let closed = "atoll_hub_answers_total{answer=\"closed\"}";
        for number in 1000.. {
            ensure!(number < 1200, "the hub does not close the watches");
            ensure!(self.create(number)? == 201);
            drop(self.admin.watch(&self.newest()?)?);
            if self.metric(closed).unwrap_or_default() > 0.0 {
                break;
            }
        }
        scrapes();
        let codes = self.admin.get(&self.newest()?, FALL_BACKS, STREAMS - 10)?;
        ensure!(codes.iter().all(|code| *code == 200), "{codes:?}");
        Ok(())
    }

    /// A user with too many concurrent requests.
    pub(super) fn exceed_a_limit(&mut self) -> anyhow::Result<()> {
        let (config, file) = (self.site.file("server.yaml"), self.site.file("jane.kubeconfig"));
        let [config, output] = [config.to_str(), file.to_str()];
        let (config, output) = (config.context("not UTF-8")?, output.context("not UTF-8")?);
        site::atoll(&[
            "kubeconfig",
            A,
            "--server-config",
            config,
            "--user",
            "jane",
            "--group",
            "system:masters",
            "-o",
            output,
        ])?;
        let jane = Client::new(&Kubectl::new(file), A, self.site.ports)?;
        jane.exceed(CONFIG_MAPS, STREAMS, 1)?;
        scrapes();
        jane.exceed(CONFIG_MAPS, STREAMS, 60)
    }

    /// Clusters whose agents do not run yet, a client CA that expires, and a Karmada that does not respond.
    pub(super) fn add_clusters(&mut self) -> anyhow::Result<()> {
        let dir = self.site.dir().to_str().context("not UTF-8")?;
        site::atoll(&["certs", "cluster", NEW, "--lifetime", "1m", "--dir", dir])?;
        unreachable_kubeconfig(&self.site, "karmada.kubeconfig")?;
        let file = self.site.file("server.yaml");
        let karmada = format!(
            "karmada: {{kubeconfig: karmada.kubeconfig, keptBy: observe, clusters: [{A}], url: 'http://127.0.0.1:{}'}}\n",
            self.site.ports.proxy
        );
        let mut yaml = std::fs::read_to_string(&file)?.replace("clusters:\n", &format!("{karmada}clusters:\n"));
        for (cluster, agent) in [(NEW, "site-new"), (HOSTLESS, AGENTS[0]), (BROKEN, AGENTS[2])] {
            writeln!(yaml, "- {}", site::entry(cluster, agent))?;
        }
        std::fs::write(&file, &yaml)?;
        self.site.other()?.write(&yaml)?;
        for id in [self.site.server.id(), self.site.other()?.server.id()] {
            run("kill", &["-HUP", &id.to_string()])?;
        }
        Ok(())
    }

    /// Agents that do not work.
    pub(super) fn add_agents(&mut self) -> anyhow::Result<()> {
        // The slow requests of `delay_requests` run in the meantime.
        let bodies = (0..SLOW).map(|number| config_map(&format!("slow-{number}"), 10)).collect();
        self.slow = Some(self.admin.begin_posts(CONFIG_MAPS, bodies)?);
        // Somebody else has the name of the root namespace.
        let root = format!("atoll-root-{BROKEN}");
        self.host.kubectl().ok(&["create", "namespace", &root])?;
        let of_host = |kubeconfig: &str, cluster: &str| {
            let nodes = Nodes::Location("hangzhou").entry(cluster);
            format!("host: {{kubeconfig: {kubeconfig}}}\nvirtualClusters: [{nodes}]")
        };
        let [hostless, lost, broken] = AGENTS;
        let kubeconfig = unreachable_kubeconfig(&self.site, "hostless.kubeconfig")?;
        self.agents.push(self.site.agent(hostless, &of_host(&kubeconfig, HOSTLESS))?);
        let nowhere = [format!("127.0.0.1:{}", paths::free_port())];
        let clusters = "physicalClusters: [{name: observe-lost, apiServer: '127.0.0.1:1'}]";
        self.agents.push(self.site.agent_of(&nowhere, lost, lost, clusters)?);
        let kubeconfig = self.host.agent_kubeconfig().display().to_string();
        self.agents.push(self.site.agent(broken, &of_host(&kubeconfig, BROKEN))?);
        for agent in AGENTS {
            self.prometheus.scrape("proxy-agent", self.site.metrics(agent)?)?;
        }
        Ok(())
    }

    /// An agent with few more file descriptors than it needs.
    pub(super) fn take_files(&mut self) -> anyhow::Result<()> {
        let lost = &self.agents[2];
        let limit = lost.files()? + 3;
        run("prlimit", &["--pid", &lost.id().to_string(), &format!("--nofile={limit}")])
    }

    /// Requests to the server of a Service without endpoints. The host refuses them.
    pub(super) fn fail_requests(&mut self) -> anyhow::Result<()> {
        let administrator = &self.other;
        administrator.ok(&["create", "service", "clusterip", "nobody", "--tcp=80", "-n", "default"])?;
        let client = Client::new(administrator, B, self.site.ports)?;
        let path = "/api/v1/namespaces/default/services/nobody:80/proxy/";
        let mut codes = client.get(path, 1, 1)?;
        scrapes();
        codes.extend(client.get(path, 60, 20)?);
        ensure!(codes.iter().all(|code| *code == 503), "{codes:?}");
        Ok(())
    }

    /// Some of many requests are slow.
    pub(super) fn delay_requests(&mut self) -> anyhow::Result<()> {
        self.is_delayed = true;
        let path = "/api/v1/namespaces/default";
        let mut codes = self.admin.get(path, 1, 1)?;
        scrapes();
        self.admin.complete(self.slow.take().context("no slow requests")?, DELAY)?;
        codes.extend(self.admin.get(path, 400, 20)?);
        ensure!(codes.iter().all(|code| *code == 200), "{codes:?}");
        Ok(())
    }

    /// An agent restarts several times, and ends. It also offers a cluster that is refused.
    pub(super) fn restart_far(&mut self) -> anyhow::Result<()> {
        self.is_stopped = true;
        self.far.offer_more()?;
        for _ in 0..RESTARTS {
            self.far.restart(&self.prometheus)?;
        }
        // The proxy-servers forget the offers with the tunnel, and a scrape of them can be later than that of the agent.
        self.notices("AtollOfferRefused")?;
        self.far.kill()
    }

    /// A proxy-server that does not know the others.
    pub(super) fn add_lonely(&mut self) -> anyhow::Result<()> {
        let [proxy, endpoint, agents, probes, admin, metrics] =
            std::array::from_fn(|_| format!("127.0.0.1:{}", paths::free_port()));
        let listeners = format!(
            "listeners: {{proxy: '{proxy}', endpoint: '{endpoint}', agents: '{agents}', probes: '{probes}', \
             admin: '{admin}', metrics: '{metrics}'}}"
        );
        let yaml = std::fs::read_to_string(self.site.file("server.yaml"))?;
        let others = yaml.lines().filter(|line| !line.starts_with("peers:") && !line.starts_with("listeners:"));
        let lines: Vec<_> = others.chain([listeners.as_str(), ""]).collect();
        ensure!(lines.len() == yaml.lines().count(), "not one line with peers, and one with listeners: {yaml}");
        let file = self.site.file("lonely.yaml");
        std::fs::write(&file, lines.join("\n"))?;
        let (program, log) = (paths::binary("proxy-server"), file.with_extension("log"));
        let mut lonely = Process::start("lonely", &program, &["--config", file.to_str().context("not UTF-8")?], log)?;
        lonely.printed("ready")?;
        self.lonely = Some(lonely);
        self.prometheus.scrape("proxy-server", metrics)
    }

    pub(super) fn kill_proxy_servers(&mut self) -> anyhow::Result<()> {
        self.site.server.kill()?;
        self.site.other()?.server.kill()?;
        self.lonely.as_mut().map_or(Ok(()), Process::kill)
    }

    /// The path of a watch that ends after a second, from the newest version.
    fn newest(&self) -> anyhow::Result<String> {
        let list = self.kubectl.ok(&["get", "--raw", &format!("{CONFIG_MAPS}?limit=1")])?;
        let list: Value = serde_json::from_str(&list)?;
        let version = list["metadata"]["resourceVersion"].as_str().context("a list without a version")?;
        Ok(format!("/api/v1/configmaps?watch=true&timeoutSeconds=1&resourceVersion={version}"))
    }

    fn create(&self, number: usize) -> anyhow::Result<u16> {
        self.admin.post(CONFIG_MAPS, config_map(&format!("large-{number}"), LARGE))
    }

    /// The watches that the hub has answered.
    fn watches_of_hub(&self) -> f64 {
        // A counter appears with its first value.
        self.metric("atoll_hub_answers_total{answer=\"watch\"}").unwrap_or_default()
    }

    /// A metric of the agent with the hub, without waiting for the next scrape.
    fn metric(&self, name: &str) -> anyhow::Result<f64> {
        let page = Curl::plain(&self.site.metrics(SITE)?).get("/metrics")?.body;
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        Ok(line.with_context(|| format!("no {name}"))?.parse()?)
    }
}

/// Gives Prometheus the time to scrape a counter after its first event.
///
/// A counter appears with its first event, and a rate counts only what comes after the first scrape of a counter. Without this,
/// many events between two scrapes count as none if they are the first ones.
fn scrapes() {
    pause(3 * INTERVAL);
}

fn config_map(name: &str, length: usize) -> String {
    let text: String = std::iter::repeat_with(fastrand::alphanumeric).take(length).collect();
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": text}}).to_string()
}

fn run(program: &str, args: &[&str]) -> anyhow::Result<()> {
    let status = Command::new(program).args(args).status().with_context(|| program.to_owned())?;
    ensure!(status.success(), "{program} {args:?}: {status}");
    Ok(())
}
