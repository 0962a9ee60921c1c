//! A TCP relay that behaves like a bad network: with a long round trip, few bytes per second, or dead without a message.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::spawn;
use std::time::Duration;

use anyhow::Context;
use tokio::time::Instant;

use crate::pause;

/// How many pieces are on their way in each direction.
const PIECES: usize = 64;

/// The length of a piece, in bytes.
const PIECE: usize = 4 * 1024;

/// A relay to one server. It listens on loopback until the process ends.
#[derive(Debug)]
pub struct SlowLink {
    address: SocketAddr,
    sent: Arc<AtomicU64>,
    dead: Arc<AtomicUsize>,
    connections: Arc<AtomicUsize>,
}

/// The network.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quality {
    /// The time that each byte needs in one direction.
    pub delay: Duration,
    /// The number of bytes per second in one direction. `None`: any number.
    pub rate: Option<u32>,
}

/// One direction of a connection.
struct Direction {
    quality: Quality,
    /// The number of the connection.
    number: usize,
    /// Connections with smaller numbers are dead.
    dead: Arc<AtomicUsize>,
    sent: Arc<AtomicU64>,
}

// === impl SlowLink ===

impl SlowLink {
    /// Starts a relay to this server, `host:port`. Each byte needs this time in one direction.
    pub fn start(server: String, delay: Duration) -> anyhow::Result<Self> {
        Self::with(server, Quality { delay, rate: None })
    }

    /// Starts a relay to this server.
    pub fn with(server: String, quality: Quality) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("no port for a relay")?;
        let address = listener.local_addr()?;
        let link = Self { address, sent: Arc::default(), dead: Arc::default(), connections: Arc::default() };
        let (sent, dead, connections) = (Arc::clone(&link.sent), Arc::clone(&link.dead), Arc::clone(&link.connections));
        spawn(move || {
            for client in listener.incoming().flatten() {
                let number = connections.fetch_add(1, Ordering::Relaxed);
                let direction = |sent: &Arc<AtomicU64>| Direction {
                    quality,
                    number,
                    dead: Arc::clone(&dead),
                    sent: Arc::clone(sent),
                };
                // If the server does not accept the connection, close that of the client.
                if let Ok(server) = TcpStream::connect(&server) {
                    let _ = direction(&sent).relay(&client, &server);
                    let _ = direction(&Arc::default()).relay(&server, &client);
                }
            }
        });
        Ok(link)
    }

    /// All connections carry no more bytes, and nobody is told. New ones work.
    pub fn lose(&self) {
        self.dead.store(self.connections.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Its `host:port`.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// The number of bytes that the client has sent.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

// === impl Direction ===

impl Direction {
    /// Copies until the end.
    fn relay(self, from: &TcpStream, to: &TcpStream) -> io::Result<()> {
        let (from, to) = (from.try_clone()?, to.try_clone()?);
        to.set_nodelay(true)?;
        let (pieces, arriving) = sync_channel(PIECES);
        let delay = self.quality.delay;
        spawn(move || read(from, &pieces, delay));
        spawn(move || self.write(to, &arriving));
        Ok(())
    }

    fn write(self, mut to: TcpStream, pieces: &Receiver<(Instant, Vec<u8>)>) {
        while let Ok((due, piece)) = pieces.recv() {
            let length = u32::try_from(piece.len()).unwrap_or(u32::MAX);
            let transmission = self.quality.rate.map_or(Duration::ZERO, |rate| Duration::from_secs(1) * length / rate);
            pause(due.saturating_duration_since(Instant::now()).max(transmission));
            if self.number < self.dead.load(Ordering::Relaxed) {
                continue;
            }
            self.sent.fetch_add(u64::from(length), Ordering::Relaxed);
            if to.write_all(&piece).is_err() {
                break;
            }
        }
        if self.number >= self.dead.load(Ordering::Relaxed) {
            let _ = to.shutdown(Shutdown::Write);
        }
    }
}

fn read(mut from: TcpStream, pieces: &SyncSender<(Instant, Vec<u8>)>, delay: Duration) {
    let mut buffer = [0; PIECE];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if pieces.send((Instant::now() + delay, buffer[..length].to_vec())).is_err() {
            return;
        }
    }
}
