//! The first certificate of this agent, for a join token.

use std::fs;
use std::path::{Path, PathBuf};
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

/// Gets a certificate, unless this agent has one. Retries until a proxy-server issues or refuses it. `token` is the token of the command
/// line; without it, the configuration names a file.
pub async fn ensure_identity(
    config: &ProxyAgentConfiguration,
    token: Option<&str>,
    egress: &Egress,
) -> anyhow::Result<()> {
    let files = &config.identity;
    if files.certificate.exists() {
        return complete(files);
    }
    let token = token_of(config, token)?;
    let mut backoff = BACKOFF;
    loop {
        for server in &config.servers {
            match join(&token, server, egress).await {
                Ok(enrolled) => return install(files, &enrolled, server),
                // A retry cannot succeed: the operator must act.
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
    let text = fs::read_to_string(path.as_path()).with_context(|| format!("cannot read {}", path.display()))?;
    text.trim().parse().with_context(|| format!("{}", path.display()))
}

fn install(files: &Identity, enrolled: &Enrolled, server: &Authority) -> anyhow::Result<()> {
    put(&files.server_ca, enrolled.issued.server_ca.as_bytes(), Secrecy::Public)?;
    write_pair(files, enrolled)?;
    info!(agent = %enrolled.issued.agent, %server, certificate = %files.certificate.display(), "joined");
    Ok(())
}

/// Replaces the certificate and its key. If the process ends in between, [`complete`] does the rest at the next start. A process that
/// reads both files in between keeps its previous ones, because they do not belong together.
pub(crate) fn write_pair(files: &Identity, enrolled: &Enrolled) -> anyhow::Result<()> {
    let (certificate, key) = (enrolled.issued.certificate.as_bytes(), enrolled.key.expose().as_bytes());
    ops::tls::Identity::from_pem(certificate, key).context("the certificate that was issued does not fit the key")?;
    let next = next_key(files);
    put(&next, key, Secrecy::Secret)?;
    put(&files.certificate, certificate, Secrecy::Public)?;
    rename(&next, &files.key)
}

/// Puts the key into its place that an interrupted [`write_pair`] has left beside it.
fn complete(files: &Identity) -> anyhow::Result<()> {
    let next = next_key(files);
    let (Ok(certificate), Ok(key)) = (fs::read(files.certificate.as_path()), fs::read(&next)) else { return Ok(()) };
    if ops::tls::Identity::from_pem(&certificate, &key).is_ok() {
        rename(&next, &files.key)?;
        info!(key = %files.key.display(), "completed a renewal that was interrupted");
    }
    Ok(())
}

/// The file of a key before its certificate is written.
fn next_key(files: &Identity) -> PathBuf {
    let mut name = files.key.as_os_str().to_owned();
    name.push(".next");
    name.into()
}

fn rename(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::rename(from, to).with_context(|| format!("cannot rename {} to {}", from.display(), to.display()))
}

fn put(path: &Path, bytes: &[u8], secrecy: Secrecy) -> anyhow::Result<()> {
    write(path, bytes, secrecy, Existing::Replace).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use ops::pki::{Authority, PemPair};
    use protocol::enrolment::IssuedCertificate;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn enrolled(pair: &PemPair) -> Enrolled {
        let agent = "site-a".parse().unwrap();
        let issued = IssuedCertificate { agent, certificate: pair.certificate.clone(), server_ca: String::new() };
        Enrolled { issued, key: pair.key.clone() }
    }

    #[test]
    fn an_interrupted_renewal_is_completed() {
        let dir = tempfile::tempdir().unwrap();
        let place = |name: &str| dir.path().join(name).into();
        let files = Identity { certificate: place("agent.crt"), key: place("agent.key"), server_ca: place("ca.crt") };
        let is_whole = || {
            let [certificate, key] = [&files.certificate, &files.key].map(|file| fs::read(file.as_path()).unwrap());
            ops::tls::Identity::from_pem(&certificate, &key).is_ok()
        };
        let authority = Authority::create("agents", HOUR).unwrap();
        let [first, second] = [1, 2].map(|_| authority.issue_client("site-a", &[""; 0], HOUR).unwrap());
        write_pair(&files, &enrolled(&first)).unwrap();
        assert!(is_whole() && !next_key(&files).exists());
        // Another key is refused before anything is written.
        let wrong = PemPair { certificate: second.certificate.clone(), key: first.key };
        assert!(write_pair(&files, &enrolled(&wrong)).is_err() && is_whole());

        // The process ends before the certificate is written, and after that.
        put(&next_key(&files), second.key.expose().as_bytes(), Secrecy::Secret).unwrap();
        complete(&files).unwrap();
        assert!(is_whole() && next_key(&files).exists());
        put(&files.certificate, second.certificate.as_bytes(), Secrecy::Public).unwrap();
        assert!(!is_whole());
        complete(&files).unwrap();
        assert!(is_whole() && !next_key(&files).exists());
    }
}
