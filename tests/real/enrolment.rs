//! A site joins with a token, and its certificate is renewed under load.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::process::Process;
use atoll_tests::{Curl, HostCluster, Nodes, Reads, Site, eventually, kubectl, paths, pause, site};
use libtest_mimic::Trial;

use crate::case;

const AGENT: &str = "site-j";
const CLUSTER: &str = "joined";

/// How long certificates are valid, in seconds. Each is renewed at two thirds of this time.
const LIFETIME: &str = "ATOLL_TEST_CERTIFICATE_SECONDS";
const DEFAULT_LIFETIME: u64 = 15;
const RENEWALS: usize = 3;

pub(crate) fn trials(host: Option<&Arc<HostCluster>>) -> Vec<Trial> {
    vec![
        case("enrolment::a_site_joins_with_a_token_and_renews_under_load", host, joins_and_renews),
        case("enrolment::a_server_without_enrolment_says_so", host, is_refused_without_enrolment),
    ]
}

/// A site that has nothing but a configuration.
struct NewSite {
    /// The port of the proxy-server for agents.
    port: u16,
    config: PathBuf,
    identity: PathBuf,
}

fn joins_and_renews(host: &HostCluster) -> anyhow::Result<()> {
    let lifetime = match std::env::var(LIFETIME) {
        Ok(seconds) => seconds.parse().context(LIFETIME)?,
        Err(_) => DEFAULT_LIFETIME,
    };
    let keys = format!("enrolment: {{tokens: tokens, certificateLifetime: {lifetime}s}}");
    let mut site = Site::start_with(&[&site::entry(CLUSTER, AGENT)], &[CLUSTER], &keys)?;
    let token = create(&site)?;
    let (id, secret) = token.split_once('.').context("no secret")?;
    let secret = secret.split('.').next().unwrap_or_default();
    let admin = Curl::plain(&format!("127.0.0.1:{}", site.ports.admin));
    eventually(CONDITION_TIMEOUT, || {
        let status = admin.get("/statusz")?.body;
        let shown = status.lines().any(|line| line.starts_with(id) && line.contains(AGENT));
        ensure!(shown && !status.contains(secret), "{status}");
        Ok(())
    })?;

    // A token of another installation: nothing secret is sent.
    let other = NewSite::new(&site, host, "other")?;
    let digest = token.rsplit_once('.').context("no digest")?.1;
    let wrong = token.replace(digest, &"0".repeat(digest.len()));
    let refused = other.fails_to_join(&wrong)?;
    ensure!(refused.contains("is not the proxy-server that issued the join token"), "{refused}");
    // A token that nobody has created.
    let another = if token.starts_with('z') { "y" } else { "z" };
    let stranger = format!("{another}{}", token.get(1..).context("no token")?);
    let refused = other.fails_to_join(&stranger)?;
    ensure!(refused.contains("the join token is not valid"), "{refused}");

    let new = NewSite::new(&site, host, "new")?;
    let mut agent = new.join(&token)?;
    agent.printed("the virtual cluster is provisioned")?;
    agent.printed("tunnel established")?;
    ensure!(!agent.log().contains("restart the agent"), "flags count as changes of the file");
    let key = new.identity.join("agent.key");
    let mode = std::fs::metadata(&key)?.permissions().mode() & 0o777;
    ensure!(mode == 0o600, "the key has mode {mode:o}");
    site.server.printed("issued a certificate for a join token")?;
    for secret in [&token, token.split('.').nth(1).context("no secret")?] {
        ensure!(!site.server.log().contains(secret) && !agent.log().contains(secret), "a log contains the token");
    }
    // A token is worth one certificate.
    let refused = other.fails_to_join(&token)?;
    ensure!(refused.contains("the join token is not valid"), "{refused}");

    // Requests and a watch, while the certificate is renewed.
    let kubectl = site.administrator(CLUSTER)?;
    eventually(CONDITION_TIMEOUT, || kubectl.ok(&["get", "ns"]).map(drop))?;
    let first = std::fs::read(&key)?;
    let patience = Duration::from_secs(lifetime * RENEWALS as u64 + 30);
    let words = ["get", "configmaps", "-n", "default", "--watch-only", "-o", "name"];
    let mut watch = kubectl.start_for(2 * patience, &words)?;
    let mut shown = BufReader::new(watch.stdout.take().context("no stdout")?).lines();
    let address = format!("127.0.0.1:{}", site.ports.endpoint);
    let reads = Reads::start(&kubectl, &address, CLUSTER)?;
    eventually(patience, || {
        let renewed = agent.log().matches("the certificate is renewed").count();
        ensure!(renewed >= RENEWALS, "{renewed} renewals");
        Ok(())
    })?;
    // The last tunnel of the previous certificate has ended, or serves only the watch.
    pause(Duration::from_secs(2));
    reads.all_succeeded()?;
    ensure!(std::fs::read(&key)? != first, "the key is the first one");
    kubectl.ok(&["create", "configmap", "after-renewal", "-n", "default"])?;
    // The watch has never ended: kubectl does not begin a second one.
    let seen = shown.next().context("the watch has ended")??;
    ensure!(seen == "configmap/after-renewal", "the watch has shown {seen:?}");
    kubectl::end(watch)?;
    Ok(())
}

