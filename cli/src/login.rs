//! `atoll login`: logs a user in at an OIDC issuer, as a credential plugin of kubectl.
//!
//! [`session`] is what is kept between two runs, [`provider`] the issuer, [`device`] and [`browser`] the two ways to log
//! in, and [`exec_credential`] the protocol of plugins. kubectl reads standard output, so people read standard error.

mod browser;
mod device;
mod exec_credential;
mod provider;
mod session;

use std::io::Write;
use std::path::PathBuf;
use std::time::SystemTime;

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use oidc::HttpsUrl;
use ops::tls::ServerCa;

use exec_credential::Plugin;
use provider::{Provider, TokenError};
use session::{Cache, Session};

/// Log in at an OIDC issuer, and print an ID token for kubectl.
///
/// The command is a credential plugin of kubectl and client-go (client.authentication.k8s.io). `atoll kubeconfig --oidc`
/// writes a kubeconfig that runs it. It prints an ExecCredential with an ID token. The token comes from a cache in kubectl's
/// cache directory, which only its owner can read. If the token has expired, the command renews it with the refresh token.
/// If there is none, or the issuer does not accept it any more, the user logs in again.
///
/// On a machine with a browser, the command opens the login page of the issuer, which sends the result to a port of
/// 127.0.0.1 (RFC 8252). Without a browser, it prints a URL and a code, which the user enters on any other device (RFC 8628).
/// Register the command at the issuer as a public or native client, with the redirect URI http://127.0.0.1/callback on any
/// port, and with the device authorization grant.
///
/// Exits with 0, or with 1 if the user is not logged in.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    # Write a kubeconfig that runs this command\n  \
    atoll kubeconfig ke-beijing --server-config proxy-server.yaml --oidc -o oidc.kubeconfig\n\n  \
    # Log in with a code on another device\n  \
    atoll login --issuer-url https://login.example.com --client-id atoll --grant-type device-code\n\n  \
    # Log in again as another user\n  \
    atoll login --issuer-url https://login.example.com --client-id atoll --force")]
pub(crate) struct Args {
    /// The URL of the issuer, as in the proxy-server's configuration.
    #[arg(long, value_name = "URL")]
    issuer_url: String,

    /// The ID of the client at the issuer. It must be one of the audiences in the proxy-server's configuration.
    #[arg(long, value_name = "ID")]
    client_id: String,

    /// The secret of the client, for issuers that have no public clients.
    #[arg(long, value_name = "SECRET", env = "ATOLL_OIDC_CLIENT_SECRET", hide_env_values = true)]
    client_secret: Option<String>,

    /// A scope to request besides `openid`. Can be given several times. The default are those of email, groups and
    /// offline_access that the issuer supports.
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,

    /// A file with the CA certificates of the issuer. The default are those of the system.
    #[arg(long, value_name = "FILE", conflicts_with = "certificate_authority_data")]
    certificate_authority: Option<PathBuf>,

    /// The CA certificates of the issuer, PEM in base64.
    #[arg(long, value_name = "BASE64")]
    certificate_authority_data: Option<String>,

    /// How the user logs in.
    #[arg(long, value_name = "TYPE", default_value = "auto")]
    grant_type: GrantType,

    /// The directory of the cache. The default is `~/.kube/cache`, which kubectl also uses.
    #[arg(long, value_name = "DIR", env = "KUBECACHEDIR")]
    cache_dir: Option<PathBuf>,

    /// Log in again, even if there is a valid token.
    #[arg(long)]
    force: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum GrantType {
    /// With the browser of this machine, if there is one, otherwise with a code
    Auto,
    /// With the browser of this machine
    AuthorizationCode,
    /// With a code that the user enters on another device
    DeviceCode,
}

/// Logs in and prints the credential.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let plugin = Plugin::of_environment()?;
    let issuer = HttpsUrl::issuer(&args.issuer_url).context("--issuer-url")?;
    // Held until the end: kubectl runs several plugins at once, and a refresh token is often valid only once.
    let directory = args.cache_dir.clone().unwrap_or_else(session::default_directory);
    let cache = Cache::lock(&directory, &[issuer.as_str(), &args.client_id, &args.scopes.join(" ")])?;
    let cached = if args.force { None } else { cache.read() };
    let session = match cached {
        Some(session) if session.is_valid(SystemTime::now()) => session,
        cached => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let session = runtime.context("cannot start a runtime")?.block_on(renew(args, issuer, cached))?;
            cache.write(&session)?;
            session
        }
    };
    plugin.print(&session, out)
}

/// A new session, from the previous one if possible.
async fn renew(args: &Args, issuer: HttpsUrl, cached: Option<Session>) -> anyhow::Result<Session> {
    let authorities = authorities(args)?;
    let secret = args.client_secret.as_deref();
    let provider = Provider::discover(authorities, issuer, &args.client_id, secret, &args.scopes).await?;
    let mut prompt = std::io::stderr();
    if let Some(refresh_token) = cached.as_ref().and_then(Session::refresh_token) {
        match provider.refresh(refresh_token).await {
            Ok(session) => return Ok(session),
            Err(TokenError::Refused(refused)) => writeln!(prompt, "The session has ended ({refused}).")?,
            Err(TokenError::NoIdToken) => {}
            Err(error) => return Err(error).context("cannot renew the ID token"),
        }
    }
    let has_browser = provider.has_login_page() && browser::is_there();
    match args.grant_type {
        GrantType::Auto if has_browser => browser::log_in(&provider, &mut prompt).await,
        GrantType::AuthorizationCode => browser::log_in(&provider, &mut prompt).await,
        GrantType::Auto | GrantType::DeviceCode => device::log_in(&provider, &mut prompt).await,
    }
}

fn authorities(args: &Args) -> anyhow::Result<ServerCa> {
    match (&args.certificate_authority, &args.certificate_authority_data) {
        (Some(path), _) => {
            let pem = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
            ServerCa::from_pem(&pem).with_context(|| path.display().to_string())
        }
        (None, Some(data)) => {
            let Ok(pem) = STANDARD.decode(data) else { bail!("--certificate-authority-data is not base64") };
            ServerCa::from_pem(&pem).context("--certificate-authority-data")
        }
        (None, None) => ServerCa::of_system().context("the CA certificates of the system; set --certificate-authority"),
    }
}
