//! Server configurations.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, ResolvesServerCert, WebPkiClientVerifier};

use super::accept_any::AcceptAnyChain;
use super::client_ca::{ClientCa, ReloadableClientCa};
use crate::files::Watched;

/// The TLS versions a listener speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsVersions {
    /// TLS 1.3 only: both ends are ours.
    Tls13,
    /// TLS 1.2 and 1.3, as kube-apiserver (`--tls-min-version` defaults to 1.2).
    Tls12And13,
}

/// What a listener asks of its clients.
#[derive(Clone, Debug)]
pub enum ClientAuth {
    /// No certificate is asked for.
    None,
    /// A certificate is asked for. Whoever sends one must hold its private key; its chain is **not** checked in the
    /// handshake but afterwards, with [`ClientCa::verify`].
    ///
    /// This is what kube-apiserver does (`tls.RequestClientCert` in `k8s.io/apiserver/pkg/server/secure_serving.go`):
    /// a foreign certificate has to give a 401 Status that client-go understands, where a failed handshake would give
    /// an opaque TLS alert; and which authority applies is known only when the request says which cluster it is for.
    Requested,
    /// A certificate is asked for and the handshake fails unless it chains to this authority.
    Required(Watched<ClientCa>),
}

/// A server configuration. Sessions cannot be resumed: that is for the caller to switch on where it is safe, as
/// [`super::EndpointTls`] does. `alpn` in order of preference; a client that offers none gets none, which means HTTP/1.1.
pub fn server_config(
    resolver: Arc<dyn ResolvesServerCert>,
    client_auth: ClientAuth,
    alpn: &[&[u8]],
    versions: TlsVersions,
) -> ServerConfig {
    let provider = super::provider();
    let verifier: Arc<dyn ClientCertVerifier> = match client_auth {
        ClientAuth::None => WebPkiClientVerifier::no_client_auth(),
        ClientAuth::Requested => Arc::new(AcceptAnyChain::new(&provider)),
        ClientAuth::Required(ca) => Arc::new(ReloadableClientCa::new(ca, &provider)),
    };
    let versions: &[&rustls::SupportedProtocolVersion] = match versions {
        TlsVersions::Tls13 => &[&rustls::version::TLS13],
        TlsVersions::Tls12And13 => &[&rustls::version::TLS13, &rustls::version::TLS12],
    };
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .expect("aws-lc-rs has cipher suites for TLS 1.2 and 1.3")
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(resolver);
    config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config
}

/// The agents' listener: TLS 1.3, a certificate of the agent CA is required. No resumption, because rustls does not
/// look at the certificate again when a session is resumed, and an agent connects so rarely that it would gain nothing.
///
/// The agent's identity is then `ca.borrow().verify(peer_certificates, now)`.
pub fn agent_listener_config(
    resolver: Arc<dyn ResolvesServerCert>,
    agent_ca: Watched<ClientCa>,
    alpn: &[&[u8]],
) -> ServerConfig {
    server_config(resolver, ClientAuth::Required(agent_ca), alpn, TlsVersions::Tls13)
}

#[cfg(test)]
mod tests;
