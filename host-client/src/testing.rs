//! API servers in memory for tests, over HTTP/2 without TLS. The test sends all responses.
#![expect(clippy::unwrap_used, reason = "only tests use this module")]

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use http::{Request, Response};
use ops::drain::Tasks;
use tokio::io::DuplexStream;
use tokio::sync::{broadcast, mpsc};

use super::counters::Counters;
use super::dial::{Dial, Dialling, Version};
use super::error::ConnectReason;
use super::servers::Servers;
use super::upstream::Upstream;
use super::{Host, RequestBody, empty};
use kubeconfig::Address;

/// All addresses.
#[derive(Clone, Default)]
pub struct World {
    tasks: Tasks,
    servers: Arc<Mutex<HashMap<String, Listener>>>,
    dials: Arc<AtomicUsize>,
}

/// The test's side of one API server.
pub struct FakeServer {
    name: String,
    world: World,
    requests: mpsc::UnboundedReceiver<ReceivedRequest>,
    raw: mpsc::UnboundedReceiver<DuplexStream>,
}

/// A request that waits for its response.
pub struct ReceivedRequest {
    /// The request, whose body streams.
    pub request: Request<RecvStream>,
    /// The handle for the response.
    pub respond: SendResponse<Bytes>,
    /// The number of its connection, from 0.
    pub connection: usize,
}

/// The behaviour of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// It serves HTTP/2. The test sends the responses.
    Serve,
    /// It refuses connections.
    Refuse,
    /// It accepts connections and sends nothing.
    Silent,
    /// The test reads and writes raw bytes.
    Raw,
}

/// What happens to existing connections.
#[derive(Clone, Copy, Debug)]
enum ConnectionState {
    GoAway,
    Die,
}

struct Listener {
    behaviour: Behaviour,
    max_streams: u32,
    connections: usize,
    requests: mpsc::UnboundedSender<ReceivedRequest>,
    raw: mpsc::UnboundedSender<DuplexStream>,
    fates: broadcast::Sender<ConnectionState>,
    /// Connections that are never read.
    mute: Vec<DuplexStream>,
}

// === impl World ===

impl World {
    /// An API server at `https://NAME:6443` that allows this many streams per connection.
    pub fn server(&self, name: &str, max_streams: u32) -> FakeServer {
        let (requests, receiver) = mpsc::unbounded_channel();
        let (raw, raw_receiver) = mpsc::unbounded_channel();
        let listener = Listener {
            behaviour: Behaviour::Serve,
            max_streams,
            connections: 0,
            requests,
            raw,
            fates: broadcast::Sender::new(16),
            mute: Vec::new(),
        };
        self.servers.lock().unwrap().insert(name.to_owned(), listener);
        FakeServer { name: name.to_owned(), world: self.clone(), requests: receiver, raw: raw_receiver }
    }

    /// A client of these servers, in this order.
    pub fn host(&self, servers: &[&FakeServer], tasks: &Tasks) -> Host {
        let addresses: Vec<Address> = servers.iter().map(|server| server.address()).collect();
        let counters = Arc::new(Counters::default());
        let dial: Arc<dyn Dial> = Arc::new(self.clone());
        let servers = Servers::new(&addresses, &dial, None, &counters, tasks);
        Host::begin(Upstream { servers, bearer: None }, counters, tasks.clone()).0
    }

    /// The number of attempts to connect.
    pub fn dials(&self) -> usize {
        self.dials.load(Ordering::Relaxed)
    }

    fn accept(&self, name: &str, version: Version) -> Result<DuplexStream, ConnectReason> {
        self.dials.fetch_add(1, Ordering::Relaxed);
        let mut servers = self.servers.lock().unwrap();
        let listener = servers.get_mut(name).expect("a server of the test");
        let (ours, theirs) = tokio::io::duplex(256 * 1024);
        match listener.behaviour {
            Behaviour::Refuse => {
                let refused = std::io::ErrorKind::ConnectionRefused;
                return Err(ConnectReason::Tcp(Arc::new(refused.into())));
            }
            Behaviour::Silent => listener.mute.push(theirs),
            Behaviour::Raw => listener.raw.send(theirs).unwrap(),
            Behaviour::Serve => {
                assert_eq!(version, Version::Http2, "HTTP/1.1 is spoken by hand");
                let number = listener.connections;
                listener.connections += 1;
                let fates = listener.fates.subscribe();
                let requests = listener.requests.clone();
                let served = serve(theirs, listener.max_streams, number, requests, fates);
                self.tasks.spawn("fake API server", served);
            }
        }
        Ok(ours)
    }
}

