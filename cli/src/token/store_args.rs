//! The flags that all commands share.

use std::path::PathBuf;

use anyhow::Context as _;
use ops::config;
use proxy_server::ProxyServerConfiguration;
use proxy_server::enrolment::tokens::Tokens;

/// The flags of all commands.
#[derive(Debug, clap::Args)]
pub(super) struct StoreArgs {
    /// The proxy-server's configuration. Its section `enrolment` names the directory of the tokens.
    #[arg(long, value_name = "FILE")]
    server_config: PathBuf,
}

// === impl StoreArgs ===

impl StoreArgs {
    /// The configuration, and the tokens.
    pub(super) fn open(&self) -> anyhow::Result<(ProxyServerConfiguration, Tokens)> {
        let config: ProxyServerConfiguration = config::load(&self.server_config)?;
        let enrolment = config.enrolment.as_ref().with_context(|| {
            format!(
                "{} has no section `enrolment`: add `enrolment: {{tokens: DIRECTORY}}` and `agentCA.key`, and restart the \
                 proxy-server",
                self.server_config.display()
            )
        })?;
        let tokens = Tokens::new(enrolment.tokens.to_path_buf());
        Ok((config, tokens))
    }
}
