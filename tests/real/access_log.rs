//! The access log: one line for each request, without secrets.

use std::sync::Arc;

use anyhow::{Context, ensure};
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::{HostCluster, Kubectl, Nodes, Site, eventually, site};
use libtest_mimic::Trial;

use crate::case;

pub(crate) fn trial(host: Option<&Arc<HostCluster>>) -> Trial {
    case("access_log::logs_each_request", host, logs_each_request)
}

const CLUSTER: &str = "logged";
const ENTRY: &str = "{name: logged, agents: [site-l], clientCA: {certificate: clusters/logged/client-ca.crt, \
                     key: clusters/logged/client-ca.key}}";

fn logs_each_request(host: &HostCluster) -> anyhow::Result<()> {
    let site = Site::start(&[ENTRY], &[CLUSTER])?;
    let body = format!(
        "host: {{kubeconfig: {}}}\nvirtualClusters: [{}]",
        host.agent_kubeconfig().display(),
        Nodes::Location("beijing").entry(CLUSTER)
    );
    let mut agent = site.agent("site-l", &body)?;
    agent.printed("the virtual cluster is provisioned")?;
    agent.printed("tunnel established")?;
    let admin = mint(&site, "admin", &["--admin"])?;
    eventually(CONDITION_TIMEOUT, || admin.ok(&["create", "configmap", "one", "-n", "default"]))?;

    let logged = |words: &[&str]| {
        eventually(CONDITION_TIMEOUT, || {
            let log = site.server.log();
            let found = log.lines().filter(|line| line.contains(" access: "));
            let found = found.filter(|line| words.iter().all(|word| line.contains(word))).count();
            ensure!(found == 1, "{found} lines with {words:?}:\n{log}");
            Ok(())
        })
    };
    let of_admin = ["user=\"admin\" cluster=\"logged\""];
    logged(&[
        of_admin[0],
        "verb=\"create\" resource=\"configmaps\" namespace=\"default\" status=201",
        "end=\"whole\"",
    ])?;

    // A user of the host, authenticated by a token.
    admin.ok(&["create", "serviceaccount", "robot", "-n", "default"])?;
    let token = admin.ok(&["create", "token", "robot", "-n", "default"])?;
    let robot = mint(&site, "robot", &["--token", token.trim()])?;
    robot.fails(&["get", "secrets", "-n", "default"])?;
    logged(&[
        "user=\"system:serviceaccount:default:robot\"",
        "resource=\"secrets\"",
        "status=403",
        "fault=\"client\"",
    ])?;
    admin.fails(&["get", "nodes", "nobody", "--as=jane"])?;
    logged(&["user=\"admin\" acting_as=\"jane\"", "resource=\"nodes\" name=\"nobody\" status=403"])?;

    // The line of a stream is written when the stream ends.
    let pod = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default"},
                  "spec":{"containers":[{"name":"c","image":"c"}]}}"#;
    admin.ok_with(&["create", "-f", "-"], pod)?;
    admin.ok(&["wait", "-n", "default", "pod/p", "--for=condition=Ready", "--timeout=30s"])?;
    admin.ok(&["exec", "-n", "default", "p", "--", "echo", "what-was-typed"])?;
    logged(&[of_admin[0], "resource=\"pods/exec\" namespace=\"default\" name=\"p\" status=101"])?;

    // No agent is connected.
    agent.kill()?;
    let log = eventually(CONDITION_TIMEOUT, || {
        admin.fails(&["get", "--raw", "/api/v1/namespaces/default/services", "--request-timeout=1s"])?;
        let log = site.server.log();
        let absent =
            log.lines().any(|line| line.contains("resource=\"services\"") && line.contains("fault=\"tunnel\""));
        ensure!(absent, "{log}");
        Ok(log)
    })?;

    let secrets = [token.trim(), "what-was-typed"];
    for (half, log) in [("proxy-server", log.as_str()), ("proxy-agent", agent.log().as_str())] {
        ensure!(secrets.iter().all(|secret| !log.contains(secret)), "the {half} keeps what it must not");
    }
    Ok(())
}

fn mint(site: &Site, name: &str, more: &[&str]) -> anyhow::Result<Kubectl> {
    let kubeconfig = site.file(&format!("{name}.kubeconfig"));
    let config = site.file("server.yaml");
    let (config, output) = (config.to_str().context("path")?, kubeconfig.to_str().context("path")?);
    let mut words = vec!["kubeconfig", CLUSTER, "--server-config", config, "-o", output];
    words.extend(more);
    site::atoll(&words)?;
    Ok(Kubectl::new(kubeconfig))
}
