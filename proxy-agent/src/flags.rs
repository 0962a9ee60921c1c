//! The flags of the binary `proxy-agent`: read by its `main`, and by `atoll man` and `atoll completions`.

use std::path::PathBuf;

use clap::Parser;
use ops::log;
use protocol::Authority;

/// The edge half of Atoll: dials the proxy-servers, so that nothing has to dial into the site, and forwards their requests
/// to the API server beside it.
///
/// Exits with 0 after SIGTERM or SIGINT, with 64 if the configuration, the log filter or the address of a proxy is invalid,
/// with 2 if other flags are invalid, and with 1 after any other failure. On SIGTERM, it closes each tunnel when its streams have ended, at the latest after the time of
/// `drain`; after a second signal, it exits at once. On SIGHUP, it reloads certificates, tokens and the list of virtual
/// clusters.
#[derive(Debug, Parser)]
#[command(name = "proxy-agent", version)]
#[command(after_help = "Examples:\n  \
    atoll check /etc/atoll/proxy-agent.yaml && proxy-agent --config /etc/atoll/proxy-agent.yaml\n  \
    ATOLL_JOIN_TOKEN=TOKEN proxy-agent --config proxy-agent.yaml --server proxy.example.com:8091\n  \
    HTTPS_PROXY=http://proxy.site:3128 proxy-agent --config proxy-agent.yaml\n\n\
    `atoll status --admin http://127.0.0.1:8094` shows its status.")]
pub struct Flags {
    /// The configuration: a YAML file with a document of kind ProxyAgentConfiguration. configs/proxy-agent.yaml
    /// explains every key.
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,

    /// A join token of the proxy-server (`atoll token create`). While the agent has no certificate, it gets one for this token,
    /// and writes the files of `identity`. Afterwards, it renews the certificate. Overrides `join`. Every user of the machine can
    /// read the flags of its processes, so use the variable.
    #[arg(long, value_name = "TOKEN", env = "ATOLL_JOIN_TOKEN", hide_env_values = true)]
    pub join: Option<String>,

    /// The address of a proxy-server for agents: HOST:PORT. Can be given several times. Overrides `servers`.
    #[arg(long = "server", value_name = "HOST:PORT")]
    pub servers: Vec<Authority>,

    /// The format of log lines: `text` for people, `json` for machines.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub log_format: log::Format,

    /// The log filter, for example `info` or `info,proxy_agent=debug`. Overrides RUST_LOG. The default is `info`.
    #[arg(long, value_name = "FILTER")]
    pub log: Option<String>,

    /// The HTTP proxy for connections to proxy-servers, as http://HOST:PORT or http://USER:PASSWORD@HOST:PORT.
    #[arg(long, value_name = "URL", env = "HTTPS_PROXY", hide_env_values = true)]
    pub https_proxy: Option<String>,

    /// Hosts, domains, IP addresses and CIDR blocks, separated by commas, to which the agent connects without the proxy.
    #[arg(long, value_name = "HOSTS", env = "NO_PROXY")]
    pub no_proxy: Option<String>,
}
