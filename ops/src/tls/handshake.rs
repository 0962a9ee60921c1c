//! For tests: whole handshakes in memory.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ConnectionCommon, ServerConfig, ServerConnection};

use super::{Identity, ServerCa, TlsVersions, client_config};
use crate::files::Watched;
use crate::pki::Authority;

/// Long enough for any test.
pub(super) const DAY: Duration = Duration::from_secs(24 * 3600);

/// Connects, or returns the error of the server (otherwise of the client). The server has read everything that the
/// client sent, including its certificate, and the client has the tickets.
pub(super) fn handshake(
    client: &Arc<ClientConfig>,
    server: &Arc<ServerConfig>,
    name: &str,
) -> Result<(ClientConnection, ServerConnection), rustls::Error> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = ClientConnection::new(Arc::clone(client), name).unwrap();
    let mut server = ServerConnection::new(Arc::clone(server)).unwrap();
    let mut client_error = None;
    while client.wants_write() || server.wants_write() {
        let heard = carry(&mut client, &mut server);
        // If the client refuses, the server gets only an alert. The client knows the reason.
        heard.map_err(|alert| client_error.take().unwrap_or(alert))?;
        client_error = carry(&mut server, &mut client).err();
    }
    assert!(!client.is_handshaking() && !server.is_handshaking());
    Ok((client, server))
}

/// A client that trusts `ca`, with a certificate or without.
pub(super) fn client(ca: &Authority, identity: Option<Identity>, versions: TlsVersions) -> Arc<ClientConfig> {
    let server_ca = ServerCa::from_pem(ca.certificate_pem().as_bytes()).unwrap();
    Arc::new(client_config(Watched::fixed(server_ca), identity.map(Watched::fixed), &[], versions))
}

/// A client certificate.
pub(super) fn identity(ca: &Authority, common_name: &str, organizations: &[&str]) -> Identity {
    let pair = ca.issue_client(common_name, organizations, DAY).unwrap();
    Identity::from_pem(pair.certificate.as_bytes(), pair.key.expose().as_bytes()).unwrap()
}

fn carry<A, B>(from: &mut ConnectionCommon<A>, to: &mut ConnectionCommon<B>) -> Result<(), rustls::Error>
where
    A: rustls::SideData,
    B: rustls::SideData,
{
    let mut bytes = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut bytes).unwrap();
    }
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        to.read_tls(&mut rest).unwrap();
        to.process_new_packets()?;
    }
    Ok(())
}
