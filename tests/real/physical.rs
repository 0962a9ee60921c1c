//! A physical cluster through the tunnel, with end-to-end TLS.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail, ensure};
use atoll_tests::kubectl::end;
use atoll_tests::{HostCluster, Kubectl, Site, eventually, paths, site};
use libtest_mimic::Trial;

use crate::case;

pub(crate) fn trials(host: Option<&Arc<HostCluster>>) -> Vec<Trial> {
    vec![
        case("physical::kubectl_through_proxy_url", host, kubectl_through_proxy_url),
        case("physical::the_status_line_has_the_reason", host, refusals_say_why),
        case("physical::sites_with_one_address_have_names", host, sites_with_one_address_have_names),
        case("physical::names_require_their_certificate", host, names_require_their_certificate),
        case("physical::a_stalled_reader_blocks_nobody", host, a_stalled_reader_blocks_nobody),
        case("physical::both_programs_reconnect", host, both_programs_reconnect),
        case("physical::sigterm_drains", host, sigterm_drains),
    ]
}

/// A proxy-server, and the agent of the physical cluster `branch-7`, which is this host.
pub(crate) fn site_with_branch(host: &HostCluster) -> anyhow::Result<(Site, atoll_tests::process::Process)> {
    let address = &host.api_servers()?[0];
    let entry = format!("{{name: branch-7, agents: [branch-7], mode: physical, apiServer: \"{address}\"}}");
    let site = Site::start(&[&entry], &[])?;
    let mut agent = site.agent("branch-7", &branch(address))?;
    agent.printed("tunnel established")?;
    Ok((site, agent))
}

fn branch(address: &str) -> String {
    format!("physicalClusters: [{{name: branch-7, apiServer: \"{address}\"}}]")
}

/// Two single-binary sites, as of k3s: both have the address 127.0.0.1:6443. One of them also has an API server that is down, and the
/// other one has only such a server.
fn sites_with_one_address_have_names(host: &HostCluster) -> anyhow::Result<()> {
    const ADDRESS: &str = "127.0.0.1:6443";
    let entry = |name: &str| format!("{{name: {name}, agents: [{name}], mode: physical, apiServer: \"{ADDRESS}\"}}");
    let site = Site::start(&[&entry("k3s-1"), &entry("k3s-2")], &[])?;
    let (up, down) = (&host.api_servers()?[0], format!("127.0.0.1:{}", paths::free_port()));
    let mut agents = Vec::new();
    for (name, addresses) in [("k3s-1", format!("[\"{down}\", \"{up}\"]")), ("k3s-2", format!("\"{down}\""))] {
        let mut agent = site.agent(name, &format!("physicalClusters: [{{name: {name}, apiServer: {addresses}}}]"))?;
        agent.printed("tunnel established")?;
        agents.push(agent);
    }
    // What k3s writes to /etc/rancher/k3s/k3s.yaml.
    let text = std::fs::read_to_string(host.kubectl().kubeconfig())?;
    let text = text.replace(&format!("https://{up}"), &format!("https://{ADDRESS}"));
    let file = site.file("k3s.yaml");
    std::fs::write(&file, text)?;
    let ambiguous = site.physical(&file)?.run(&["get", "ns", "--request-timeout=5s"])?;
    ensure!(ambiguous.stderr.contains("several clusters have the API server"), "{}", ambiguous.stderr);
    let kubectl = |name: &str| -> anyhow::Result<Kubectl> {
        let (config, target) = (site.file("server.yaml"), site.file(&format!("{name}.kubeconfig")));
        let (config, from) = (config.display().to_string(), file.display().to_string());
        let target_name = target.display().to_string();
        site::atoll(&["kubeconfig", name, "--server-config", &config, "--physical-from", &from, "-o", &target_name])?;
        Ok(Kubectl::new(target))
    };
    for _ in 0..2 {
        ensure!(kubectl("k3s-1")?.ok(&["get", "ns"])?.contains("kube-system"));
        std::fs::remove_file(site.file("k3s-1.kubeconfig"))?;
    }
    let other = kubectl("k3s-2")?.run(&["get", "ns", "--request-timeout=5s"])?;
    ensure!(other.code != 0 && other.stderr.contains("could not reach its API server"), "{}", other.stderr);
    Ok(())
}

