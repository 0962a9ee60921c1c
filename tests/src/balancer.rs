//! A TCP load balancer, like the one in front of the API servers of a host.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context;

/// Listens on loopback until the process ends, and forwards each new connection to the next server.
#[derive(Debug)]
pub struct Balancer {
    address: SocketAddr,
    forwarded: Arc<AtomicUsize>,
}

// === impl Balancer ===

impl Balancer {
    /// Starts a load balancer for these servers, each as `host:port`.
    pub fn start(servers: Vec<String>) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("no port for a balancer")?;
        let address = listener.local_addr()?;
        let forwarded = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&forwarded);
        std::thread::spawn(move || {
            for (client, server) in listener.incoming().flatten().zip(servers.iter().cycle()) {
                counter.fetch_add(1, Ordering::Relaxed);
                // If the server does not accept the connection, close that of the client.
                if let Ok(server) = TcpStream::connect(server) {
                    let _ = relay(&client, &server);
                }
            }
        });
        Ok(Self { address, forwarded })
    }

    /// Its `host:port`.
    pub fn address(&self) -> String {
        self.address.to_string()
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
