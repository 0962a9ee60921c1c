//! From an address to an accepted registration.

use std::time::Duration;

use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use ops::tls::ReadAhead;
use protocol::{Acceptance, Authority};
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::{Dial, DialError, Target, register};

/// For all of it: name, TCP, TLS, registration. A few round trips of a bad line.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

impl Dial {
    pub(super) async fn establish(
        &self,
        server: &Authority,
        target: &Target,
    ) -> Result<(TokioIo<Upgraded>, Acceptance), DialError> {
        let socket = match target {
            Target::Address(address) => {
                let connected = TcpStream::connect(address).await;
                connected.map_err(|err| DialError::Connect(address.to_string(), err))?
            }
            Target::Named => self.egress.connect(server).await?,
        };
        // Requests are small and answered one by one.
        socket.set_nodelay(true).map_err(|err| DialError::Connect(server.to_string(), err))?;
        let name = ServerName::try_from(server.host().to_owned())
            .map_err(|err| DialError::Connect(server.to_string(), std::io::Error::other(err)))?;
        let connector = TlsConnector::from(std::sync::Arc::clone(&self.tls));
        let stream = connector.connect(name, ReadAhead::new(socket)).await.map_err(DialError::Tls)?;
        register::register(stream, server, &self.registration()).await
    }

    fn registration(&self) -> protocol::Registration {
        protocol::Registration {
            protocol: protocol::ProtocolVersion::CURRENT,
            agent: self.agent.clone(),
            instance: self.instance.to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            clusters: self.offers.borrow().to_vec(),
            capabilities: vec![protocol::offers::CAPABILITY.to_owned()],
        }
    }
}