impl Dial for World {
    fn dial<'a>(&'a self, address: &'a Address, version: Version) -> Dialling<'a> {
        let accepted = self.accept(address.host(), version);
        Box::pin(async move { Ok(Box::new(accepted?) as super::dial::BoxIo) })
    }
}

// === impl FakeServer ===

impl FakeServer {
    /// Its address in URLs.
    pub fn address(&self) -> Address {
        format!("https://{}:6443", self.name).parse().unwrap()
    }

    /// The next request.
    pub async fn next_request(&mut self) -> ReceivedRequest {
        self.requests.recv().await.expect("the world is still there")
    }

    /// Whether a request has arrived that the test has not taken.
    pub fn has_request(&mut self) -> bool {
        !self.requests.is_empty()
    }

    /// The next connection of [`Behaviour::Raw`].
    pub async fn raw(&mut self) -> DuplexStream {
        self.raw.recv().await.expect("the world is still there")
    }

    /// Changes the behaviour for new connections.
    pub fn behave(&self, behaviour: Behaviour) {
        self.listener(|listener| listener.behaviour = behaviour);
    }

    /// Kills the server: every connection breaks, and new ones are refused.
    pub fn kill(&self) {
        self.behave(Behaviour::Refuse);
        self.break_connections();
    }

    /// Every connection breaks.
    pub fn break_connections(&self) {
        self.listener(|listener| drop(listener.fates.send(ConnectionState::Die)));
    }

    /// Sends GOAWAY on every connection. Streams continue.
    pub fn go_away(&self) {
        self.listener(|listener| drop(listener.fates.send(ConnectionState::GoAway)));
    }

    fn listener(&self, change: impl FnOnce(&mut Listener)) {
        change(self.world.servers.lock().unwrap().get_mut(&self.name).unwrap());
    }
}

// === impl ReceivedRequest ===

impl ReceivedRequest {
    /// Responds with 200 and ends the stream.
    pub fn answer(self, body: &'static str) {
        self.answer_with(200, body);
    }

    /// Responds and ends the stream, unless the client has reset it: a client may no longer need a response.
    pub fn answer_with(mut self, code: u16, body: impl Into<Bytes>) {
        let head = Response::builder().status(code).body(()).unwrap();
        if let Ok(mut stream) = self.respond.send_response(head, false) {
            let _ = stream.send_data(body.into(), true);
        }
    }

    /// Responds with 200 and a header of this many bytes.
    pub fn answer_with_header(mut self, length: usize) {
        let head = Response::builder().header("x-long", "x".repeat(length)).body(()).unwrap();
        self.respond.send_response(head, true).unwrap();
    }

    /// Responds with 200 and leaves the body open.
    pub fn begin(mut self) -> h2::SendStream<Bytes> {
        self.respond.send_response(Response::new(()), false).unwrap()
    }

    /// The path of the request, with its query.
    pub fn path(&self) -> String {
        self.request.uri().path_and_query().unwrap().to_string()
    }
}

/// A request without a body.
pub fn get(path: &str) -> Request<RequestBody> {
    Request::get(path).body(empty()).unwrap()
}

async fn serve(
    io: DuplexStream,
    max_streams: u32,
    number: usize,
    requests: mpsc::UnboundedSender<ReceivedRequest>,
    mut fates: broadcast::Receiver<ConnectionState>,
) {
    let handshake = h2::server::Builder::new()
        .max_concurrent_streams(max_streams)
        .initial_connection_window_size(1 << 30)
        .handshake(io);
    let Ok(mut connection) = handshake.await else { return };
    loop {
        tokio::select! {
            accepted = connection.accept() => {
                let Some(Ok((request, respond))) = accepted else { return };
                drop(requests.send(ReceivedRequest { request, respond, connection: number }));
            }
            fate = fates.recv() => match fate {
                Ok(ConnectionState::GoAway) => connection.graceful_shutdown(),
                Ok(ConnectionState::Die) | Err(_) => return,
            }
        }
    }
}