fn kubectl_through_proxy_url(host: &HostCluster) -> anyhow::Result<()> {
    let (site, _agent) = site_with_branch(host)?;
    let kubectl = site.physical(host.kubectl().kubeconfig())?;
    ensure!(kubectl.ok(&["get", "ns"])?.contains("kube-system"));

    // A watch receives later changes.
    let mut watch = kubectl.start(&["get", "ns", "-w", "-o", "name"])?;
    let mut lines = BufReader::new(watch.stdout.take().context("no stdout")?).lines();
    let mut seen = String::new();
    while !seen.contains("kube-system") {
        seen.push_str(&lines.next().context("the watch ended")??);
    }
    kubectl.ok(&["create", "ns", "physical-watch"])?;
    while !seen.contains("physical-watch") {
        seen.push_str(&lines.next().context("the watch ended")??);
    }
    end(watch)?;

    // Edge nodes have a taint, and the agent adds no toleration for a physical cluster.
    let anywhere = r#"--overrides={"spec": {"tolerations": [{"operator": "Exists"}]}}"#;
    kubectl.ok(&["run", "shell", "--image=busybox", "-n", "physical-watch", anywhere])?;
    kubectl.ok(&["wait", "pod/shell", "--for=condition=Ready", "-n", "physical-watch", "--timeout=30s"])?;
    let echo = kubectl.ok(&["exec", "shell", "-n", "physical-watch", "--", "echo", "over the tunnel"])?;
    ensure!(echo.trim() == "over the tunnel", "{echo}");
    let cat = kubectl.ok_with(&["exec", "-i", "shell", "-n", "physical-watch", "--", "cat"], "typed\n")?;
    ensure!(cat == "typed\n", "{cat:?}");
    kubectl.ok(&["delete", "ns", "physical-watch", "--wait=false"])?;
    Ok(())
}

/// Sends CONNECT. Returns the status line and the body.
fn connect(proxy: u16, target: &str) -> anyhow::Result<(String, String)> {
    let mut socket = TcpStream::connect(("127.0.0.1", proxy))?;
    socket.set_read_timeout(Some(Duration::from_secs(30)))?;
    write!(socket, "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nConnection: close\r\n\r\n")?;
    let mut response = String::new();
    socket.read_to_string(&mut response)?;
    let (head, body) = response.split_once("\r\n\r\n").context("no end of head")?;
    Ok((head.lines().next().unwrap_or_default().to_owned(), body.to_owned()))
}

fn refusals_say_why(host: &HostCluster) -> anyhow::Result<()> {
    let dead = paths::free_port();
    let away = paths::free_port();
    let site = Site::start(
        &[
            &format!("{{name: dead, agents: [edge], mode: physical, apiServer: \"127.0.0.1:{dead}\"}}"),
            &format!("{{name: away, agents: [nobody], mode: physical, apiServer: \"127.0.0.1:{away}\"}}"),
            "{name: slice, agents: [edge], clientCA: {certificate: clusters/slice/client-ca.crt}}",
        ],
        &["slice"],
    )?;
    let mut agent =
        site.agent("edge", &format!("physicalClusters: [{{name: dead, apiServer: \"127.0.0.1:{dead}\"}}]"))?;
    agent.printed("tunnel established")?;
    let expect = [
        (format!("127.0.0.1:{dead}"), "502", "the connection was refused"),
        (format!("127.0.0.1:{away}"), "503", "no agent"),
        ("away.atoll.internal:6443".into(), "503", "no agent"),
        ("nowhere.atoll.internal:443".into(), "404", "not a cluster"),
        ("slice.atoll.internal:6443".into(), "403", "port 443"),
        ("example.com:443".into(), "403", "neither the address nor the name of a cluster"),
        ("127.0.0.1:22".into(), "403", "neither the address nor the name of a cluster"),
    ];
    for (target, status, why) in expect {
        let (line, body) = connect(site.ports.proxy, &target)?;
        ensure!(line.contains(status) && line.contains(why), "{target}: {line}");
        ensure!(body.contains(why) && body.lines().count() == 1, "{target}: {body:?}");
    }
    // kubectl also prints the reason.
    for (port, why) in [(dead, "the agent of cluster dead could not reach"), (away, "no agent")] {
        let server = format!("--server=https://127.0.0.1:{port}");
        let text = site.physical(host.kubectl().kubeconfig())?.fails(&[&server, "get", "--raw", "/version"])?;
        ensure!(text.contains("Unable to connect to the server: ") && text.contains(why), "{text}");
    }
    Ok(())
}

