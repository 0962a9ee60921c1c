//! A relay on loopback that counts what it carries.

use std::net::Ipv4Addr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use anyhow::Context as _;
use ops::drain::Tasks;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

/// A port that leads to another port of loopback.
pub(super) struct Relay {
    pub(super) port: u16,
    bytes: Arc<AtomicU64>,
}

/// A connection that counts the bytes that it receives.
struct Counted {
    stream: TcpStream,
    bytes: Arc<AtomicU64>,
}

// === impl Relay ===

impl Relay {
    /// A relay to `port`, until `tasks` end.
    pub(super) async fn start(port: u16, tasks: &Tasks) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("loopback has no free port")?;
        let relay = Self { port: listener.local_addr()?.port(), bytes: Arc::default() };
        let (bytes, of_connections) = (Arc::clone(&relay.bytes), tasks.clone());
        tasks.spawn("relay", async move {
            // It ends with the process.
            while let Ok((client, _)) = listener.accept().await {
                let bytes = Arc::clone(&bytes);
                of_connections.spawn("relayed", async move { drop(carry(client, port, bytes).await) });
            }
        });
        Ok(relay)
    }

    /// The bytes so far, of all connections and in both directions.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// Carries a connection until both directions have ended.
async fn carry(client: TcpStream, port: u16, bytes: Arc<AtomicU64>) -> std::io::Result<()> {
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let counted = |stream| Counted { stream, bytes: Arc::clone(&bytes) };
    tokio::io::copy_bidirectional(&mut counted(client), &mut counted(server)).await.map(drop)
}

// === impl Counted ===

impl AsyncRead for Counted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        let received = u64::try_from(buf.filled().len().saturating_sub(before)).unwrap_or(u64::MAX);
        self.bytes.fetch_add(received, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn both_directions_count() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let tasks = Tasks::new();
        let relay = Relay::start(server.local_addr().unwrap().port(), &tasks).await.unwrap();
        let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, relay.port)).await.unwrap();
        let (mut accepted, _) = server.accept().await.unwrap();
        client.write_all(b"four").await.unwrap();
        client.shutdown().await.unwrap();
        let mut received = Vec::new();
        accepted.read_to_end(&mut received).await.unwrap();
        assert_eq!(received, b"four");
        accepted.write_all(b"seventeen").await.unwrap();
        drop(accepted);
        client.read_to_end(&mut received).await.unwrap();
        assert_eq!((received.as_slice(), relay.bytes()), (&b"fourseventeen"[..], 13));
        tasks.drain(Duration::ZERO, std::future::pending::<()>()).await;
    }
}
