//! The flags of the binary `proxy-server`: read by its `main`, and by `atoll man` and `atoll completions`.

use std::path::PathBuf;

use clap::Parser;
use ops::log;

/// The cloud half of Atoll: gives each cluster an endpoint and reaches it through the tunnel that its agent dialled.
///
/// Ends with 64 if the configuration is refused, with 1 if something else fails, with 2 if the flags make no sense, with 0
/// after SIGTERM or SIGINT. SIGTERM drains: listeners close, connections may end for as long as `drain` says; a second
/// signal ends at once. SIGHUP reads certificates and the list of clusters again.
#[derive(Debug, Parser)]
#[command(name = "proxy-server", version)]
#[command(after_help = "Examples:\n  \
    atoll check /etc/atoll/proxy-server.yaml && proxy-server --config /etc/atoll/proxy-server.yaml\n  \
    proxy-server --config proxy-server.yaml --log-format json --log info,proxy_server=debug\n\n\
    `atoll status` shows how it is.")]
pub struct Flags {
    /// The configuration: a YAML file with a document of kind ProxyServerConfiguration. Every key is described in
    /// configs/proxy-server.yaml.
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,

    /// The form of log lines: `text` for people, `json` for machines.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub log_format: log::Format,

    /// What is logged, for example `info` or `info,proxy_server=debug`. Overrides RUST_LOG. The default is `info`.
    #[arg(long, value_name = "FILTER")]
    pub log: Option<String>,
}
