//! CONNECT streams: bytes to the API server of a physical cluster, or to a destination. The configuration of this agent
//! must allow both, whatever the proxy-server requests.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ::tunnel::pipe::{Traffic, pipe};
use ::tunnel::{FairBudget, Inbound, Outbound, Owner, Share};
use bytes::Bytes;
use h2::server::SendResponse;
use http::{Request, Response, StatusCode};
use protocol::{Authority, ClusterName, Destination, NotConnected};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tracing::{info, warn};

/// The bytes that may wait for tunnels to send them, for all these streams. Each cluster may have half.
const SEND_QUEUE: usize = 32 * 1024 * 1024;

/// The timeout of a TCP connection inside the site.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The same if there is another API server. The proxy-server waits long enough for several attempts.
const FAILOVER_TIMEOUT: Duration = Duration::from_secs(3);

/// The maximum number of clusters whose streams to destinations are charged separately.
const MAX_CHARGED: usize = 1_000;

/// The addresses that the agent may dial.
#[derive(Debug)]
pub struct Layer4 {
    /// The API servers of each physical cluster, and what its streams are charged to.
    physical: HashMap<ClusterName, (ApiServers, Shares)>,
    /// The other destinations.
    destinations: Vec<Destination>,
    /// What the streams of each cluster to them are charged to.
    charged: Mutex<HashMap<ClusterName, Shares>>,
    queue: FairBudget,
}

/// The API servers of a physical cluster. All of them serve the same objects, so a client need not know which one it reaches.
#[derive(Debug)]
struct ApiServers {
    addresses: Vec<Authority>,
    /// The one that accepted the last connection.
    last: AtomicUsize,
}

/// What the memory of streams is charged to.
#[derive(Clone, Debug)]
struct Shares {
    /// For the bytes that the agent has not read.
    owner: Owner,
    /// For the bytes that wait for a tunnel.
    queue: Share,
}

// === impl Layer4 ===

impl Layer4 {
    /// The API servers of each physical cluster, and the other destinations.
    pub fn new(
        physical: impl IntoIterator<Item = (ClusterName, Vec<Authority>)>,
        destinations: impl IntoIterator<Item = Destination>,
    ) -> Self {
        let queue = FairBudget::new(SEND_QUEUE, SEND_QUEUE / 2);
        let api_servers = |addresses| ApiServers { addresses, last: AtomicUsize::new(0) };
        let physical = physical
            .into_iter()
            .map(|(name, addresses)| (name, (api_servers(addresses), Shares::of(&queue))))
            .collect();
        Self { physical, destinations: destinations.into_iter().collect(), charged: Mutex::default(), queue }
    }

    /// Serves a stream to a physical cluster. The address comes from the configuration of this agent, not from the
    /// request.
    pub async fn physical(
        &self,
        cluster: &ClusterName,
        request: Request<Inbound>,
        mut respond: SendResponse<Bytes>,
    ) -> Result<(), h2::Error> {
        match self.physical.get(cluster) {
            Some((api_servers, shares)) => {
                let dialled = tokio::select! {
                    dialled = api_servers.dial() => dialled,
                    reset = poll_fn(|cx| respond.poll_reset(cx)) => return reset.map(drop),
                };
                forward(dialled, shares, request.into_body(), respond).await
            }
            None => refuse(respond, StatusCode::NOT_FOUND, NotConnected::NotServed),
        }
    }

    /// Serves a stream of a cluster to an address, if one of the configured destinations covers it.
    pub async fn destination(
        &self,
        cluster: &ClusterName,
        address: &Authority,
        request: Request<Inbound>,
        mut respond: SendResponse<Bytes>,
    ) -> Result<(), h2::Error> {
        if !self.destinations.iter().any(|allowed| allowed.covers(address)) {
            return refuse(respond, StatusCode::FORBIDDEN, NotConnected::NotAllowed);
        }
        let dialled = tokio::select! {
            dialled = dial(address, CONNECT_TIMEOUT) => dialled,
            reset = poll_fn(|cx| respond.poll_reset(cx)) => return reset.map(drop),
        };
        let shares = self.shares_of(cluster);
        forward(dialled.map(|socket| (socket, address)), &shares, request.into_body(), respond).await
    }

    /// A cluster keeps its shares. If a proxy-server names too many clusters, all start anew.
    fn shares_of(&self, cluster: &ClusterName) -> Shares {
        let mut charged = self.charged.lock().unwrap_or_else(PoisonError::into_inner);
        if charged.len() >= MAX_CHARGED && !charged.contains_key(cluster) {
            charged.clear();
        }
        charged.entry(cluster.clone()).or_insert_with(|| Shares::of(&self.queue)).clone()
    }
}

// === impl Shares ===

impl Shares {
    fn of(queue: &FairBudget) -> Self {
        Self { owner: Owner::new(), queue: queue.share() }
    }
}

// === impl ApiServers ===

impl ApiServers {
    /// Connects to the API server that accepted the last connection, or else to the next one that accepts one.
    async fn dial(&self) -> io::Result<(TcpStream, &Authority)> {
        let first = self.last.load(Ordering::Relaxed) % self.addresses.len();
        let (behind, next) = self.addresses.split_at(first);
        let timeout = if self.addresses.len() > 1 { FAILOVER_TIMEOUT } else { CONNECT_TIMEOUT };
        let mut failed = io::Error::from(io::ErrorKind::NotFound);
        for (number, address) in (first..).zip(next.iter().chain(behind)) {
            match dial(address, timeout).await {
                Ok(socket) => {
                    self.last.store(number % self.addresses.len(), Ordering::Relaxed);
                    return Ok((socket, address));
                }
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}

async fn forward(
    dialled: io::Result<(TcpStream, &Authority)>,
    shares: &Shares,
    inbound: Inbound,
    mut respond: SendResponse<Bytes>,
) -> Result<(), h2::Error> {
    inbound.set_owner(shares.owner);
    let (socket, address) = match dialled {
        Ok(dialled) => dialled,
        Err(error) => {
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

/// Connects to an address. Logs a failure, because the client does not learn the address.
async fn dial(address: &Authority, limit: Duration) -> io::Result<TcpStream> {
    let connected = timeout(limit, TcpStream::connect((address.host(), address.port()))).await;
    let connected = connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    let socket = connected.inspect_err(|error| warn!(%address, %error, "cannot connect to an address of the site"))?;
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
