//! Responses of a script.

use std::future::poll_fn;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::time::sleep;

use crate::http1;

/// A response.
#[derive(Clone, Debug)]
pub struct Reply {
    head: Response<()>,
    chunks: Vec<Bytes>,
    end: End,
    start: Start,
}

/// When the host responds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// At once.
    Now,
    /// After this time, whether the client still waits or not.
    After(Duration),
    /// Never: it waits until the client abandons the request.
    Never,
}

/// What follows the last chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The body is complete.
    Complete,
    /// Nothing, until the client resets the stream: a watch.
    Never,
    /// The body ends before its announced length, as when a connection breaks.
    Broken,
}

// === impl Reply ===

impl Reply {
    /// A response without a body.
    pub fn empty(code: u16) -> Self {
        let mut head = Response::new(());
        *head.status_mut() = StatusCode::from_u16(code).unwrap();
        Self { head, chunks: Vec::new(), end: End::Complete, start: Start::Now }
    }

    /// No response, until the client abandons the request: see [`Script::until_unanswered`](crate::Script::until_unanswered).
    pub fn never() -> Self {
        Self { start: Start::Never, ..Self::empty(200) }
    }

    /// A response in JSON.
    pub fn json(code: u16, body: &Value) -> Self {
        Self::empty(code).with_header("content-type", "application/json").with_body(body.to_string())
    }

    /// A refusal, as an API server writes it.
    pub fn status(code: u16, reason: &str, message: &str) -> Self {
        let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "reason": reason, "message": message, "code": code});
        Self::json(code, &status)
    }

    /// A watch with these events that remains open.
    pub fn watch(events: &[(&str, Value)]) -> Self {
        let line = |(kind, object): &(&str, Value)| format!("{}\n", json!({"type": kind, "object": object}));
        let mut reply = Self::empty(200).with_header("content-type", "application/json");
        reply.chunks = events.iter().map(|event| line(event).into()).collect();
        reply.end = End::Never;
        reply
    }

    /// The host switches protocols (101), and then echoes what the client sends. Clients see this only if they request it
    /// over HTTP/1.1.
    pub fn switch(protocol: &str) -> Self {
        Self::empty(101).with_header("connection", "Upgrade").with_header("upgrade", protocol)
    }

    /// The same with one more header.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: &str) -> Self {
        self.head.headers_mut().append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        self
    }

    /// The same with another body.
    #[must_use]
    pub fn with_body(mut self, body: impl Into<Bytes>) -> Self {
        self.chunks = vec![body.into()];
        self
    }

    /// The same body in chunks of at most this length, in bytes.
    #[must_use]
    pub fn in_chunks(mut self, length: usize) -> Self {
        let whole = self.chunks.concat();
        self.chunks = whole.chunks(length).map(Bytes::copy_from_slice).collect();
        self
    }

    /// The same, but the body ends before its announced length, as when a connection breaks.
    #[must_use]
    pub fn broken(mut self) -> Self {
        self.end = End::Broken;
        self
    }

    /// The same after this time, whether the client still waits for it or not.
    #[must_use]
    pub fn after(mut self, time: Duration) -> Self {
        self.start = Start::After(time);
        self
    }

    /// Whether the client waits for a response that the host does not send.
    pub(crate) fn is_never(&self) -> bool {
        self.start == Start::Never
    }

    /// Sends it over HTTP/1.1, and then echoes what the client sends if it switches protocols.
    pub(crate) async fn send_http1(mut self, mut io: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
        match self.start {
            Start::Now => {}
            Start::After(time) => sleep(time).await,
            // Until the client closes the connection.
            Start::Never => return io.read_u8().await.map(drop),
        }
        if self.head.status() != StatusCode::SWITCHING_PROTOCOLS {
            self.announce_length();
        }
        http1::respond(io, &self.head, &self.chunks.concat()).await
    }

    fn announce_length(&mut self) {
        let length = self.chunks.iter().map(Bytes::len).sum::<usize>();
        let missing = usize::from(self.end == End::Broken);
        self.head.headers_mut().insert(header::CONTENT_LENGTH, (length + missing).into());
    }

    /// Sends it. Fails if the client has reset the stream.
    pub(crate) async fn send(mut self, mut respond: SendResponse<Bytes>) -> Result<(), h2::Error> {
        match self.start {
            Start::Now => {}
            Start::After(time) => sleep(time).await,
            Start::Never => return poll_fn(|cx| respond.poll_reset(cx)).await.map(drop),
        }
        let is_ended = self.end != End::Never;
        if is_ended {
            self.announce_length();
        }
        let Self { head, chunks, .. } = self;
        let is_empty = chunks.is_empty() && is_ended;
        let mut stream = respond.send_response(head, is_empty)?;
        let last = chunks.len();
        for (number, chunk) in chunks.into_iter().enumerate() {
            stream.send_data(chunk, is_ended && number + 1 == last)?;
        }
        if !is_ended {
            poll_fn(|cx| stream.poll_reset(cx)).await?;
        }
        Ok(())
    }
}
