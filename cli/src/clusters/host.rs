//! The host cluster.

use std::path::PathBuf;

use anyhow::Context as _;
use host_client::Host;
use host_client::api::Api;
use ops::config::Located;
use ops::drain::Tasks;
use ops::files::Reloader;
use proxy_agent::config;

#[derive(Debug, clap::Args)]
pub(super) struct HostArgs {
    /// A kubeconfig of the host cluster. Its user must be an administrator of the host.
    #[arg(long, value_name = "FILE")]
    host_kubeconfig: PathBuf,
}

// === impl HostArgs ===

impl HostArgs {
    pub(super) fn open(&self) -> anyhow::Result<Api> {
        let kubeconfig = Some(Located::from(self.host_kubeconfig.clone()));
        let host = config::Host { kubeconfig, ..config::Host::default() };
        let host = Host::open(&host, &Reloader::new(Reloader::DEFAULT_PERIOD), Tasks::new());
        Ok(Api::new(host.with_context(|| format!("--host-kubeconfig {}", self.host_kubeconfig.display()))?))
    }
}
