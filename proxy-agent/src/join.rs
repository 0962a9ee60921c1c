//! The first certificate of this agent, for a join token.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use dial::Egress;
use dial::enrol::{EnrolError, Enrolled, join};
use ops::backoff::Backoff;
use ops::files::{Existing, Secrecy, write};
use protocol::Authority;
use protocol::enrolment::JoinToken;
use tokio::time::sleep;
use tracing::{info, warn};

use crate::config::{Identity, ProxyAgentConfiguration};

/// The pauses between attempts. The network of a new site may not be up yet.
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30));

/// Gets a certificate, unless this agent has one. Repeats attempts until a proxy-server answers. `token` is the token of the command
/// line; without it, the configuration names a file.
pub async fn ensure_identity(
    config: &ProxyAgentConfiguration,
    token: Option<&str>,
    egress: &Egress,
) -> anyhow::Result<()> {
    let files = &config.identity;
    if files.certificate.exists() {
        return Ok(());
    }
    let token = token_of(config, token)?;
    let mut backoff = BACKOFF;
    loop {
        for server in &config.servers {
            match join(&token, server, egress).await {
                Ok(enrolled) => return install(files, &enrolled, server),
                // Only the operator can help.
                Err(
                    error @ (EnrolError::Refused(_)
                    | EnrolError::NoEnrolment(_)
                    | EnrolError::OtherCa(_)
                    | EnrolError::Key(_)),
                ) => {
                    return Err(error).context("cannot join");
                }
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    warn!(%server, error, "cannot join yet; trying again");
                }
            }
        }
        if config.servers.is_empty() {
            bail!("cannot join: `servers` is empty");
        }
        sleep(backoff.fail_with_full_jitter()).await;
    }
}

fn token_of(config: &ProxyAgentConfiguration, token: Option<&str>) -> anyhow::Result<JoinToken> {
    if let Some(token) = token {
        return token.trim().parse().context("--join");
    }
    let path = config.join.as_ref().and_then(|join| join.token_file.as_ref());
    let certificate = config.identity.certificate.display();
    let path = path.with_context(|| format!("{certificate} does not exist; set join.tokenFile or --join to get it"))?;
    let text = std::fs::read_to_string(path.as_path()).with_context(|| format!("cannot read {}", path.display()))?;
    text.trim().parse().with_context(|| format!("{}", path.display()))
}

fn install(files: &Identity, enrolled: &Enrolled, server: &Authority) -> anyhow::Result<()> {
    put(&files.server_ca, enrolled.issued.server_ca.as_bytes(), Secrecy::Public)?;
    write_pair(files, enrolled)?;
    info!(agent = %enrolled.issued.agent, %server, certificate = %files.certificate.display(), "joined");
    Ok(())
}

/// Writes the key, and then the certificate. A process that reads both in between keeps its previous ones, because they do not
/// belong together.
pub(crate) fn write_pair(files: &Identity, enrolled: &Enrolled) -> anyhow::Result<()> {
    put(&files.key, enrolled.key.expose().as_bytes(), Secrecy::Secret)?;
    put(&files.certificate, enrolled.issued.certificate.as_bytes(), Secrecy::Public)
}

fn put(path: &Path, bytes: &[u8], secrecy: Secrecy) -> anyhow::Result<()> {
    write(path, bytes, secrecy, Existing::Replace).with_context(|| format!("cannot write {}", path.display()))
}
