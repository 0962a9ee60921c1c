//! A connection for requests, with HTTP/1.1 or HTTP/2.

use bytes::Bytes;
use http::{Request, Response, header};
use http_body::Body;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use ops::drain::Tasks;

use crate::target::{DialError, Target, Version};

/// An open connection. HTTP/1.1 carries one request at a time.
pub(crate) enum Connection<B> {
    Http1(http1::SendRequest<B>),
    Http2(http2::SendRequest<B>),
}

/// The windows of a stream and of a connection, in bytes. They are so large that the client never limits the
/// throughput.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 64 << 20;
const FRAME: u32 = 64 << 10;

// === impl Connection ===

impl<B> Connection<B>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    /// Connects. A task of `tasks` drives the connection until all handles are dropped.
    pub(crate) async fn open(target: &Target, tasks: &Tasks) -> Result<Self, DialError> {
        let io = TokioIo::new(target.dial().await?);
        match target.version {
            Version::Http1 => {
                let (handle, connection) = http1::handshake(io).await.map_err(DialError::Http)?;
                // The request that fails reports the error.
                tasks.spawn("http1", async move { drop(connection.await) });
                Ok(Self::Http1(handle))
            }
            Version::Http2 => {
                let (handle, connection) = http2::Builder::new(TokioExecutor::new())
                    .timer(TokioTimer::new())
                    .initial_stream_window_size(STREAM_WINDOW)
                    .initial_connection_window_size(CONNECTION_WINDOW)
                    .max_frame_size(FRAME)
                    .handshake(io)
                    .await
                    .map_err(DialError::Http)?;
                tasks.spawn("http2", async move { drop(connection.await) });
                Ok(Self::Http2(handle))
            }
        }
    }

    /// Sends a request, and waits for the head of the response.
    pub(crate) async fn send(&mut self, request: Request<B>) -> hyper::Result<Response<Incoming>> {
        match self {
            Self::Http1(handle) => {
                handle.ready().await?;
                handle.send_request(request).await
            }
            Self::Http2(handle) => handle.send_request(request).await,
        }
    }

    /// Whether the connection is open.
    pub(crate) fn is_open(&self) -> bool {
        match self {
            Self::Http1(handle) => !handle.is_closed(),
            Self::Http2(handle) => !handle.is_closed(),
        }
    }

    /// Another handle of the same connection. `None` for HTTP/1.1, which cannot be shared.
    pub(crate) fn share(&self) -> Option<Self> {
        match self {
            Self::Http1(_) => None,
            Self::Http2(handle) => Some(Self::Http2(handle.clone())),
        }
    }

    /// This many handles of the same connection, or one for HTTP/1.1.
    pub(crate) fn handles(self, number: u32) -> Vec<Self> {
        let mut all: Vec<Self> = (1..number).filter_map(|_| self.share()).collect();
        all.push(self);
        all
    }
}

/// A request with the headers of the target, and with `Host` in HTTP/1.1.
pub(crate) fn request<B>(target: &Target, method: http::Method, uri: http::Uri, body: B) -> Request<B> {
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    request.headers_mut().clone_from(&target.headers);
    if target.version == Version::Http1
        && let Ok(host) = target.authority().parse()
    {
        request.headers_mut().insert(header::HOST, host);
    }
    request
}
