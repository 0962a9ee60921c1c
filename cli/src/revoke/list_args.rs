//! The flags that all commands share.

use std::path::PathBuf;

use anyhow::Context as _;
use ops::config;
use proxy_server::ProxyServerConfiguration;

use crate::revocation_list::List;

/// The flags of all commands.
#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// The proxy-server's configuration. Its key `revocations` names the file.
    #[arg(long, value_name = "FILE", required_unless_present = "file")]
    server_config: Option<PathBuf>,

    /// The file itself. The command creates it if it does not exist.
    #[arg(long, value_name = "FILE", conflicts_with = "server_config")]
    file: Option<PathBuf>,

    /// Why, for the people who read the file.
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: Option<String>,
}

// === impl ListArgs ===

impl ListArgs {
    /// The list that the flags name.
    pub(super) fn open(&self) -> anyhow::Result<List> {
        let path = match (&self.file, &self.server_config) {
            (Some(file), _) => file.clone(),
            (None, Some(config)) => {
                let read: ProxyServerConfiguration = config::load(config)?;
                let path = read.revocations.with_context(|| {
                    format!(
                        "{} does not name a file for revocations; add `revocations: revocations.yaml`, create the file with \
                         --file, and restart the proxy-server",
                        config.display()
                    )
                })?;
                path.to_path_buf()
            }
            (None, None) => anyhow::bail!("set --server-config or --file"),
        };
        List::open(path)
    }
}
