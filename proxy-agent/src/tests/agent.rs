//! An agent in memory, and requests through its tunnel.

use std::sync::Arc;

use ::tunnel::Budget;
use bytes::{Bytes, BytesMut};
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use http::response::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, header};
use ops::drain::Tasks;
use ops::metrics::{Build, Registry};
use protocol::identity::Identity;
use protocol::settings::STREAM_WINDOW;
use protocol::stream::{CLUSTER, METHOD};
use request_metrics::{LastError, Names, RequestMetrics};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::exchange::{Exchange, Services};
use crate::layer4::Layer4;
use crate::serve::Streams;

/// The size of the pipe that is the tunnel, in bytes.
const PIPE: usize = 256 * 1024;

/// The bytes that the streams of all tunnels may leave unread: those of two full windows.
const UNREAD: usize = 2 * STREAM_WINDOW as usize;

/// An agent, and one of its tunnels.
#[derive(Clone)]
pub(super) struct Agent {
    tunnel: SendRequest<Bytes>,
    metrics: Registry,
    requests: Arc<RequestMetrics>,
    streams: Streams,
}

/// A request of a client.
#[derive(Clone, Debug)]
pub(super) struct ClientRequest {
    method: String,
    target: String,
    cluster: &'static str,
    user: Option<(String, Vec<String>)>,
    headers: HeaderMap,
    body: Content,
}

#[derive(Clone, Debug)]
enum Content {
    None,
    Whole(Bytes),
    /// The client sends nothing of it.
    Withheld,
}

/// The response to a client.
#[derive(Debug)]
pub(super) struct ClientResponse {
    pub(super) code: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// A request whose client waits for the head of the response.
pub(super) struct Waiting {
    response: ResponseFuture,
    /// The client sends nothing more of its body, not even the end.
    stream: SendStream<Bytes>,
}

/// A response whose body is not complete.
pub(super) struct Open {
    pub(super) code: u16,
    pub(super) headers: HeaderMap,
    /// What the client may still send.
    request: Option<SendStream<Bytes>>,
    stream: RecvStream,
    unread: BytesMut,
}

// === impl Agent ===

impl Agent {
    pub(super) async fn serve(services: Services) -> Self {
        let tasks = Tasks::new();
        let metrics = Registry::new(Build { component: "test", version: "0" });
        let requests = Arc::new(RequestMetrics::new(&metrics, Names::AGENT));
        let clusters = services.clusters.all();
        let names: Vec<_> = clusters.iter().map(|cluster| cluster.name.as_str().parse().unwrap()).collect();
        requests.exchange(names.iter());
        let unread = Budget::new(UNREAD);
        let streams = Streams {
            layer4: Arc::new(Layer4::new([], [])),
            exchange: Some(Exchange::new(services, Arc::clone(&requests))),
            offers: watch::Sender::new(Arc::from([])).subscribe(),
            unread: Arc::clone(&unread),
            compression: tunnel::Compression::Auto,
            drain: std::time::Duration::from_secs(2),
            tasks: tasks.clone(),
            main: Handle::current(),
        };
        tasks.spawn("unread", async move { unread.keep(|_| ()).await });
        Self { tunnel: connect(&streams).await, metrics, requests, streams }
    }

    /// The same agent with another tunnel.
    pub(super) async fn on_another_tunnel(&self) -> Self {
        Self { tunnel: connect(&self.streams).await, ..self.clone() }
    }

    /// The last errors of a cluster.
    pub(super) fn last_errors(&self, cluster: &str) -> Vec<LastError> {
        self.requests.last_errors(&cluster.parse().unwrap())
    }

    /// The lines of this metric.
    pub(super) fn metric(&self, name: &str) -> Vec<String> {
        let all = self.metrics.encode();
        all.lines().filter(|line| line.starts_with(name)).map(str::to_owned).collect()
    }

    /// Makes a request, and reads the whole response.
    pub(super) async fn send(&self, request: ClientRequest) -> ClientResponse {
        self.try_send(request).await.unwrap()
    }

    /// The same. Fails if the agent resets the stream.
    pub(super) async fn try_send(&self, request: ClientRequest) -> Result<ClientResponse, h2::Error> {
        ClientResponse::read(self.send_head(request).await?).await
    }

    /// Makes a request whose response does not end by itself.
    pub(super) async fn open(&self, request: ClientRequest) -> Open {
        let (head, stream) = self.send_head(request).await.unwrap().into_parts();
        Open::new(&head, stream, None)
    }

