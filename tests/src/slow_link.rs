//! A TCP relay that behaves like a network with a long round trip.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
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
}

// === impl SlowLink ===

impl SlowLink {
    /// Starts a relay to this server, `host:port`. Each byte needs this time in one direction.
    pub fn start(server: String, delay: Duration) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("no port for a relay")?;
        let link = Self { address: listener.local_addr()?, sent: Arc::default() };
        let sent = Arc::clone(&link.sent);
        spawn(move || {
            for client in listener.incoming().flatten() {
                // If the server does not accept the connection, close that of the client.
                if let Ok(server) = TcpStream::connect(&server) {
                    let _ = relay(&client, &server, delay, &sent);
                    let _ = relay(&server, &client, delay, &Arc::default());
                }
            }
        });
        Ok(link)
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

/// Copies one direction until its end.
fn relay(from: &TcpStream, to: &TcpStream, delay: Duration, count: &Arc<AtomicU64>) -> io::Result<()> {
    let (from, to, count) = (from.try_clone()?, to.try_clone()?, Arc::clone(count));
    to.set_nodelay(true)?;
    let (pieces, arriving) = sync_channel(PIECES);
    spawn(move || read(from, &pieces, delay));
    spawn(move || write(to, &arriving, &count));
    Ok(())
}

fn read(mut from: TcpStream, pieces: &SyncSender<(Instant, Vec<u8>)>, delay: Duration) {
    let mut buffer = [0; PIECE];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if pieces.send((Instant::now() + delay, buffer[..length].to_vec())).is_err() {
            return;
        }
    }
}

fn write(mut to: TcpStream, pieces: &Receiver<(Instant, Vec<u8>)>, count: &AtomicU64) {
    while let Ok((due, piece)) = pieces.recv() {
        pause(due.saturating_duration_since(Instant::now()));
        count.fetch_add(piece.len() as u64, Ordering::Relaxed);
        if to.write_all(&piece).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
