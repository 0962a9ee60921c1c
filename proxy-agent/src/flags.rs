//! The flags of the binary `proxy-agent`: read by its `main`, and by `atoll man` and `atoll completions`.

use std::path::PathBuf;

use clap::Parser;
use ops::log;

/// The edge half of Atoll: dials the proxy-servers, so that nothing has to dial into the site, and serves what they ask
/// from the API server beside it.
///
/// Ends with 64 if the configuration is refused, with 1 if something else fails, with 2 if the flags make no sense, with 0
/// after SIGTERM or SIGINT. SIGTERM drains: tunnels are closed when their streams have ended, for at most as long as
/// `drain` says; a second signal ends at once. SIGHUP reads certificates, tokens and the list of virtual clusters again.
#[derive(Debug, Parser)]
#[command(name = "proxy-agent", version)]
#[command(after_help = "Examples:\n  \
    atoll check /etc/atoll/proxy-agent.yaml && proxy-agent --config /etc/atoll/proxy-agent.yaml\n  \
    HTTPS_PROXY=http://proxy.site:3128 proxy-agent --config proxy-agent.yaml\n\n\
    `atoll status --admin http://127.0.0.1:8094` shows how it is.")]
pub struct Flags {
    /// The configuration: a YAML file with a document of kind ProxyAgentConfiguration. Every key is described in
    /// configs/proxy-agent.yaml.
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,

    /// The form of log lines: `text` for people, `json` for machines.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub log_format: log::Format,

    /// What is logged, for example `info` or `info,proxy_agent=debug`. Overrides RUST_LOG. The default is `info`.
    #[arg(long, value_name = "FILTER")]
    pub log: Option<String>,

    /// The HTTP proxy through which proxy-servers are reached, as http://host:port. A user and a password
    /// stand before the host: user:password@host:port.
    #[arg(long, value_name = "URL", env = "HTTPS_PROXY", hide_env_values = true)]
    pub https_proxy: Option<String>,

    /// Hosts and domains, separated by commas, that are reached without it.
    #[arg(long, value_name = "HOSTS", env = "NO_PROXY")]
    pub no_proxy: Option<String>,
}
