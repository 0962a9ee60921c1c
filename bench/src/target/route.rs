//! The route to a target: addresses, proxy and TLS.

use std::sync::{Arc, OnceLock};

use anyhow::Context as _;
use ops::files::Watched;
use ops::tls::{ALPN_H2, ALPN_HTTP1, Identity, ServerCa, TlsVersions, client_config};
use rustls::ClientConfig;
use rustls_pki_types::ServerName;

use super::address::{HostPort, Proxy};
use super::kubeconfig::Kubeconfig;

/// The version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Http1,
    Http2,
}

/// How to connect.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) server: HostPort,
    pub(super) proxy: Option<Proxy>,
    pub(super) tls: Option<Tls>,
    pub(super) allow_remote: bool,
}

/// The settings of TLS.
#[derive(Debug)]
pub(super) struct Tls {
    pub(super) name: ServerName<'static>,
    pub(super) config: Arc<ClientConfig>,
    /// Version, cipher suite and key exchange of the first handshake.
    pub(super) agreed: OnceLock<String>,
}

// === impl Tls ===

impl Tls {
    /// For a server of this name, unless the kubeconfig has another one.
    pub(super) fn new(given: &Kubeconfig, host: &str, version: Version) -> anyhow::Result<Self> {
        let ca = given.ca.as_deref().context("no CA to verify the server; set --ca")?;
        let ca = Watched::fixed(ServerCa::from_pem(ca).context("the CA")?);
        let identity = given.identity.as_ref().map(|(certificate, key)| Identity::from_pem(certificate, key));
        let identity = identity.transpose().context("the client certificate")?.map(Watched::fixed);
        let alpn = match version {
            Version::Http1 => ALPN_HTTP1,
            Version::Http2 => ALPN_H2,
        };
        let name = given.server_name.as_deref().unwrap_or(host).trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(name).context("the server's name")?;
        // Sessions are not resumed: each connection has a full handshake, like that of a new client.
        let config = Arc::new(client_config(ca, identity, &[alpn], TlsVersions::Tls12And13));
        Ok(Self { name, config, agreed: OnceLock::new() })
    }
}
