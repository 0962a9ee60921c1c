//! Both halves are restarted in the order of docs/upgrade.md, with an open watch and an open session.

use std::io::{BufRead as _, BufReader};
use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_tests::kubectl::end;
use atoll_tests::{HostCluster, eventually};

use super::world::{AGENT, IN_FORCE, agent, server, stop};

const CLUSTER: &str = "cl-upgraded";
/// Longer than `drain`, which is two seconds.
const SESSION: &str = "60";

pub(super) fn cuts_only_sessions(host: &HostCluster) -> anyhow::Result<()> {
    let mut site = server(&[CLUSTER])?;
    let mut running = agent(&site, AGENT, host, &[(CLUSTER, "beijing")])?;
    let client = site.administrator(CLUSTER)?;
    client.ok(&["run", "one", "--image=x"])?;
    client.ok(&["wait", "pod/one", "--for=condition=Ready", "--timeout=30s"])?;
    let id = client.ok(&["get", "pod", "one", "-o=jsonpath={.metadata.uid}"])?;

    for half in ["proxy-server", "agent"] {
        let mut watch = client.start(&["get", "configmaps", "-w", "-o", "name"])?;
        let mut lines = BufReader::new(watch.stdout.take().context("no stdout")?).lines();
        ensure!(lines.next().context("the watch has ended")??.contains("configmap/"));
        let session = client.start(&["exec", "one", "--", "sleep", SESSION])?;
        // The session has begun when the host knows its connection.
        let begun = std::time::SystemTime::now();
        if half == "proxy-server" {
            site.server.interrupt()?;
            site.restart_server()?;
        } else {
            stop(running)?;
            running = agent(&site, "upgraded", host, &[(CLUSTER, "beijing")])?;
        }
        // kubectl ends when its watch ends without an error. Informers of client-go would continue from the last version.
        ensure!(lines.all(|line| line.is_ok()), "the watch failed");
        let status = watch.wait()?;
        ensure!(status.success(), "{half}: the watch ended with {status}");
        let error = end(session)?;
        let took = begun.elapsed().unwrap_or_default();
        ensure!(took < Duration::from_secs(50), "{half}: the session was not cut: {error}");
        // Everything works with the same credentials, and workloads did not notice.
        eventually(IN_FORCE, || {
            let now = client.ok(&["get", "pod", "one", "-o=jsonpath={.metadata.uid}"])?;
            ensure!(now == id, "{now}");
            client.ok(&["exec", "one", "--", "echo", "again"])
        })?;
    }
    drop(running);
    Ok(())
}
