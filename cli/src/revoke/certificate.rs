//! `atoll revoke certificate`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ops::date::Moment;
use ops::pki::CertificateFacts;
use proxy_server::config::{Credential, Revocation};

use super::list_args::ListArgs;
use crate::kubeconfig::existing;

/// Revoke a single certificate.
///
/// Other certificates of the same agent or user stay valid.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    # Revoke the certificate in a kubeconfig\n  \
    atoll revoke certificate jane.kubeconfig --server-config proxy-server.yaml\n\n  \
    # Revoke a certificate that the audit log of the host names\n  \
    atoll revoke certificate X509SHA256=0a1b... --server-config proxy-server.yaml")]
pub(super) struct Args {
    /// A file with the certificate in PEM, a kubeconfig that contains it, or the digest of the certificate: X509SHA256= and 64
    /// hexadecimal digits, as in audit logs of Kubernetes (`authentication.kubernetes.io/credential-id`).
    #[arg(value_name = "FILE|DIGEST")]
    certificate: String,

    #[command(flatten)]
    list: ListArgs,
}

/// The beginning of a certificate in PEM.
const PEM: &str = "-----BEGIN CERTIFICATE-----";

pub(super) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let (credential, meaning) = match args.certificate.parse::<Credential>() {
        Ok(credential) => {
            let meaning = format!("the certificate {credential}");
            (credential, meaning)
        }
        Err(_) => of_file(&PathBuf::from(&args.certificate))?,
    };
    let revocation =
        Revocation { credential: Some(credential), reason: args.list.reason.clone(), ..Revocation::default() };
    args.list.open()?.add(revocation, &meaning, out)
}

/// The certificate in a file, and what it is.
fn of_file(path: &Path) -> anyhow::Result<(Credential, String)> {
    let content = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let pem = if String::from_utf8_lossy(&content).contains(PEM) { content } else { of_kubeconfig(path)? };
    let found = CertificateFacts::read(&pem).with_context(|| path.display().to_string())?;
    let [leaf, ..] = &found[..] else { bail!("{} contains no certificate", path.display()) };
    if leaf.is_authority {
        bail!("{} is the certificate of a CA; to revoke all certificates of a CA, replace the CA", path.display());
    }
    let until = Moment::from(leaf.not_after);
    let meaning =
        format!("the certificate of {} in {}, which is valid until {until}", leaf.common_name, path.display());
    Ok((leaf.credential.parse()?, meaning))
}

/// The client certificate of the current context.
fn of_kubeconfig(path: &Path) -> anyhow::Result<Vec<u8>> {
    let document = existing::flattened(path)?;
    let Some(data) = document.user.get("client-certificate-data").and_then(|data| data.as_str()) else {
        bail!("the current user of {} has no client certificate", path.display())
    };
    STANDARD.decode(data).with_context(|| format!("{}: client-certificate-data is not base64", path.display()))
}
