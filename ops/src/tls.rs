//! Builds all rustls configurations.
//!
//! The cryptography provider is always passed explicitly ([`provider`]). The process-wide default of rustls is never
//! used, so a dependency that installs another one changes nothing. What is *not* here: sockets, handshakes and
//! routing, and signing certificates ([`crate::pki`]).
//!
//! Reading order: [`server_config`] and [`client_config`]; [`EndpointTls`] (for clients of a cluster) with
//! [`MintedCertificates`]; [`ClientCa`] and [`PeerIdentity`] (who a client is); [`agent_listener_config`];
//! [`ReadAhead`] (below all of them).

mod accept_any;
mod client;
mod client_ca;
mod endpoint;
mod minted;
mod peer;
mod read_ahead;
mod server;
mod verified;

use std::sync::{Arc, LazyLock};

use rustls::SupportedCipherSuite;
use rustls::crypto::{CryptoProvider, aws_lc_rs};

pub use client::{Identity, IdentityError, ServerCa, client_config, unverified_client_config};
pub use client_ca::{CaError, ClientCa, ClientCertificateError};
pub use endpoint::EndpointTls;
pub use minted::{MintedCertificates, SERVER_LIFETIME};
pub use peer::{PeerIdentity, UnreadableIdentity};
pub use read_ahead::ReadAhead;
pub use server::{ClientAuth, TlsVersions, agent_listener_config, server_config};

/// The ALPN name of HTTP/1.1 (RFC 7301 section 6).
pub const ALPN_HTTP1: &[u8] = b"http/1.1";
/// The ALPN name of HTTP/2 over TLS (RFC 9113 section 3.2).
pub const ALPN_H2: &[u8] = b"h2";

/// AES-128 with SHA-256. It has fewer rounds than AES-256, and processors have instructions for its digest, unlike for
/// SHA-384. Go's clients and servers prefer it, too (`cipherSuitesPreferenceOrder` in crypto/tls).
const PREFERRED: [SupportedCipherSuite; 3] = [
    aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256,
    aws_lc_rs::cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    aws_lc_rs::cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
];

/// The cryptography of every configuration: aws-lc-rs.
///
/// The order of the cipher suites is the preference of our clients: agents that connect to the proxy-server and to
/// their host. Our servers follow the order of the client, which may lack the instructions for AES.
pub fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| {
        let mut provider = aws_lc_rs::default_provider();
        provider.cipher_suites.sort_by_key(|suite| !PREFERRED.contains(suite));
        Arc::new(provider)
    });
    Arc::clone(&PROVIDER)
}

#[cfg(test)]
mod handshake;
