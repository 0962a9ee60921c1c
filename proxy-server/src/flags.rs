//! The flags of the binary `proxy-server`: read by its `main`, and by `atoll man` and `atoll completions`.

use std::path::PathBuf;

use clap::Parser;
use ops::log;

/// The cloud half of Atoll: gives each cluster an endpoint, and reaches the cluster through the tunnel that its agent
/// dialled.
///
/// Exits with 0 after SIGTERM or SIGINT, with 64 if the configuration or the log filter is invalid, with 2 if other
/// flags are invalid, and with 1 after any other failure. On SIGTERM, it closes its listeners and gives connections the
/// time of `drain` to end; after a second signal, it exits at once. On SIGHUP, it reloads certificates and the list of
/// clusters.
#[derive(Debug, Parser)]
#[command(name = "proxy-server", version)]
#[command(after_help = "Examples:\n  \
    atoll check /etc/atoll/proxy-server.yaml && proxy-server --config /etc/atoll/proxy-server.yaml\n  \
    proxy-server --config proxy-server.yaml --log-format json --log info,proxy_server=debug\n\n\
    `atoll status` shows its status.")]
pub struct Flags {
    /// The configuration: a YAML file with a document of kind ProxyServerConfiguration. configs/proxy-server.yaml
    /// explains every key.
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,

    /// The format of log lines: `text` for people, `json` for machines.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub log_format: log::Format,

    /// The log filter, for example `info` or `info,proxy_server=debug`. Overrides RUST_LOG. The default is `info`.
    #[arg(long, value_name = "FILTER")]
    pub log: Option<String>,
}
