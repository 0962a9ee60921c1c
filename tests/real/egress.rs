//! How an agent gets out of its site: through an HTTP proxy, or with IPv6.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, ensure};
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::process::Process;
use atoll_tests::{Credentials, Curl, HostCluster, Nodes, Route, Site, eventually, paths, site};
use libtest_mimic::Trial;

use crate::case;

pub(crate) fn trials(host: Option<&Arc<HostCluster>>) -> Vec<Trial> {
    vec![
        case("egress::an_http_proxy_is_used", host, an_http_proxy_is_used),
        case("egress::ipv6_is_used", host, ipv6_is_used),
    ]
}

const AGENT: &str = "site-e";

/// The HTTP proxy of a site: tinyproxy, which accepts CONNECT only with a password, and only to one port.
struct Proxy {
    process: Process,
    port: u16,
}

/// An agent behind an HTTP proxy that demands authentication. Its client uses exec, so that a long-lived stream crosses the proxy too.
fn an_http_proxy_is_used(host: &HostCluster) -> anyhow::Result<()> {
    const CLUSTER: &str = "egress";
    let site = Site::start(&[&site::entry(CLUSTER, AGENT)], &[CLUSTER])?;
    let proxy = Proxy::start(&site)?;
    let servers = [format!("localhost:{}", site.ports.agents)];
    let body = body(host, CLUSTER);

    // Without the password, the agent says what is wrong.
    let url = format!("http://127.0.0.1:{}", proxy.port);
    let refused = site.agent_in(&[("HTTPS_PROXY", &url)], &servers, AGENT, "egress-refused", &body);
    refused?.printed("407")?;

    let url = format!("http://site:sesame@127.0.0.1:{}", proxy.port);
    let mut agent = site.agent_in(&[("HTTPS_PROXY", &url)], &servers, AGENT, "egress-proxy", &body)?;
    agent.printed("the virtual cluster is provisioned")?;
    ensure!(!agent.log().contains("sesame"), "the password is in the log");
    let admin = site.administrator(CLUSTER)?;
    eventually(CONDITION_TIMEOUT, || admin.ok(&["get", "nodes", "-o=name"]))?;
    ensure!(proxy.connects(), "{}", proxy.process.log());
    agent.terminate()?;

    // NO_PROXY with the address range of the proxy-server.
    let before = proxy.process.log().len();
    let variables = [("HTTPS_PROXY", url.as_str()), ("NO_PROXY", "10.0.0.0/8,127.0.0.0/8,::1/128")];
    let servers = [format!("127.0.0.1:{}", site.ports.agents)];
    let mut agent = site.agent_in(&variables, &servers, AGENT, "egress-direct", &body)?;
    agent.printed("tunnel established")?;
    ensure!(!proxy.process.log()[before..].contains("CONNECT"), "{}", proxy.process.log());
    Ok(())
}

/// The proxy-server listens with IPv6. An agent dials an address, and a name that also has an IPv4 address.
fn ipv6_is_used(host: &HostCluster) -> anyhow::Result<()> {
    const CLUSTER: &str = "egress-six";
    let mut site = Site::start(&[&site::entry(CLUSTER, AGENT)], &[CLUSTER])?;
    let config = site.file("server.yaml");
    let text = std::fs::read_to_string(&config)?;
    let text = ["agents", "endpoint"].iter().fold(text, |text, listener| {
        let before = format!("{listener}: 127.0.0.1:");
        let (start, end) = text.split_once(&before).unwrap_or((&text, ""));
        let port: String = end.chars().take_while(char::is_ascii_digit).collect();
        format!("{start}{listener}: \"[::]:{port}\"{}", &end[port.len()..])
    });
    std::fs::write(&config, text)?;
    site.server.terminate()?;
    site.restart_server()?;
    let admin = site.administrator(CLUSTER)?;
    let Credentials { authority, certificate, key } = Credentials::of(&admin)?;
    for (file, server) in [("egress-v6", "[::1]"), ("egress-dual", "localhost")] {
        let servers = [format!("\"{server}:{}\"", site.ports.agents)];
        let mut agent = site.agent_of(&servers, AGENT, file, &body(host, CLUSTER))?;
        agent.printed("tunnel established")?;
        agent.printed("the virtual cluster is provisioned")?;
        let curl = Curl::directly(&format!("[::1]:{}", site.ports.endpoint), &authority);
        let curl = curl.elsewhere(&format!("/clusters/{CLUSTER}")).with_certificate(&certificate, &key);
        eventually(CONDITION_TIMEOUT, || {
            let response = curl.get("/api/v1/nodes")?;
            ensure!(response.code == 200, "{response:?}");
            Ok(())
        })?;
        // The same listener accepts IPv4.
        let curl = Curl::new(Route::Path, CLUSTER, site.ports, &authority).with_certificate(&certificate, &key);
        ensure!(curl.get("/api/v1/nodes")?.code == 200, "by IPv4");
        agent.terminate()?;
    }
    Ok(())
}

fn body(host: &HostCluster, cluster: &str) -> String {
    format!(
        "host: {{kubeconfig: {}}}\nvirtualClusters: [{}]",
        host.agent_kubeconfig().display(),
        Nodes::Location("beijing").entry(cluster)
    )
}

// === impl Proxy ===

impl Proxy {
    fn start(site: &Site) -> anyhow::Result<Self> {
        let (port, config) = (paths::free_port(), site.file("tinyproxy.conf"));
        let text = format!(
            "Port {port}\nListen 127.0.0.1\nTimeout 600\nMaxClients 20\nLogLevel Connect\n\
             BasicAuth site sesame\nConnectPort {}\n",
            site.ports.agents
        );
        std::fs::write(&config, text)?;
        let config = config.to_str().context("not UTF-8")?;
        let program = Path::new("tinyproxy");
        let process = Process::start("tinyproxy", program, &["-d", "-c", config], site.file("tinyproxy.log"))?;
        eventually(CONDITION_TIMEOUT, || {
            std::net::TcpStream::connect(("127.0.0.1", port))?;
            Ok(())
        })?;
        Ok(Self { process, port })
    }

    /// Whether the agent's connections pass through it.
    fn connects(&self) -> bool {
        self.process.log().contains("CONNECT localhost:")
    }
}
