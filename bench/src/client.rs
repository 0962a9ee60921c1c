//! A connection that takes requests, over either version of HTTP.

use bytes::Bytes;
use http::{Request, Response, header};
use http_body::Body;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use ops::drain::Tasks;

use crate::target::{Failed, Target, Version};

/// An open connection. HTTP/1.1 carries one request at a time.
pub(crate) enum Connection<B> {
    Http1(http1::SendRequest<B>),
    Http2(http2::SendRequest<B>),
}

/// What one stream and what the connection may have unread: enough that the loopback is never waited for.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 64 << 20;
const FRAME: u32 = 64 << 10;

// === impl Connection ===

impl<B> Connection<B>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    /// Connects. `tasks` carry the connection to its end, which is when nobody holds it.
    pub(crate) async fn open(target: &Target, tasks: &Tasks) -> Result<Self, Failed> {
        let io = TokioIo::new(target.dial().await?);
        match target.version {
            Version::Http1 => {
                let (handle, connection) = http1::handshake(io).await.map_err(Failed::Http)?;
                // Its error is also that of the request that it hits.
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
                    .map_err(Failed::Http)?;
                tasks.spawn("http2", async move { drop(connection.await) });
                Ok(Self::Http2(handle))
            }
        }
    }

    /// Sends a request, and waits for the head of the answer.
    pub(crate) async fn send(&mut self, request: Request<B>) -> hyper::Result<Response<Incoming>> {
        match self {
            Self::Http1(handle) => {
                handle.ready().await?;
                handle.send_request(request).await
            }
            Self::Http2(handle) => handle.send_request(request).await,
        }
    }

    /// Whether it can still be used.
    pub(crate) fn is_open(&self) -> bool {
        match self {
            Self::Http1(handle) => !handle.is_closed(),
            Self::Http2(handle) => !handle.is_closed(),
        }
    }

    /// The same connection for somebody else; HTTP/1.1 cannot be shared.
    pub(crate) fn share(&self) -> Option<Self> {
        match self {
            Self::Http1(_) => None,
            Self::Http2(handle) => Some(Self::Http2(handle.clone())),
        }
    }

    /// The same connection for several; one of HTTP/1.1 is for one.
    pub(crate) fn several(self, number: u32) -> Vec<Self> {
        let mut all: Vec<Self> = (1..number).filter_map(|_| self.share()).collect();
        all.push(self);
        all
    }
}

/// A request to the target with its headers; `Host` too where HTTP wants it.
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
