//! A load balancer of connections, as hosts with several API servers have one in front of them.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context;

/// Listens on loopback until the process ends. Each new connection goes to the next server.
#[derive(Debug)]
pub struct Balancer {
    address: SocketAddr,
    taken: Arc<AtomicUsize>,
}

// === impl Balancer ===

impl Balancer {
    /// In front of these servers, each as `host:port`.
    pub fn start(servers: Vec<String>) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("no port for a balancer")?;
        let address = listener.local_addr()?;
        let taken = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&taken);
        std::thread::spawn(move || {
            for (client, server) in listener.incoming().flatten().zip(servers.iter().cycle()) {
                counter.fetch_add(1, Ordering::Relaxed);
                // A server that is away is a connection that ends.
                if let Ok(server) = TcpStream::connect(server) {
                    let _ = relay(&client, &server);
                }
            }
        });
        Ok(Self { address, taken })
    }

    /// `host:port` of itself.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// How many connections it has passed on, to all servers together.
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }
}

/// Copies both ways, each in a thread of its own, until its end.
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
