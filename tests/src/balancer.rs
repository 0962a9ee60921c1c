//! A TCP load balancer, like the one in front of the API servers of a host.

use std::io;
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

// === impl Balancer ===

impl Balancer {
    /// Starts a load balancer for these servers, each as `host:port`.
    pub fn start(servers: Vec<String>) -> anyhow::Result<Self> {
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
                if let Some(server) = next.iter().chain(behind).find_map(|server| TcpStream::connect(server).ok()) {
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