/// The agent stops, and names the missing section.
fn is_refused_without_enrolment(host: &HostCluster) -> anyhow::Result<()> {
    let site = Site::start(&[&site::entry(CLUSTER, AGENT)], &[CLUSTER])?;
    let new = NewSite::new(&site, host, "new")?;
    let token = format!("{}.{}.{}", "a".repeat(10), "b".repeat(32), "c".repeat(64));
    let refused = new.fails_to_join(&token)?;
    ensure!(refused.contains("its configuration has no section `enrolment`"), "{refused}");
    // `atoll check` accepts a site that has not joined yet only if it can join.
    let config = new.config.display().to_string();
    ensure!(site::atoll(&["check", &config]).is_err(), "a missing certificate is no mistake");
    let joining = std::fs::read_to_string(&new.config)?.replace("drain: 2s", "drain: 2s\njoin: {tokenFile: token}");
    std::fs::write(&new.config, joining)?;
    let checked = site::atoll(&["check", &config])?;
    ensure!(checked.contains("there is no certificate yet"), "{checked}");
    Ok(())
}

fn create(site: &Site) -> anyhow::Result<String> {
    let config = site.file("server.yaml");
    let printed = site::atoll(&["token", "create", AGENT, "--server-config", text(&config)?])?;
    let command = printed.lines().find_map(|line| line.strip_prefix("ATOLL_JOIN_TOKEN=")).context("no command")?;
    let (token, command) = command.split_once(' ').context("no program")?;
    let expected = format!("proxy-agent --config proxy-agent.yaml --server 127.0.0.1:{}", site.ports.agents);
    ensure!(command == expected, "{command}");
    let listed = site::atoll(&["token", "list", "--server-config", text(&config)?])?;
    ensure!(listed.contains(AGENT), "{listed}");
    Ok(token.to_owned())
}

// === impl NewSite ===

impl NewSite {
    fn new(site: &Site, host: &HostCluster, name: &str) -> anyhow::Result<Self> {
        let identity = site.file(name);
        std::fs::create_dir(&identity)?;
        let config = site.file(&format!("{name}.yaml"));
        let yaml = format!(
            "apiVersion: atoll.dev/v1alpha1\n\
             kind: ProxyAgentConfiguration\n\
             servers: [proxy.invalid:8091]\n\
             identity: {{certificate: {name}/agent.crt, key: {name}/agent.key, serverCA: {name}/serving-ca.crt}}\n\
             listeners: {{probes: 127.0.0.1:{}, admin: 127.0.0.1:{}}}\n\
             drain: 2s\n\
             host: {{kubeconfig: {}}}\n\
             virtualClusters: [{}]\n",
            paths::free_port(),
            paths::free_port(),
            host.agent_kubeconfig().display(),
            Nodes::Location("beijing").entry(CLUSTER),
        );
        std::fs::write(&config, yaml)?;
        Ok(Self { port: site.ports.agents, config, identity })
    }

    /// The command that `atoll token create` prints.
    fn join(&self, token: &str) -> anyhow::Result<Process> {
        let server = format!("127.0.0.1:{}", self.port);
        let words = ["--config", text(&self.config)?, "--server", &server];
        let log = self.identity.join("agent.log");
        Process::start_with("joining", &paths::binary("proxy-agent"), &words, log, &[("ATOLL_JOIN_TOKEN", token)])
    }

    /// Returns the log.
    fn fails_to_join(&self, token: &str) -> anyhow::Result<String> {
        let mut agent = self.join(token)?;
        let log = self.identity.join("agent.log");
        agent.printed("the proxy-agent cannot run")?;
        ensure!(!self.identity.join("agent.crt").exists(), "there is a certificate");
        let text = agent.log();
        // The next attempt appends to it.
        std::fs::remove_file(log)?;
        Ok(text)
    }
}

fn text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().context("no path")
}
