//! Requests that switch protocols: exec, attach and port-forward, over SPDY/3.1 or WebSocket.
//!
//! HTTP/2 has no `Upgrade` (RFC 9113 section 8.6), and kube-apiserver does not support extended CONNECT. So each such
//! request has a separate connection, which ends with it.

use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response, StatusCode};
use hyper::client::conn::http1;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use ops::drain::Tasks;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout;
use tracing::{Instrument, debug, debug_span};

use super::counters::Counted;
use super::dial::BoxIo;
use super::error::{ConnectError, ConnectReason, HostError, Stage, Unreachable};
use super::host_body::{Guards, HostBody};
use super::limits::{HANDSHAKE_TIMEOUT, MAX_HEADER_LIST};
use super::request_body::RequestBody;
use kubeconfig::Address;

/// The response to a request to switch protocols.
#[derive(Debug)]
pub enum Switched {
    /// The host has switched protocols (101).
    Upgraded {
        /// The head of its response.
        head: Response<()>,
        /// The bytes after it.
        stream: UpgradedStream,
    },
    /// Any other response.
    Refused(Response<HostBody>),
}

/// The bytes of a connection after an upgrade, in any protocol. Dropping it closes the connection.
pub struct UpgradedStream {
    io: TokioIo<Upgraded>,
    _counted: Counted,
}

/// Sends the request on a separate connection.
pub(super) async fn switch(
    io: BoxIo,
    address: &Address,
    request: Request<RequestBody>,
    counted: Counted,
    tasks: &Tasks,
) -> Result<Switched, HostError> {
    // Another process than the API server may have written the response, and it must fit into the tunnel.
    let mut builder = http1::Builder::new();
    builder.max_buf_size(MAX_HEADER_LIST as usize);
    let handshake = timeout(HANDSHAKE_TIMEOUT, builder.handshake(TokioIo::new(io))).await;
    let failed = |reason| HostError::from(Unreachable(vec![ConnectError { address: address.clone(), reason }]));
    let (mut sender, connection) = handshake
        .map_err(|_| failed(ConnectReason::Silent(Stage::Http)))?
        .map_err(|error| failed(ConnectReason::Http(error.to_string().into())))?;
    let span = debug_span!(parent: None, "host upgrade", %address);
    let connection = async move {
        if let Err(error) = connection.with_upgrades().await {
            debug!(%error, "ended");
        }
    };
    tasks.spawn("host upgrade", connection.instrument(span));
    let broken = |error: hyper::Error| HostError::Broken { address: address.clone(), source: error.into() };
    let mut response = sender.send_request(request).await.map_err(broken)?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        let held = Guards::new(counted, None, None);
        return Ok(Switched::Refused(response.map(|body| HostBody::http1(body, held))));
    }
    let upgraded = hyper::upgrade::on(&mut response).await.map_err(broken)?;
    let stream = UpgradedStream { io: TokioIo::new(upgraded), _counted: counted };
    Ok(Switched::Upgraded { head: response.map(drop), stream })
}

// === impl UpgradedStream ===

impl AsyncRead for UpgradedStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl AsyncWrite for UpgradedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

impl fmt::Debug for UpgradedStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpgradedStream").finish_non_exhaustive()
    }
}