    /// Makes a request that switches protocols, as the proxy-server does (RFC 8441).
    pub(super) async fn upgrade(&self, request: ClientRequest, protocol: &'static str) -> Open {
        let Waiting { response, stream } = self.begin_upgrade(request, protocol).await;
        let (head, body) = response.await.unwrap().into_parts();
        Open::new(&head, body, Some(stream))
    }

    /// Makes such a request, and does not wait for the response.
    pub(super) async fn begin_upgrade(&self, request: ClientRequest, protocol: &'static str) -> Waiting {
        let mut tunnel = self.tunnel.clone().ready().await.unwrap();
        let (mut request, _) = request.into_request();
        let method = HeaderValue::from_str(request.method().as_str()).unwrap();
        request.headers_mut().insert(METHOD, method);
        *request.method_mut() = Method::CONNECT;
        request.extensions_mut().insert(h2::ext::Protocol::from_static(protocol));
        let (response, stream) = tunnel.send_request(request, false).unwrap();
        Waiting { response, stream }
    }

    /// Makes a request, and does not wait for the response.
    pub(super) async fn begin(&self, request: ClientRequest) -> Waiting {
        let mut tunnel = self.tunnel.clone().ready().await.unwrap();
        let (request, body) = request.into_request();
        let is_bodiless = matches!(body, Content::None);
        let (response, mut stream) = tunnel.send_request(request, is_bodiless).unwrap();
        if let Content::Whole(body) = body {
            stream.send_data(body, true).unwrap();
        }
        Waiting { response, stream }
    }

    async fn send_head(&self, request: ClientRequest) -> Result<http::Response<RecvStream>, h2::Error> {
        let Waiting { response, stream: _stream } = self.begin(request).await;
        response.await
    }
}

/// Opens a tunnel.
async fn connect(streams: &Streams) -> SendRequest<Bytes> {
    let (ours, theirs) = tokio::io::duplex(PIPE);
    let served = streams.clone();
    streams.tasks.spawn("agent", async move {
        let _ = served.serve(theirs, &dial::Stop::new(&CancellationToken::new()), watch::Sender::default()).await;
    });
    let (tunnel, connection) = ::tunnel::settings::client().handshake(ours).await.unwrap();
    streams.tasks.spawn("tunnel", async move {
        let _ = connection.await;
    });
    tunnel
}

// === impl Waiting ===

impl Waiting {
    /// The whole response.
    pub(super) async fn response(self) -> ClientResponse {
        let Self { response, stream: _stream } = self;
        ClientResponse::read(response.await.unwrap()).await.unwrap()
    }

    /// The client leaves.
    pub(super) fn reset(mut self) {
        self.stream.send_reset(Reason::CANCEL);
    }
}

// === impl ClientRequest ===

impl ClientRequest {
    /// A request of an administrator of the virtual cluster `ke`.
    pub(super) fn new(method: &str, target: &str) -> Self {
        Self {
            method: method.to_owned(),
            target: target.to_owned(),
            cluster: "ke",
            user: Some(("admin".to_owned(), vec!["system:masters".to_owned()])),
            headers: HeaderMap::new(),
            body: Content::None,
        }
        .header("user-agent", "kubectl/v1")
    }

    pub(super) fn get(target: &str) -> Self {
        Self::new("GET", target)
    }

    pub(super) fn delete(target: &str) -> Self {
        Self::new("DELETE", target)
    }

    pub(super) fn post(target: &str, body: &Value) -> Self {
        Self::new("POST", target).json(body)
    }

    pub(super) fn put(target: &str, body: &Value) -> Self {
        Self::new("PUT", target).json(body)
    }

    /// A merge patch.
    pub(super) fn merge(target: &str, patch: &Value) -> Self {
        Self::new("PATCH", target).typed("application/merge-patch+json", patch.to_string())
    }

    pub(super) fn strategic(target: &str, patch: &Value) -> Self {
        Self::new("PATCH", target).typed("application/strategic-merge-patch+json", patch.to_string())
    }

    /// A JSON patch.
    pub(super) fn operations(target: &str, patch: &Value) -> Self {
        Self::new("PATCH", target).typed("application/json-patch+json", patch.to_string())
    }

    /// A server-side apply. The target has the field manager.
    pub(super) fn apply(target: &str, object: &Value) -> Self {
        Self::new("PATCH", target).typed("application/apply-patch+yaml", object.to_string())
    }

