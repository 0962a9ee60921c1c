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

/// Whether a listener requests client certificates.
#[derive(Clone, Debug)]
pub enum ClientAuth {
    /// The listener requests no certificate.
    None,
    /// The listener requests a certificate. Whoever sends one must hold its private key. The chain is **not** verified
    /// in the handshake but afterwards, with [`ClientCa::verify`].
    ///
    /// This is what kube-apiserver does (`tls.RequestClientCert` in `k8s.io/apiserver/pkg/server/secure_serving.go`):
    /// a certificate of another authority must lead to a 401 Status that client-go understands, and not to an opaque
    /// TLS alert. Besides, the authority is known only when the request names its cluster.
    Requested,
    /// The listener requests a certificate, and the handshake fails unless it chains to this authority.
    Required(Watched<ClientCa>),
    /// The same, but a client may also send no certificate.
    Optional(Watched<ClientCa>),
}

/// A server configuration. Sessions cannot be resumed, unless the caller enables it where it is safe, as
/// [`super::EndpointTls`] does. `alpn` is in order of preference. A client that offers no protocol gets none, which
/// means HTTP/1.1.
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
        ClientAuth::Required(ca) => Arc::new(ReloadableClientCa::new(ca, &provider, true)),
        ClientAuth::Optional(ca) => Arc::new(ReloadableClientCa::new(ca, &provider, false)),
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

/// The agents' listener: TLS 1.3, a certificate of the agent CA is required, unless clients may enrol to get one. No resumption, because rustls does not
/// verify the certificate again when a session is resumed, and agents connect too rarely to gain from it.
///
/// The agent's identity is then `ca.borrow().verify(peer_certificates, now)`.
pub fn agent_listener_config(
    resolver: Arc<dyn ResolvesServerCert>,
    agent_ca: Watched<ClientCa>,
    may_enrol: bool,
    alpn: &[&[u8]],
) -> ServerConfig {
    let client_auth = if may_enrol { ClientAuth::Optional(agent_ca) } else { ClientAuth::Required(agent_ca) };
    server_config(resolver, client_auth, alpn, TlsVersions::Tls13)
}

#[cfg(test)]
mod tests;
