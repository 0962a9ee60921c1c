//! A TCP load balancer, like the one in front of the API servers of a host.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;

/// Listens on loopback until the process ends, and forwards each new connection to the next server that accepts it.
#[derive(Debug)]
pub struct Balancer {
    address: SocketAddr,
    forwarded: Arc<AtomicUsize>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

/// A server that gets connections.
#[derive(Debug)]
struct Server {
    address: String,
    /// The address of its probes, if it has some.
    probes: Option<String>,
}

// === impl Balancer ===

impl Balancer {
    /// Starts a load balancer for these servers, each as `host:port`.
    pub fn start(servers: Vec<String>) -> anyhow::Result<Self> {
        Self::start_for(servers.into_iter().map(|address| Server { address, probes: None }).collect())
    }

    /// The same for servers that get no new connections while their `/readyz` fails. Each has an address, and that of its probes.
    pub fn start_checked(servers: Vec<(String, String)>) -> anyhow::Result<Self> {
        let server = |(address, probes)| Server { address, probes: Some(probes) };
        Self::start_for(servers.into_iter().map(server).collect())
    }

    fn start_for(servers: Vec<Server>) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("no port for a balancer")?;
        let address = listener.local_addr()?;
        let forwarded = Arc::new(AtomicUsize::new(0));
        let open = Arc::new(Mutex::new(Vec::new()));
        let (counter, connections) = (Arc::clone(&forwarded), Arc::clone(&open));
        std::thread::spawn(move || {
            for (client, first) in listener.incoming().flatten().zip((0..servers.len()).cycle()) {
                counter.fetch_add(1, Ordering::Relaxed);
                let (behind, next) = servers.split_at(first);
                // If no server accepts the connection, close that of the client.
                if let Some(server) = next.iter().chain(behind).find_map(Server::connect) {
                    let _ = relay(&client, &server);
                    connections.lock().unwrap_or_else(PoisonError::into_inner).extend([client, server]);
                }
            }
        });
        Ok(Self { address, forwarded, open })
    }

    /// Its `host:port`.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Breaks all connections, without the end of what they carry. Returns how many there were.
    pub fn cut(&self) -> usize {
        let open = std::mem::take(&mut *self.open.lock().unwrap_or_else(PoisonError::into_inner));
        for side in &open {
            // It may have ended by itself.
            let _ = side.shutdown(Shutdown::Both);
        }
        open.len() / 2
    }

    /// The number of connections that it has forwarded.
    pub fn forwarded(&self) -> usize {
        self.forwarded.load(Ordering::Relaxed)
    }
}

// === impl Server ===

impl Server {
    fn connect(&self) -> Option<TcpStream> {
        let is_ready = self.probes.as_ref().is_none_or(|probes| is_ready(probes).unwrap_or(false));
        if is_ready { TcpStream::connect(&self.address).ok() } else { None }
    }
}

fn is_ready(probes: &str) -> io::Result<bool> {
    let mut connection = TcpStream::connect(probes)?;
    connection.write_all(b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")?;
    let mut response = String::new();
    connection.read_to_string(&mut response)?;
    Ok(response.starts_with("HTTP/1.1 200 "))
}

/// Copies both directions until their end, each in a separate thread.
fn relay(client: &TcpStream, server: &TcpStream) -> io::Result<()> {
    for (from, to) in [(client, server), (server, client)] {
        let (mut from, mut to) = (from.try_clone()?, to.try_clone()?);
        to.set_nodelay(true)?;
        std::thread::spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Write);
        });
    }
    Ok(())
}