fn names_require_their_certificate(host: &HostCluster) -> anyhow::Result<()> {
    let address = &host.api_servers()?[0];
    let entry = format!("{{name: branch-7, agents: [branch-7, spare], mode: physical, apiServer: \"{address}\"}}");
    let site = Site::start(&[&entry], &[])?;
    let mut first = site.agent("branch-7", &branch(address))?;
    first.printed("tunnel established")?;
    // The configuration allows it, but the name is in use.
    site.agent("spare", &branch(address))?.printed("(Conflict)")?;
    // The configuration does not allow it for this identity.
    site.agent("stranger", &branch(address))?.printed("(NotGranted)")?;
    // A certificate of another CA.
    let other = site.file("other");
    let other = other.to_str().context("the path is not UTF-8")?;
    site::atoll(&["certs", "init", other])?;
    site::atoll(&["certs", "agent", "branch-7", "--dir", other])?;
    for end in ["crt", "key"] {
        std::fs::copy(site.file(&format!("other/agents/branch-7.{end}")), site.file(&format!("agents/forged.{end}")))?;
    }
    site.agent("forged", &branch(address))?
        .printed("the proxy-server does not accept the certificate of this process")?;
    // A replica with the same identity is accepted.
    site.agent_as("branch-7", "replica", &branch(address))?.printed("tunnel established")?;
    ensure!(site.physical(host.kubectl().kubeconfig())?.ok(&["get", "ns"])?.contains("kube-system"));
    Ok(())
}

/// Writes to each connection until the peer stops reading, at most 64 MiB.
fn firehose() -> anyhow::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || {
        for socket in listener.incoming().take(200) {
            let Ok(mut socket) = socket else { return };
            std::thread::spawn(move || {
                let block = vec![b'x'; 64 * 1024];
                for _ in 0..1024 {
                    if socket.write_all(&block).is_err() {
                        return;
                    }
                }
            });
        }
    });
    Ok(port)
}

fn a_stalled_reader_blocks_nobody(host: &HostCluster) -> anyhow::Result<()> {
    let address = &host.api_servers()?[0];
    let hose = firehose()?;
    let site = Site::start(
        &[
            &format!("{{name: branch-7, agents: [branch-7], mode: physical, apiServer: \"{address}\"}}"),
            &format!("{{name: hose, agents: [branch-7], mode: physical, apiServer: \"127.0.0.1:{hose}\"}}"),
        ],
        &[],
    )?;
    let body = format!(
        "physicalClusters: [{{name: branch-7, apiServer: \"{address}\"}}, {{name: hose, apiServer: \"127.0.0.1:{hose}\"}}]"
    );
    let mut agent = site.agent("branch-7", &body)?;
    agent.printed("tunnel established")?;
    let kubectl = site.physical(host.kubectl().kubeconfig())?;
    kubectl.ok(&["get", "ns"])?;

    let mut stalled = Vec::new();
    for _ in 0..100 {
        let mut socket = TcpStream::connect(("127.0.0.1", site.ports.proxy))?;
        write!(socket, "CONNECT 127.0.0.1:{hose} HTTP/1.1\r\nHost: 127.0.0.1:{hose}\r\n\r\n")?;
        let mut line = [0; 12];
        socket.read_exact(&mut line)?;
        ensure!(&line == b"HTTP/1.1 200", "{}", String::from_utf8_lossy(&line));
        stalled.push(socket);
    }
    // If a shared window were full, these requests would get no responses.
    for _ in 0..5 {
        ensure!(kubectl.ok(&["get", "ns"])?.contains("kube-system"));
    }
    drop(stalled);
    Ok(())
}

fn both_programs_reconnect(host: &HostCluster) -> anyhow::Result<()> {
    let (mut site, mut agent) = site_with_branch(host)?;
    let kubectl = site.physical(host.kubectl().kubeconfig())?;
    let works = |what: &str| {
        let began = SystemTime::now();
        eventually(Duration::from_secs(5), || {
            let output = kubectl.run(&["get", "ns", "--request-timeout=2s"])?;
            ensure!(output.code == 0, "{}", output.stderr);
            Ok(())
        })
        .with_context(|| format!("after {what} ({:?})", began.elapsed()))
    };
    works("the start")?;
    agent.kill()?;
    let address = &host.api_servers()?[0];
    agent = site.agent("branch-7", &branch(address))?;
    works("the agent was killed")?;
    site.server.kill()?;
    site.restart_server()?;
    works("the proxy-server was killed")?;
    drop(agent);
    Ok(())
}

fn sigterm_drains(host: &HostCluster) -> anyhow::Result<()> {
    let (mut site, mut agent) = site_with_branch(host)?;
    let kubectl = site.physical(host.kubectl().kubeconfig())?;
    kubectl.ok(&["get", "ns"])?;
    for process in [&mut agent, &mut site.server] {
        let status = process.terminate()?;
        if !status.success() {
            bail!("the process ended with {status}; its log:\n{}", process.log());
        }
    }
    Ok(())
}