    pub(super) fn json(self, body: &Value) -> Self {
        self.typed("application/json", body.to_string())
    }

    pub(super) fn typed(self, media_type: &str, body: impl Into<Bytes>) -> Self {
        let mut request = self.header("content-type", media_type);
        request.body = Content::Whole(body.into());
        request
    }

    /// The client announces a body and sends nothing of it.
    pub(super) fn withholding_body(self) -> Self {
        let mut request = self.header("content-type", "application/json");
        request.body = Content::Withheld;
        request
    }

    pub(super) fn of(mut self, cluster: &'static str) -> Self {
        self.cluster = cluster;
        self
    }

    /// The client has a certificate of this user, which is in no group.
    pub(super) fn by(mut self, user: &str) -> Self {
        self.user = Some((user.to_owned(), Vec::new()));
        self
    }

    /// The client has no certificate.
    pub(super) fn by_nobody(mut self) -> Self {
        self.user = None;
        self
    }

    pub(super) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.insert(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        self
    }

    fn into_request(self) -> (Request<()>, Content) {
        let Self { method, target, cluster, user, headers, body } = self;
        let uri = format!("https://{cluster}.atoll.internal{target}");
        let mut request = Request::builder().method(method.as_str()).uri(uri).body(()).unwrap();
        *request.headers_mut() = headers;
        request.headers_mut().insert(CLUSTER, HeaderValue::from_static(cluster));
        if let Some((user, groups)) = user {
            Identity { user, groups, uid: None, credential: None }.write(request.headers_mut());
        }
        (request, body)
    }
}

// === impl ClientResponse ===

impl ClientResponse {
    async fn read(response: http::Response<RecvStream>) -> Result<Self, h2::Error> {
        let (head, mut stream) = response.into_parts();
        let mut body = BytesMut::new();
        while let Some(chunk) = stream.data().await {
            let chunk = chunk?;
            stream.flow_control().release_capacity(chunk.len())?;
            body.extend_from_slice(&chunk);
        }
        Ok(Self { code: head.status.as_u16(), headers: head.headers, body: body.freeze() })
    }

    /// The body; null if it is not JSON.
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The status code, and the reason and the message of a Status.
    pub(super) fn refusal(&self) -> (u16, String, String) {
        let body = self.json();
        let text = |key: &str| body[key].as_str().unwrap_or_default().to_owned();
        (self.code, text("reason"), text("message"))
    }

    /// The texts of the warnings.
    pub(super) fn warnings(&self) -> Vec<&str> {
        self.headers.get_all(header::WARNING).iter().map(|value| value.to_str().unwrap()).collect()
    }

    /// Fails unless the response has this code.
    #[track_caller]
    pub(super) fn expect(self, code: u16) -> Self {
        assert_eq!(self.code, code, "{}", String::from_utf8_lossy(&self.body));
        self
    }
}

// === impl Open ===

impl Open {
    fn new(head: &Parts, stream: RecvStream, request: Option<SendStream<Bytes>>) -> Self {
        Self { code: head.status.as_u16(), headers: head.headers.clone(), request, stream, unread: BytesMut::new() }
    }

    /// Sends bytes after an upgrade, and reads as many.
    pub(super) async fn echoed(&mut self, bytes: &'static [u8]) -> Bytes {
        let request = self.request.as_mut().expect("an upgrade");
        request.send_data(Bytes::from_static(bytes), false).unwrap();
        while self.unread.len() < bytes.len() {
            self.read().await;
        }
        self.unread.split_to(bytes.len()).freeze()
    }

    /// The rest of a response that ends.
    pub(super) async fn rest(&mut self) -> Bytes {
        while !self.stream.is_end_stream() {
            self.read().await;
        }
        self.unread.split().freeze()
    }

    async fn read(&mut self) {
        self.try_read().await.unwrap();
    }

    /// Reads more of the body. Fails if the agent resets the stream.
    pub(super) async fn try_read(&mut self) -> Result<(), h2::Error> {
        let chunk = self.stream.data().await.expect("the response ended")?;
        self.stream.flow_control().release_capacity(chunk.len())?;
        self.unread.extend_from_slice(&chunk);
        Ok(())
    }

    /// The next line, as JSON.
    pub(super) async fn line(&mut self) -> Value {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line = self.unread.split_to(end + 1);
                return serde_json::from_slice(&line).unwrap();
            }
            self.read().await;
        }
    }
}
