//! CONNECT streams: bytes to the API server of a physical cluster, or to a destination. The configuration of this agent
//! must allow both, whatever the proxy-server requests.

mod destination;

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use ::tunnel::pipe::{Traffic, pipe};
use ::tunnel::{Inbound, Owner};
use bytes::Bytes;
use h2::server::SendResponse;
use http::{Request, Response, StatusCode};
use protocol::{Authority, ClusterName, NotConnected};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tracing::{info, warn};

pub use destination::{Destination, InvalidDestination};

/// The timeout of a TCP connection inside the site.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The addresses that the agent may dial.
#[derive(Debug)]
pub struct Layer4 {
    /// The API server of each physical cluster, and the owner of its streams.
    physical: HashMap<ClusterName, (Authority, Owner)>,
    /// The other destinations.
    destinations: Vec<Destination>,
    /// The owner of the streams to them.
    owner: Owner,
}

// === impl Layer4 ===

impl Layer4 {
    /// The API server of each physical cluster, and the other destinations.
    pub fn new(
        physical: impl IntoIterator<Item = (ClusterName, Authority)>,
        destinations: impl IntoIterator<Item = Destination>,
    ) -> Self {
        let physical = physical.into_iter().map(|(name, address)| (name, (address, Owner::new())));
        Self { physical: physical.collect(), destinations: destinations.into_iter().collect(), owner: Owner::new() }
    }

    /// Serves a stream to a physical cluster. The address comes from the configuration of this agent, not from the
    /// request.
    pub async fn physical(
        &self,
        cluster: &ClusterName,
        request: Request<Inbound>,
        respond: SendResponse<Bytes>,
    ) -> Result<(), h2::Error> {
        match self.physical.get(cluster) {
            Some((address, owner)) => {
                request.body().set_owner(*owner);
                forward(address, request.into_body(), respond).await
            }
            None => refuse(respond, StatusCode::NOT_FOUND, NotConnected::NotServed),
        }
    }

    /// Serves a stream to the request's authority, if one of the configured destinations covers it.
    pub async fn destination(&self, request: Request<Inbound>, respond: SendResponse<Bytes>) -> Result<(), h2::Error> {
        let authority = request.uri().authority().and_then(|authority| authority.as_str().parse().ok());
        match authority {
            Some(authority) if self.destinations.iter().any(|allowed| allowed.covers(&authority)) => {
                request.body().set_owner(self.owner);
                forward(&authority, request.into_body(), respond).await
            }
            _ => refuse(respond, StatusCode::FORBIDDEN, NotConnected::NotAllowed),
        }
    }
}

async fn forward(address: &Authority, inbound: Inbound, mut respond: SendResponse<Bytes>) -> Result<(), h2::Error> {
    let socket = match dial(address).await {
        Ok(socket) => socket,
        Err(error) => {
            warn!(%address, %error, "cannot reach the destination");
            return refuse(respond, StatusCode::BAD_GATEWAY, reason(&error));
        }
    };
    let outbound = respond.send_response(Response::new(()), false)?;
    let mut traffic = Traffic::default();
    let result = pipe(socket, inbound, outbound, &mut traffic).await;
    let Traffic { into_tunnel, from_tunnel } = traffic;
    match result {
        Ok(()) => info!(%address, into_tunnel, from_tunnel, "connection ended"),
        Err(err) => {
            info!(%address, into_tunnel, from_tunnel, error = &err as &dyn std::error::Error, "connection broke");
        }
    }
    Ok(())
}

async fn dial(address: &Authority) -> io::Result<TcpStream> {
    let connected = timeout(CONNECT_TIMEOUT, TcpStream::connect((address.host(), address.port())));
    let socket = connected.await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    socket.set_nodelay(true)?;
    Ok(socket)
}

/// The reason for the client. The text of the error is not sent, because it could contain addresses of the site.
fn reason(error: &io::Error) -> NotConnected {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => NotConnected::Refused,
        io::ErrorKind::TimedOut => NotConnected::TimedOut,
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => NotConnected::NoRoute,
        _ => NotConnected::Failed,
    }
}

fn refuse(mut respond: SendResponse<Bytes>, status: StatusCode, reason: NotConnected) -> Result<(), h2::Error> {
    let mut response = Response::new(());
    *response.status_mut() = status;
    reason.write(response.headers_mut());
    respond.send_response(response, true).map(drop)
}
