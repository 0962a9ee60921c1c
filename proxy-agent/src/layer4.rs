//! CONNECT streams: bytes to the API server of a physical cluster, or to a destination. The configuration of this agent
//! must allow both, whatever the proxy-server requests.

mod destination;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use ::tunnel::pipe::{Traffic, pipe};
use ::tunnel::{FairBudget, Inbound, Outbound, Owner, Share};
use bytes::Bytes;
use h2::server::SendResponse;
use http::{Request, Response, StatusCode};
use protocol::{Authority, ClusterName, NotConnected};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tracing::{info, warn};

pub use destination::{Destination, InvalidDestination};

/// The bytes that may wait for tunnels to send them, for all these streams. Each physical cluster may have half, and so may all
/// destinations together.
const SEND_QUEUE: usize = 32 * 1024 * 1024;

/// The timeout of a TCP connection inside the site.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The addresses that the agent may dial.
#[derive(Debug)]
pub struct Layer4 {
    /// The API server of each physical cluster, and what its streams are charged to.
    physical: HashMap<ClusterName, (Authority, Shares)>,
    /// The other destinations.
    destinations: Vec<Destination>,
    /// What the streams to them are charged to.
    shares: Shares,
}

/// What the memory of streams is charged to.
#[derive(Debug)]
struct Shares {
    /// For the bytes that the agent has not read.
    owner: Owner,
    /// For the bytes that wait for a tunnel.
    queue: Share,
}

// === impl Layer4 ===

impl Layer4 {
    /// The API server of each physical cluster, and the other destinations.
    pub fn new(
        physical: impl IntoIterator<Item = (ClusterName, Authority)>,
        destinations: impl IntoIterator<Item = Destination>,
    ) -> Self {
        let queue = FairBudget::new(SEND_QUEUE, SEND_QUEUE / 2);
        let shares = || Shares { owner: Owner::new(), queue: queue.share() };
        let physical = physical.into_iter().map(|(name, address)| (name, (address, shares()))).collect();
        Self { physical, destinations: destinations.into_iter().collect(), shares: shares() }
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
            Some((address, shares)) => forward(address, shares, request.into_body(), respond).await,
            None => refuse(respond, StatusCode::NOT_FOUND, NotConnected::NotServed),
        }
    }

    /// Serves a stream to the request's authority, if one of the configured destinations covers it.
    pub async fn destination(&self, request: Request<Inbound>, respond: SendResponse<Bytes>) -> Result<(), h2::Error> {
        let authority = request.uri().authority().and_then(|authority| authority.as_str().parse().ok());
        match authority {
            Some(authority) if self.destinations.iter().any(|allowed| allowed.covers(&authority)) => {
                forward(&authority, &self.shares, request.into_body(), respond).await
            }
            _ => refuse(respond, StatusCode::FORBIDDEN, NotConnected::NotAllowed),
        }
    }
}

async fn forward(
    address: &Authority,
    shares: &Shares,
    inbound: Inbound,
    mut respond: SendResponse<Bytes>,
) -> Result<(), h2::Error> {
    inbound.set_owner(shares.owner);
    let socket = match dial(address).await {
        Ok(socket) => socket,
        Err(error) => {
            warn!(%address, %error, "cannot reach the destination");
            return refuse(respond, StatusCode::BAD_GATEWAY, reason(&error));
        }
    };
    let outbound = Outbound::charged(respond.send_response(Response::new(()), false)?, shares.queue.clone());
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
