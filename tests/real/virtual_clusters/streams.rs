//! logs, exec, attach, port-forward and cp: long-lived streams.

use std::io::{BufRead, BufReader};

use anyhow::{Context, bail, ensure};
use atoll_tests::kubectl::end;
use atoll_tests::{Curl, Kubectl, Route, VirtualSite};

use super::{BEIJING, namespace};

pub(super) fn by_proxy(site: &VirtualSite) -> anyhow::Result<()> {
    streams(site, Route::Proxy, "streams-proxy")
}

pub(super) fn by_path(site: &VirtualSite) -> anyhow::Result<()> {
    streams(site, Route::Path, "streams-path")
}

pub(super) fn by_sni(site: &VirtualSite) -> anyhow::Result<()> {
    streams(site, Route::Sni, "streams-sni")
}

/// A pod whose log grows while a client follows it.
fn pod(namespace: &str) -> String {
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"shell","namespace":"{namespace}"}},
"spec":{{"containers":[{{"name":"ticker","image":"busybox"}}]}}}}"#
    )
}

fn streams(site: &VirtualSite, route: Route, name: &str) -> anyhow::Result<()> {
    let kubectl = site.administrator(BEIJING, route)?;
    kubectl.ok_with(&["create", "-f", "-"], &namespace(name))?;
    kubectl.ok_with(&["create", "-f", "-"], &pod(name))?;
    kubectl.ok(&["wait", "pod/shell", "--for=condition=Ready", "-n", name, "--timeout=30s"])?;
    followed_log(&kubectl, name).context("logs -f")?;
    conversations(&kubectl, name, "websocket").context("with WebSocket")?;
    let spdy =
        kubectl.set("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", "false").set("KUBECTL_PORT_FORWARD_WEBSOCKETS", "false");
    conversations(&spdy, name, "spdy").context("with SPDY")
}

fn conversations(kubectl: &Kubectl, namespace: &str, protocol: &str) -> anyhow::Result<()> {
    commands(kubectl, namespace).context("exec")?;
    attached(kubectl, namespace).context("attach")?;
    copied(kubectl, namespace, protocol).context("cp")?;
    forwarded(kubectl, namespace).context("port-forward")
}

/// Follows a log: existing lines, then new ones.
fn followed_log(kubectl: &Kubectl, namespace: &str) -> anyhow::Result<()> {
    let mut follow = kubectl.start(&["logs", "-f", "shell", "-n", namespace])?;
    let mut lines = BufReader::new(follow.stdout.take().context("no stdout")?).lines();
    for number in 1..=6 {
        let Some(line) = lines.next() else { bail!("kubectl ended before line {number}: {}", end(follow)?) };
        let line = line?;
        ensure!(number > 3 || line == format!("line {number} of container ticker"), "{line}");
    }
    end(follow)?;
    Ok(())
}

fn commands(kubectl: &Kubectl, namespace: &str) -> anyhow::Result<()> {
    let exec = ["exec", "-i", "shell", "-n", namespace, "--"];
    let echo = kubectl.ok(&[&exec, &["echo", "through"][..]].concat())?;
    ensure!(echo == "through\n", "{echo:?}");
    // Longer than all windows on the route.
    let typed = "0123456789abcdef\n".repeat(20_000);
    let back = kubectl.ok_with(&[&exec, &["cat"][..]].concat(), &typed)?;
    ensure!(back == typed, "{} bytes of {} came back", back.len(), typed.len());
    let split = kubectl.run(&[&exec, &["sh", "-c", "echo out; echo err >&2; exit 7"][..]].concat())?;
    ensure!(split.code == 7 && split.stdout == "out\n" && split.stderr.starts_with("err\n"), "{split:?}");
    Ok(())
}

fn attached(kubectl: &Kubectl, namespace: &str) -> anyhow::Result<()> {
    let back = kubectl.ok_with(&["attach", "-i", "shell", "-n", namespace], "typed\n")?;
    ensure!(back.contains("typed"), "{back:?}");
    Ok(())
}

fn copied(kubectl: &Kubectl, namespace: &str, protocol: &str) -> anyhow::Result<()> {
    let folder = kubectl.kubeconfig().with_extension(protocol);
    std::fs::create_dir(&folder)?;
    let file = |name: &str| folder.join(name).display().to_string();
    let data = "of some length\n".repeat(20_000);
    std::fs::write(folder.join("up"), &data)?;
    let remote = format!("{namespace}/shell:{protocol}");
    kubectl.ok(&["cp", &file("up"), &remote])?;
    kubectl.ok(&["cp", &remote, &file("down")])?;
    ensure!(std::fs::read_to_string(folder.join("down"))? == data);
    Ok(())
}

fn forwarded(kubectl: &Kubectl, namespace: &str) -> anyhow::Result<()> {
    let mut forward = kubectl.start(&["port-forward", "pod/shell", ":80", "-n", namespace])?;
    let mut output = BufReader::new(forward.stdout.take().context("no stdout")?);
    let mut line = String::new();
    output.read_line(&mut line)?;
    let address = line.split(' ').nth(2).with_context(|| format!("no address: {line:?}"))?;
    // Several connections in the same session.
    for code in [200, 418] {
        let response = Curl::plain(address).get(&format!("/status/{code}"))?;
        ensure!(response.code == code, "{} {}", response.code, response.body);
    }
    end(forward)?;
    Ok(())
}
