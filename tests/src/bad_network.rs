//! A TCP relay that behaves like a bad network: with a long round trip, few bytes per second, broken, or dead without a message.
//!
//! The crate `link-emulator` also loses packets, but it needs network namespaces.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
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
pub struct BadNetwork {
    address: SocketAddr,
    state: Arc<State>,
}

/// The network.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quality {
    /// The time that each byte needs in one direction.
    pub delay: Duration,
    /// The number of bytes per second in one direction. `None`: any number.
    pub rate: Option<u32>,
}

/// What all connections share.
#[derive(Debug, Default)]
struct State {
    quality: Mutex<Quality>,
    /// The number of bytes that clients have sent.
    sent: AtomicU64,
    /// The number of connections so far.
    connections: AtomicUsize,
    /// Connections with smaller numbers carry no more bytes.
    dead: AtomicUsize,
    /// The sockets of connections that have not been cut.
    sockets: Mutex<Vec<TcpStream>>,
}

/// One direction of a connection.
#[derive(Clone)]
struct Direction {
    state: Arc<State>,
    /// The number of the connection.
    number: usize,
    is_from_client: bool,
}

// === impl BadNetwork ===

impl BadNetwork {
    /// Starts a relay to this server, `host:port`.
    pub fn start(server: String, quality: Quality) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("no port for a relay")?;
        let address = listener.local_addr()?;
        let state = Arc::new(State { quality: Mutex::new(quality), ..State::default() });
        let shared = Arc::clone(&state);
        spawn(move || {
            for client in listener.incoming().flatten() {
                // If the server does not accept the connection, close that of the client.
                if let Ok(server) = TcpStream::connect(&server) {
                    let _ = shared.relay(&client, &server);
                }
            }
        });
        Ok(Self { address, state })
    }

    /// Its `host:port`.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// The number of bytes that clients have sent.
    pub fn sent(&self) -> u64 {
        self.state.sent.load(Ordering::Relaxed)
    }

    /// The network becomes better or worse.
    pub fn set(&self, quality: Quality) {
        *self.state.quality.lock().unwrap_or_else(PoisonError::into_inner) = quality;
    }

    /// All connections carry no more bytes, and nobody is told. New ones work.
    pub fn lose(&self) {
        self.state.dead.store(self.state.connections.load(Ordering::Relaxed), Ordering::Relaxed);
        self.state.take_sockets();
    }

    /// All connections break, and both ends are told. New ones work.
    pub fn cut(&self) {
        for socket in self.state.take_sockets() {
            // It may have ended by itself.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

// === impl State ===

impl State {
    fn relay(self: &Arc<Self>, client: &TcpStream, server: &TcpStream) -> io::Result<()> {
        let number = self.connections.fetch_add(1, Ordering::Relaxed);
        self.sockets().extend([client.try_clone()?, server.try_clone()?]);
        let direction = |is_from_client| Direction { state: Arc::clone(self), number, is_from_client };
        direction(true).relay(client, server)?;
        direction(false).relay(server, client)
    }

    fn sockets(&self) -> std::sync::MutexGuard<'_, Vec<TcpStream>> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_sockets(&self) -> Vec<TcpStream> {
        std::mem::take(&mut *self.sockets())
    }

    fn quality(&self) -> Quality {
        *self.quality.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Direction ===

impl Direction {
    /// Copies until the end.
    fn relay(self, from: &TcpStream, to: &TcpStream) -> io::Result<()> {
        let (from, to) = (from.try_clone()?, to.try_clone()?);
        to.set_nodelay(true)?;
        let (pieces, arriving) = sync_channel(PIECES);
        let reading = self.clone();
        spawn(move || reading.read(from, &pieces));
        spawn(move || self.write(to, &arriving));
        Ok(())
    }

    fn read(&self, mut from: TcpStream, pieces: &SyncSender<(Instant, Vec<u8>)>) {
        let mut buffer = [0; PIECE];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            let due = Instant::now() + self.state.quality().delay;
            if pieces.send((due, buffer[..length].to_vec())).is_err() {
                return;
            }
        }
    }

    fn write(&self, mut to: TcpStream, pieces: &Receiver<(Instant, Vec<u8>)>) {
        while let Ok((due, piece)) = pieces.recv() {
            let length = u32::try_from(piece.len()).unwrap_or(u32::MAX);
            let rate = self.state.quality().rate;
            let transmission = rate.map_or(Duration::ZERO, |rate| Duration::from_secs(1) * length / rate);
            pause(due.saturating_duration_since(Instant::now()).max(transmission));
            if self.is_dead() {
                continue;
            }
            if self.is_from_client {
                self.state.sent.fetch_add(u64::from(length), Ordering::Relaxed);
            }
            if to.write_all(&piece).is_err() {
                break;
            }
        }
        if !self.is_dead() {
            let _ = to.shutdown(Shutdown::Write);
        }
    }

    fn is_dead(&self) -> bool {
        self.number < self.state.dead.load(Ordering::Relaxed)
    }
}
